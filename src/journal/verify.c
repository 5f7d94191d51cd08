/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the first lines first, since nothing in a file can be checked without
 * its key. Then it reads group after group until one is wrong. What follows
 * that group decides between a cut and a refusal.
 */
#include "journal/verify.h"

#include <inttypes.h>
#include <stdio.h>

/* Reads the first lines of all files. A first line is synced before the
 * manifest names its file, so no crash can damage it. */
static bool
read_first_lines(struct verify_file *files, uint32_t count,
                 struct verify_result *result)
{
    for (uint32_t i = 0; i < count; i++) {
        enum group_status status =
            group_read_first_line(files[i].data, &files[i].first);

        files[i].end = GROUP_FIRST_LINE_BYTES;
        files[i].groups = 0;
        if (status != GROUP_OK) {
            result->cause =
                status == GROUP_NEWER ? VERIFY_NEWER : VERIFY_FIRST_LINE;
            result->file = i;
            result->offset = 0;
            return false;
        }
    }
    return true;
}

/* How reading the groups of a file ended. */
enum reading { READ_ALL, READ_STOPPED, READ_WRONG };

/* Reads all groups of files[result->file]. READ_STOPPED: visit returned false.
 * READ_WRONG: at result->offset there is no group, or not the next one. */
static enum reading
read_groups(struct verify_file *file, const struct verify_walk *walk,
            struct verify_result *result)
{
    enum group_status status;
    struct group group;

    for (;;) {
        status = group_read(file->data, file->first.key, file->end, &group);
        if (status != GROUP_OK || group.seal.sequence != result->expected) {
            break;
        }
        file->end = group.end;
        file->groups++;
        result->groups++;
        result->expected++;
        result->position += group.end - group.begin;
        if (walk->visit != NULL &&
            !walk->visit(walk->ctx, result->file, &group, result->position)) {
            return READ_STOPPED;
        }
    }
    if (status == GROUP_END && (!file->closed || file->end == file->bytes)) {
        return READ_ALL;
    }
    result->offset = file->end;
    result->cause = VERIFY_DAMAGED;
    if (status == GROUP_END) {
        result->cause = VERIFY_SHORT;
    } else if (status == GROUP_OK) {
        result->cause = VERIFY_GAP;
        result->found = group.seal.sequence;
    }
    return READ_WRONG;
}

static void
add_survey(struct group_survey *sum, const struct group_survey *more)
{
    if (more->groups > 0 && sum->groups == 0) {
        sum->first_offset = more->first_offset;
        sum->first_sequence = more->first_sequence;
    }
    if (more->groups > 0) {
        sum->last_sequence = more->last_sequence;
    }
    sum->groups += more->groups;
    sum->bytes += more->bytes;
    if (more->durable_sequence > sum->durable_sequence) {
        sum->durable_sequence = more->durable_sequence;
    }
}

void
verify_survey(const struct verify_file *files, uint32_t count, uint32_t index,
              uint64_t offset, struct group_survey *ret_survey)
{
    struct group_survey sum = { 0 };

    if (offset < GROUP_FIRST_LINE_BYTES) {
        offset = GROUP_FIRST_LINE_BYTES;
    }
    for (; index < count; index++, offset = GROUP_FIRST_LINE_BYTES) {
        struct group_survey here;
        struct group_file first;

        if (group_read_first_line(files[index].data, &first) == GROUP_OK) {
            group_survey(files[index].data, first.key, offset, &here);
            add_survey(&sum, &here);
        }
    }
    *ret_survey = sum;
}

static void
survey_behind(const struct verify_file *files, uint32_t count,
              struct verify_result *result)
{
    verify_survey(files, count, result->file, result->offset, &result->behind);
    result->behind_bytes = files[result->file].data.len - result->offset;
    for (uint32_t i = result->file + 1; i < count; i++) {
        result->behind_bytes += files[i].data.len - GROUP_FIRST_LINE_BYTES;
    }
}

/* Returns whether the damage is refused. No crash leaves an intact group with a
 * wrong sequence where the next group is due, with one exception. After a
 * fault, the log may continue in the file of a rotation that was under way, and
 * the file before it ends early. Then no position in the missing part was
 * released, unless the seal of a later group says that it was durable. */
static bool
is_refused(const struct verify_file *files, const struct verify_result *result)
{
    bool was_left = result->file > 0 && !files[result->file - 1].closed &&
                    result->offset == GROUP_FIRST_LINE_BYTES &&
                    result->found > result->expected;

    return files[result->file].closed ||
           result->behind.durable_sequence >= result->expected ||
           (result->cause == VERIFY_GAP && !was_left);
}

enum verify_status
verify_increments(struct verify_file *files, uint32_t count, uint64_t position,
                  uint64_t sequence, struct verify_result *ret_result)
{
    struct verify_walk walk = { .position = position, .sequence = sequence };

    return verify_each(files, count, &walk, ret_result);
}

enum verify_status
verify_each(struct verify_file *files, uint32_t count,
            const struct verify_walk *walk, struct verify_result *ret_result)
{
    struct verify_result result = { .position = walk->position,
                                    .expected = walk->sequence + 1 };
    enum reading reading = READ_ALL;

    if (!read_first_lines(files, count, &result)) {
        result.status = VERIFY_REFUSED;
    } else {
        for (uint32_t i = 0; i < count && reading == READ_ALL; i++) {
            result.file = i;
            reading = read_groups(&files[i], walk, &result);
        }
        if (reading == READ_WRONG) {
            survey_behind(files, count, &result);
            result.status =
                is_refused(files, &result) ? VERIFY_REFUSED : VERIFY_CUT;
        }
    }
    result.sequence = result.expected - 1;
    *ret_result = result;
    return result.status;
}

void
verify_describe(const struct verify_result *result, char *ret_text, size_t size)
{
    switch (result->cause) {
    case VERIFY_FIRST_LINE:
        (void)snprintf(ret_text, size, "its first line, offset 0, is damaged");
        break;
    case VERIFY_NEWER:
        (void)snprintf(ret_text, size,
                       "its first line is of a version above %d: a newer "
                       "server wrote it, start that one",
                       GROUP_VERSION);
        break;
    case VERIFY_DAMAGED:
        (void)snprintf(ret_text, size,
                       "damaged at offset %" PRIu64 ", where group %" PRIu64
                       " should begin",
                       result->offset, result->expected);
        break;
    case VERIFY_GAP:
        (void)snprintf(ret_text, size,
                       "group %" PRIu64 " at offset %" PRIu64
                       ", where group %" PRIu64 " should begin",
                       result->found, result->offset, result->expected);
        break;
    case VERIFY_SHORT:
        (void)snprintf(ret_text, size,
                       "ends at offset %" PRIu64 ", where group %" PRIu64
                       " should begin",
                       result->offset, result->expected);
        break;
    }
}
