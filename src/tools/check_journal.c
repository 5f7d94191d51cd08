/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scan stops at the first thing that is wrong. What lies behind it is
 * surveyed, in that increment and in all later ones, and the highest durable
 * sequence found there is compared with the sequence that was due.
 */
#include "tools/check_journal.h"

#include "base/file.h"
#include "base/mem.h"
#include "persist/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { OPEN_TRIES = 100, SURVEY_BYTES = 4 << 20 };

/* ---- opening ------------------------------------------------------------- */

static void
close_all(struct check_journal *journal)
{
    for (size_t i = 0; i < journal->count; i++) {
        check_file_unmap(&journal->increments[i].map);
        file_close(journal->increments[i].fd);
    }
    mem_free(journal->increments);
    journal->increments = NULL;
    journal->count = 0;
    file_close(journal->base_fd);
    journal->base_fd = -1;
}

void
check_journal_close(struct check_journal *journal)
{
    close_all(journal);
}

/* The descriptors alone: 0 or errno. */
static int
open_files(struct check *check, struct check_journal *journal)
{
    const struct manifest *manifest = &journal->manifest;
    char name[MANIFEST_FILE_NAME_MAX];
    int error;

    journal->increments =
        mem_zalloc((manifest->count + 1) * sizeof(*journal->increments));
    manifest_base_name(manifest->base_number, name);
    if (!check_file_join(check, journal->path, name, journal->base_path)) {
        return ENAMETOOLONG;
    }
    error = file_open(AT_FDCWD, journal->base_path, &journal->base_fd);
    for (uint32_t i = 0; i < manifest->count && error == 0; i++) {
        struct check_increment *increment = &journal->increments[i];

        increment->number = manifest->increments[i].number;
        increment->closed = manifest->increments[i].closed;
        increment->closed_bytes = manifest->increments[i].bytes;
        increment->fd = -1;
        manifest_increment_name(increment->number, name);
        journal->count++;
        if (!check_file_join(check, journal->path, name, increment->path)) {
            return ENAMETOOLONG;
        }
        error = file_open(AT_FDCWD, increment->path, &increment->fd);
    }
    return error;
}

/* Newest first, see the header. */
static bool
map_files(struct check *check, struct check_journal *journal)
{
    for (size_t i = journal->count; i > 0; i--) {
        struct check_increment *increment = &journal->increments[i - 1];
        uint64_t counts;
        int error = file_size(increment->fd, &increment->file_bytes);

        if (error != 0) {
            check_complain(check, CHECK_UNREADABLE, "%s: cannot be read: %s",
                           increment->path, strerror(error));
            return false;
        }
        counts = increment->file_bytes;
        if (increment->closed && increment->closed_bytes < counts) {
            counts = increment->closed_bytes;
        }
        if (!check_file_map(check, increment->fd, (size_t)counts,
                            increment->path, &increment->map)) {
            return false;
        }
        increment->line_status =
            group_read_first_line(increment->map.bytes, &increment->line);
    }
    return true;
}

bool
check_journal_open_named(struct check *check, struct check_journal *journal)
{
    int error = open_files(check, journal);

    if (error != 0) {
        check_complain(check, CHECK_UNREADABLE,
                       "%s: its files cannot be opened: %s", journal->path,
                       strerror(error));
    }
    return error == 0 && map_files(check, journal);
}

static enum check_found_journal
load_manifest(struct check *check, struct check_journal *journal, char *ret_why,
              size_t why_size)
{
    enum manifest_status status;
    int dir_fd = -1;
    int error = file_open_dir(journal->path, false, &dir_fd);

    if (error != 0) {
        check_complain(check, CHECK_UNREADABLE, "%s: cannot be opened: %s",
                       journal->path, strerror(error));
        return JOURNAL_UNREADABLE;
    }
    (void)snprintf(ret_why, why_size, "there is none");
    status = manifest_load(dir_fd, &journal->manifest, ret_why, why_size);
    file_close(dir_fd);
    switch (status) {
    case MANIFEST_OK:
        return JOURNAL_FOUND;
    case MANIFEST_UNFINISHED:
        (void)snprintf(ret_why, why_size,
                       "there is none: the journal was being built or removed "
                       "when its server ended, and a start takes nothing of "
                       "it");
        return JOURNAL_UNFINISHED;
    case MANIFEST_MISSING:
    case MANIFEST_DAMAGED:
        return JOURNAL_BROKEN;
    default:
        check_complain(
            check, status == MANIFEST_NEWER ? CHECK_NEWER : CHECK_UNREADABLE,
            "%s: the manifest: %s", journal->path, ret_why);
        return JOURNAL_UNREADABLE;
    }
}

/* A name that is missing means that a live server has just replaced the
 * manifest, if there is a later one now; else it is damage. */
static enum check_found_journal
open_once(struct check *check, struct check_journal *journal, uint64_t *tried,
          char *ret_why, size_t why_size)
{
    enum check_found_journal found =
        load_manifest(check, journal, ret_why, why_size);
    const char *name;
    int error;

    if (found != JOURNAL_FOUND) {
        return found;
    }
    error = open_files(check, journal);
    if (error == 0) {
        return map_files(check, journal) ? JOURNAL_FOUND : JOURNAL_UNREADABLE;
    }
    name = journal->count == 0 ? journal->base_path
                               : journal->increments[journal->count - 1].path;
    if (error != ENOENT) {
        check_complain(check, CHECK_UNREADABLE, "%s: cannot be opened: %s",
                       name, strerror(error));
        return JOURNAL_UNREADABLE;
    }
    (void)snprintf(ret_why, why_size, "the manifest names %s, which is missing",
                   check_file_name(name));
    *tried = journal->manifest.generation;
    return JOURNAL_BROKEN;
}

enum check_found_journal
check_journal_open(struct check *check, const char *path,
                   struct check_journal *ret_journal, char *ret_why,
                   size_t why_size)
{
    enum check_found_journal found = JOURNAL_BROKEN;
    uint64_t missing_in = UINT64_MAX;

    memset(ret_journal, 0, sizeof(*ret_journal));
    (void)snprintf(ret_journal->path, sizeof(ret_journal->path), "%s", path);
    ret_journal->base_fd = -1;
    for (int i = 0; i < OPEN_TRIES; i++) {
        uint64_t before = missing_in;

        found = open_once(check, ret_journal, &missing_in, ret_why, why_size);
        if (found == JOURNAL_FOUND) {
            return found;
        }
        close_all(ret_journal);
        if (found == JOURNAL_UNREADABLE || missing_in == before) {
            return found;
        }
    }
    return found;
}

bool
check_journal_open_single(struct check *check, const char *path,
                          struct check_journal *ret_journal)
{
    struct check_increment *increment = mem_zalloc(sizeof(*increment));

    memset(ret_journal, 0, sizeof(*ret_journal));
    (void)snprintf(ret_journal->path, sizeof(ret_journal->path), "%s", path);
    (void)snprintf(increment->path, sizeof(increment->path), "%s", path);
    ret_journal->base_fd = -1;
    ret_journal->single = true;
    ret_journal->increments = increment;
    ret_journal->count = 1;
    increment->fd = -1;
    if (!check_file_open(check, path, &increment->fd) ||
        !map_files(check, ret_journal)) {
        close_all(ret_journal);
        return false;
    }
    return true;
}

uint64_t
check_journal_bytes(const struct check_journal *journal)
{
    uint64_t bytes = 0;

    if (journal->base_fd >= 0) {
        (void)!file_size(journal->base_fd, &bytes);
    }
    for (size_t i = 0; i < journal->count; i++) {
        bytes += journal->increments[i].map.bytes.len;
    }
    return bytes;
}

/* ---- the chain ----------------------------------------------------------- */

/* Surveys everything from here on. */
static void
survey(struct check_journal *journal, size_t index, uint64_t offset)
{
    struct group_survey *after = &journal->after;

    memset(after, 0, sizeof(*after));
    for (; index < journal->count; index++, offset = 0) {
        const struct check_increment *increment = &journal->increments[index];
        struct group_survey here = { 0 };

        if (increment->line_status != GROUP_OK) {
            continue;
        }
        if (offset < GROUP_FIRST_LINE_BYTES) {
            offset = GROUP_FIRST_LINE_BYTES;
        }
        group_survey(increment->map.bytes, increment->line.key, offset, &here);
        if (here.groups > 0 && after->groups == 0) {
            after->first_offset = here.first_offset;
            after->first_sequence = here.first_sequence;
        }
        after->groups += here.groups;
        after->bytes += here.bytes;
        if (here.groups > 0) {
            after->last_sequence = here.last_sequence;
        }
        if (here.durable_sequence > after->durable_sequence) {
            after->durable_sequence = here.durable_sequence;
        }
    }
}

/* For one increment, whose expected sequence may be unknown (0). gap: a group
 * stands there, and is not the one that is due. */
static bool
is_refused_single(const struct check_journal *journal, uint64_t due, bool gap)
{
    const struct group_survey *after = &journal->after;

    if (journal->increments[0].line_status != GROUP_OK || gap) {
        return true; /* it was synced before a manifest named the file */
    }
    return due == 0 ? after->groups > 0 : after->durable_sequence >= due;
}

/* What a start would do. */
static bool
is_refused(const struct check_journal *journal)
{
    struct verify_file *files = mem_zalloc(journal->count * sizeof(*files));
    struct verify_result result;
    enum verify_status status;

    for (size_t i = 0; i < journal->count; i++) {
        files[i].data = journal->increments[i].map.bytes;
        files[i].closed = journal->increments[i].closed;
        files[i].bytes = journal->increments[i].closed_bytes;
    }
    status = verify_increments(files, (uint32_t)journal->count,
                               journal->manifest.position,
                               journal->manifest.sequence, &result);
    mem_free(files);
    return status == VERIFY_REFUSED;
}

static void
break_here(struct check_journal *journal, size_t index, uint64_t offset,
           uint64_t due, bool gap)
{
    struct check_increment *increment = &journal->increments[index];

    journal->broken = index;
    journal->broken_offset = offset;
    survey(journal, index, offset);
    journal->state = (journal->single ? is_refused_single(journal, due, gap)
                                      : is_refused(journal))
                         ? CHECK_STATE_DAMAGED
                         : CHECK_STATE_TORN;
    if (increment->line_status == GROUP_NEWER) {
        journal->state = CHECK_STATE_NEWER;
    }
    increment->state = journal->state;
}

static void
take_group(struct check *check, struct check_journal *journal,
           struct check_increment *increment, const struct group *group)
{
    uint64_t bytes = group->end - group->begin;

    if (increment->groups++ == 0) {
        increment->first_sequence = group->seal.sequence;
        increment->first_ms = group->seal.unix_ms;
    }
    increment->last_sequence = group->seal.sequence;
    increment->last_ms = group->seal.unix_ms;
    increment->end = group->end;
    journal->sequence = group->seal.sequence;
    journal->position += bytes;
    journal->last_ms = group->seal.unix_ms;
    journal->groups++;
    check_bar_add(check, bytes);
}

/* Whether the increment can be read at all. */
static bool
check_line(struct check_journal *journal, size_t index, uint64_t due)
{
    const struct check_increment *increment = &journal->increments[index];
    const char *why = increment->line_status == GROUP_NEWER
                          ? "it was written by a newer version"
                      : increment->line_status == GROUP_END
                          ? "it is empty"
                          : "its first line is damaged, and with it the key "
                            "of its seals is lost";

    if (increment->line_status == GROUP_OK) {
        return true;
    }
    (void)snprintf(journal->why, sizeof(journal->why), "%s", why);
    break_here(journal, index, 0, due, false);
    return false;
}

/* The end of what counts, without an error so far. */
static bool
check_end(struct check_journal *journal, size_t index, uint64_t due)
{
    const struct check_increment *increment = &journal->increments[index];

    if (!increment->closed ||
        increment->map.bytes.len == increment->closed_bytes) {
        return true;
    }
    (void)snprintf(
        journal->why, sizeof(journal->why),
        "the file ends here, and the manifest says that it has %llu bytes",
        (unsigned long long)increment->closed_bytes);
    break_here(journal, index, increment->end, due, false);
    return false;
}

/* True: go on with the next one. */
static bool
scan_increment(struct check *check, struct check_journal *journal, size_t index,
               check_group_fn *visit, void *ctx)
{
    struct check_increment *increment = &journal->increments[index];
    struct slice data = increment->map.bytes;
    uint64_t due = journal->sequence + 1;
    enum group_status status;
    struct group group;

    if (journal->single && journal->groups == 0) {
        due = 0;
    }
    increment->position = journal->position;
    if (!check_line(journal, index, due)) {
        return false;
    }
    increment->end = GROUP_FIRST_LINE_BYTES;
    while ((status = group_read(data, increment->line.key, increment->end,
                                &group)) == GROUP_OK) {
        if (due != 0 && group.seal.sequence != due) {
            break;
        }
        take_group(check, journal, increment, &group);
        due = group.seal.sequence + 1;
        if (visit != NULL &&
            !visit(ctx, increment, &group, journal->position)) {
            return false;
        }
    }
    if (status == GROUP_END) {
        return check_end(journal, index, due);
    }
    if (status == GROUP_OK) {
        (void)snprintf(journal->why, sizeof(journal->why),
                       "group %llu stands where group %llu is due",
                       (unsigned long long)group.seal.sequence,
                       (unsigned long long)due);
    } else {
        (void)snprintf(journal->why, sizeof(journal->why),
                       "no intact group begins here");
    }
    break_here(journal, index, increment->end, due, status == GROUP_OK);
    return false;
}

void
check_journal_scan(struct check *check, struct check_journal *journal,
                   check_group_fn *visit, void *ctx)
{
    journal->state = CHECK_STATE_INTACT;
    journal->position = journal->manifest.position;
    journal->sequence = journal->manifest.sequence;
    journal->groups = 0;
    journal->last_ms = 0;
    for (size_t i = 0; i < journal->count; i++) {
        struct check_increment *increment = &journal->increments[i];

        increment->state = CHECK_STATE_INTACT;
        increment->groups = 0;
        increment->end = 0;
    }
    for (size_t i = 0; i < journal->count; i++) {
        if (!scan_increment(check, journal, i, visit, ctx)) {
            break;
        }
    }
}

void
check_journal_refuse(struct check_journal *journal,
                     const struct check_increment *increment,
                     const struct group *group, const char *why)
{
    size_t index = (size_t)(increment - journal->increments);

    (void)snprintf(journal->why, sizeof(journal->why),
                   "group %llu cannot be executed: %s",
                   (unsigned long long)group->seal.sequence, why);
    journal->broken = index;
    journal->broken_offset = group->begin;
    journal->state = CHECK_STATE_DAMAGED;
    journal->increments[index].state = CHECK_STATE_DAMAGED;
    journal->sequence = group->seal.sequence - 1;
    journal->position -= group->end - group->begin;
    survey(journal, index, group->end);
}

bool
check_journal_next_intact(const struct check_increment *increment, uint64_t *at,
                          struct group *ret_group)
{
    struct slice data = increment->map.bytes;
    struct group_survey survey = { 0 };
    uint64_t window = SURVEY_BYTES;

    if (increment->line_status != GROUP_OK) {
        return false;
    }
    if (*at < GROUP_FIRST_LINE_BYTES) {
        *at = GROUP_FIRST_LINE_BYTES;
    }
    if (*at >= data.len) {
        return false;
    }
    if (group_read(data, increment->line.key, *at, ret_group) == GROUP_OK) {
        *at = ret_group->end;
        return true;
    }
    /* Not the whole rest at each damaged place, or many of them take for ever:
     * usually a group begins within the next few MiB. */
    while (survey.groups == 0 && window != UINT64_MAX) {
        uint64_t seen = data.len - *at < window ? data.len : *at + window;

        group_survey((struct slice){ data.data, (size_t)seen },
                     increment->line.key, *at, &survey);
        window = seen == data.len ? UINT64_MAX : window * 2;
    }
    if (survey.groups == 0 ||
        group_read(data, increment->line.key, survey.first_offset, ret_group) !=
            GROUP_OK) {
        return false;
    }
    *at = ret_group->end;
    return true;
}

/* ---- telling ------------------------------------------------------------- */

static void
describe_after(const struct check_journal *journal, char *ret_text, size_t size)
{
    const struct group_survey *after = &journal->after;
    int len = 0;

    if (after->groups == 0) {
        len = snprintf(ret_text, size, "nothing intact follows");
    } else {
        len = snprintf(ret_text, size,
                       "%llu intact groups (%llu bytes, sequences %llu to "
                       "%llu) follow, the first at offset %llu",
                       (unsigned long long)after->groups,
                       (unsigned long long)after->bytes,
                       (unsigned long long)after->first_sequence,
                       (unsigned long long)after->last_sequence,
                       (unsigned long long)after->first_offset);
    }
    if (after->durable_sequence > 0 && len > 0 && (size_t)len < size) {
        (void)snprintf(ret_text + len, size - (size_t)len,
                       "; later seals say that group %llu was durable",
                       (unsigned long long)after->durable_sequence);
    }
}

static void
show_break(struct check *check, const struct check_journal *journal)
{
    const struct check_increment *increment =
        &journal->increments[journal->broken];
    char text[512];

    check_card_number(check, "offset", journal->broken_offset);
    check_card_number(check, "due_sequence", journal->sequence + 1);
    if (journal->state == CHECK_STATE_TORN) {
        check_card_format(check, "note",
                          "%s; a tail of %llu bytes would be cut at start",
                          journal->why,
                          (unsigned long long)(increment->map.bytes.len -
                                               journal->broken_offset));
        check_card_number(check, "intact_groups_after", journal->after.groups);
        if (journal->after.groups > 0) {
            check_card_format(check, "to_keep_them",
                              "bloomery-check salvage %s OUT", journal->path);
        }
        return;
    }
    describe_after(journal, text, sizeof(text));
    check_card_format(check, "problem", "%s; %s", journal->why, text);
    check_card_number(check, "intact_groups_after", journal->after.groups);
    check_card_number(check, "intact_bytes_after", journal->after.bytes);
    if (journal->state == CHECK_STATE_DAMAGED) {
        check_card_format(check, "remedy", "bloomery-check salvage %s OUT",
                          journal->path);
        check_card_format(check, "or", "bloomery-check truncate-to %llu %s OUT",
                          (unsigned long long)journal->position, journal->path);
    }
}

void
check_journal_show(struct check *check, const struct check_journal *journal)
{
    for (size_t i = 0; i < journal->count; i++) {
        const struct check_increment *increment = &journal->increments[i];
        bool reached =
            journal->state == CHECK_STATE_INTACT || i <= journal->broken;

        check_card_begin(check, increment->path, "increment", increment->state);
        check_card_number(check, "bytes", increment->map.bytes.len);
        if (increment->line_status == GROUP_OK) {
            check_card_number(check, "version", GROUP_VERSION);
            check_card_text(check, "run_id", increment->line.run_id);
            check_card_time(check, "created", increment->line.created_ms);
        }
        check_card_text(check, "closed", increment->closed ? "yes" : "no");
        if (!reached) {
            check_card_text(check, "note", "not reached");
        } else if (!journal->single) {
            check_card_number(check, "position", increment->position);
        }
        check_card_number(check, "groups", increment->groups);
        if (increment->groups > 0) {
            check_card_number(check, "first_sequence",
                              increment->first_sequence);
            check_card_number(check, "last_sequence", increment->last_sequence);
            check_card_time(check, "first_time", increment->first_ms);
            check_card_time(check, "last_time", increment->last_ms);
        }
        if (journal->state != CHECK_STATE_INTACT && i == journal->broken) {
            show_break(check, journal);
        }
        check_card_end(check);
    }
}

void
check_journal_complain(struct check *check, const struct check_journal *journal)
{
    const struct check_increment *increment;
    uint64_t due = journal->sequence + 1;
    char text[512];

    if (journal->state == CHECK_STATE_INTACT) {
        return;
    }
    increment = &journal->increments[journal->broken];
    describe_after(journal, text, sizeof(text));
    check_complain(check, check_card_status(journal->state),
                   "%s: %s at offset %llu, where group %llu is due: %s; %s",
                   increment->path,
                   journal->state == CHECK_STATE_TORN ? "ends with a torn tail"
                                                      : "damaged",
                   (unsigned long long)journal->broken_offset,
                   (unsigned long long)due, journal->why, text);
}
