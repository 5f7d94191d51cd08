/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All files are opened and mapped here, for check_chain.h to walk.
 */
#include "check/check_journal.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { OPEN_TRIES = 100 };

/* ---- opening ------------------------------------------------------------- */

static void
close_all(struct check_journal *journal)
{
    for (size_t i = 0; i < journal->count; i++) {
        check_file_unmap(&journal->increments[i].map);
        file_close(journal->increments[i].fd);
    }
    mem_free(journal->increments);
    mem_free(journal->files);
    journal->increments = NULL;
    journal->files = NULL;
    journal->count = 0;
    file_close(journal->base_fd);
    journal->base_fd = -1;
}

void
check_journal_close(struct check_journal *journal)
{
    close_all(journal);
}

static void
make_increments(struct check_journal *journal, uint32_t count)
{
    journal->count = count;
    journal->increments = mem_zalloc(count * sizeof(*journal->increments));
    journal->files = mem_zalloc(count * sizeof(*journal->files));
    for (uint32_t i = 0; i < count; i++) {
        journal->increments[i].fd = -1;
        journal->increments[i].file = &journal->files[i];
    }
}

/* Opens the base and all increments. Returns 0 or errno. */
static int
open_files(struct check *check, struct check_journal *journal)
{
    const struct manifest *manifest = &journal->manifest;
    char name[MANIFEST_FILE_NAME_MAX];
    int error;

    make_increments(journal, manifest->count);
    manifest_base_name(manifest->base_number, name);
    if (!check_file_join(check, journal->path, name, journal->base_path)) {
        return ENAMETOOLONG;
    }
    error = file_open(AT_FDCWD, journal->base_path, &journal->base_fd);
    for (uint32_t i = 0; i < manifest->count && error == 0; i++) {
        struct check_increment *increment = &journal->increments[i];

        increment->number = manifest->increments[i].number;
        increment->file->closed = manifest->increments[i].closed;
        increment->file->bytes = manifest->increments[i].bytes;
        manifest_increment_name(increment->number, name);
        if (!check_file_join(check, journal->path, name, increment->path)) {
            return ENAMETOOLONG;
        }
        error = file_open(AT_FDCWD, increment->path, &increment->fd);
    }
    return error;
}

/* Maps the newest increment first, see the header. */
static bool
map_files(struct check *check, struct check_journal *journal)
{
    for (size_t i = journal->count; i > 0; i--) {
        struct check_increment *increment = &journal->increments[i - 1];
        uint64_t bytes;
        int error = file_size(increment->fd, &bytes);

        if (error != 0) {
            tool_complain(&check->tool, CHECK_UNREADABLE,
                          "%s: cannot be read: %s", increment->path,
                          strerror(error));
            return false;
        }
        if (increment->file->closed && increment->file->bytes < bytes) {
            bytes = increment->file->bytes;
        }
        if (!check_file_map(check, increment->fd, (size_t)bytes,
                            increment->path, &increment->map)) {
            return false;
        }
        increment->file->data = increment->map.bytes;
        increment->line_status = group_read_first_line(increment->map.bytes,
                                                       &increment->file->first);
    }
    return true;
}

bool
check_journal_open_named(struct check *check, struct check_journal *journal)
{
    int error = open_files(check, journal);

    if (error != 0) {
        tool_complain(&check->tool, CHECK_UNREADABLE,
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
        tool_complain(&check->tool, CHECK_UNREADABLE,
                      "%s: cannot be opened: %s", journal->path,
                      strerror(error));
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
        tool_complain(&check->tool,
                      status == MANIFEST_NEWER ? CHECK_NEWER : CHECK_UNREADABLE,
                      "%s: the manifest: %s", journal->path, ret_why);
        return JOURNAL_UNREADABLE;
    }
}

/* Returns the path of the file at which open_files failed. */
static const char *
first_not_open(const struct check_journal *journal)
{
    const struct check_increment *increment = journal->increments;

    if (journal->base_fd < 0) {
        return journal->base_path;
    }
    while (increment->fd >= 0) {
        increment++;
    }
    return increment->path;
}

/* Tries to open everything. If a file is missing, a live server may just have
 * replaced the manifest: then the next try finds a later generation. Otherwise
 * it is damage. */
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
    name = first_not_open(journal);
    if (error != ENOENT) {
        tool_complain(&check->tool, CHECK_UNREADABLE,
                      "%s: cannot be opened: %s", name, strerror(error));
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
check_journal_open_found(struct check *check, const char *path,
                         struct check_journal *ret_journal)
{
    char why[256] = "";
    enum check_found_journal found =
        check_journal_open(check, path, ret_journal, why, sizeof(why));

    if (found == JOURNAL_UNFINISHED || found == JOURNAL_BROKEN) {
        tool_complain(&check->tool, CHECK_DAMAGED, "%s: the manifest: %s", path,
                      why);
    }
    return found == JOURNAL_FOUND;
}

bool
check_journal_open_single(struct check *check, const char *path,
                          struct check_journal *ret_journal)
{
    struct check_increment *increment;

    memset(ret_journal, 0, sizeof(*ret_journal));
    (void)snprintf(ret_journal->path, sizeof(ret_journal->path), "%s", path);
    ret_journal->base_fd = -1;
    ret_journal->single = true;
    make_increments(ret_journal, 1);
    increment = &ret_journal->increments[0];
    (void)snprintf(increment->path, sizeof(increment->path), "%s", path);
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

/* ---- output -------------------------------------------------------------- */

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
            check_card_text(check, "run_id", increment->file->first.run_id);
            check_card_time(check, "created",
                            increment->file->first.created_ms);
        }
        check_card_text(check, "closed",
                        increment->file->closed ? "yes" : "no");
        if (!reached) {
            check_card_text(check, "note", "not reached");
        } else if (!journal->single) {
            check_card_number(check, "position", increment->position);
        }
        check_card_number(check, "groups", increment->file->groups);
        if (increment->file->groups > 0) {
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
    tool_complain(&check->tool, check_card_status(journal->state),
                  "%s: %s at offset %llu, where group %llu is due: %s; %s",
                  increment->path,
                  journal->state == CHECK_STATE_TORN ? "ends with a torn tail"
                                                     : "damaged",
                  (unsigned long long)journal->broken_offset,
                  (unsigned long long)due, journal->why, text);
}
