/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First lines first, since without its key nothing in a file can be told; then
 * group after group until one is not what it should be; then what follows that
 * decides.
 */
#include "persist/verify.h"

#include <inttypes.h>
#include <stdio.h>

/* A first line is synced before the manifest names its file, so that one that
 * is wrong is never a crash's doing. */
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

/* All groups of one file. False: at result->offset is none, or the wrong one.
 */
static bool
read_groups(struct verify_file *file, struct verify_result *result)
{
    uint64_t offset = GROUP_FIRST_LINE_BYTES;
    enum group_status status;
    struct group group;

    for (;;) {
        status = group_read(file->data, file->first.key, offset, &group);
        if (status != GROUP_OK || group.seal.sequence != result->expected) {
            break;
        }
        offset = group.end;
        file->groups++;
        result->groups++;
        result->expected++;
        result->position += group.end - group.begin;
    }
    file->end = offset;
    if (status == GROUP_END && (!file->closed || offset == file->bytes)) {
        return true;
    }
    result->offset = offset;
    result->cause = VERIFY_DAMAGED;
    if (status == GROUP_END) {
        result->cause = VERIFY_SHORT;
    } else if (status == GROUP_OK) {
        result->cause = VERIFY_GAP;
        result->found = group.seal.sequence;
    }
    return false;
}

static void
survey_behind(const struct verify_file *files, uint32_t count,
              struct verify_result *result)
{
    for (uint32_t i = result->file; i < count; i++) {
        uint64_t offset =
            i == result->file ? result->offset : GROUP_FIRST_LINE_BYTES;
        struct group_survey survey;

        group_survey(files[i].data, files[i].first.key, offset, &survey);
        result->behind_bytes += files[i].data.len - offset;
        result->intact_groups += survey.groups;
        result->intact_bytes += survey.bytes;
        if (survey.durable_sequence > result->durable_sequence) {
            result->durable_sequence = survey.durable_sequence;
        }
    }
}

/* No crash leaves an intact group of a wrong sequence where the next one is
 * due, but for one place: after a fault the log may go on in the file of a
 * rotation that was under way, and the one before it ends early. Nothing was
 * released then, unless a seal says so. */
static bool
is_refused(const struct verify_file *files, const struct verify_result *result)
{
    bool was_left = result->file > 0 && !files[result->file - 1].closed &&
                    result->offset == GROUP_FIRST_LINE_BYTES &&
                    result->found > result->expected;

    return files[result->file].closed ||
           result->durable_sequence >= result->expected ||
           (result->cause == VERIFY_GAP && !was_left);
}

enum verify_status
verify_increments(struct verify_file *files, uint32_t count, uint64_t position,
                  uint64_t sequence, struct verify_result *ret_result)
{
    struct verify_result result = { .position = position,
                                    .expected = sequence + 1 };
    bool intact = true;

    if (!read_first_lines(files, count, &result)) {
        result.status = VERIFY_REFUSED;
    } else {
        for (uint32_t i = 0; i < count && intact; i++) {
            result.file = i;
            intact = read_groups(&files[i], &result);
        }
        if (!intact) {
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
