/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server never writes to snapshots, bases and closed increments again, so
 * they are linked. The open increments grow, so their intact groups are copied.
 * The new manifest calls all of them closed: the backup never changes, whatever
 * happens to the original.
 */
#include "check/check_backup.h"

#include "base/file.h"
#include "base/mem.h"
#include "check/check_beside.h"
#include "check/check_chain.h"
#include "check/check_make.h"
#include "check/check_outer.h"
#include "check/check_unpack.h"
#include "check/check_verify.h"
#include "tools/secrets.h"

#include <string.h>

struct backup {
    struct check *check;
    struct check_made made;
    struct check_whole snapshot; /* with a stream: what a start would load */
};

/* Verifies a snapshot before it goes into a stream, which cannot be read
 * again. */
static bool
is_sound_snapshot(struct backup *backup, int fd, const char *from)
{
    if (backup->made.stream == NULL) {
        return true;
    }
    backup->snapshot = check_verify_snapshot(backup->check, fd, from, true);
    backup->check->filters = backup->snapshot.keys;
    return backup->snapshot.state <= CHECK_STATE_TORN;
}

static bool
backup_snapshot(void *ctx, const char *from, const char *to)
{
    struct backup *backup = ctx;
    int fd = -1;
    bool ok = check_file_open(backup->check, from, &fd) &&
              is_sound_snapshot(backup, fd, from) &&
              check_make_link(&backup->made, fd, from, to);

    file_close(fd);
    return ok;
}

/* Decides whether the journal may be copied. With a stream it is verified as a
 * whole now. */
static bool
is_sound_journal(struct backup *backup, const char *path,
                 struct check_journal *journal)
{
    struct check_whole state;

    if (backup->made.stream != NULL) {
        state = check_verify_journal(backup->check, path, journal, true);
        if (check_verify_takes_journal(&backup->snapshot, &state)) {
            backup->check->filters = state.keys;
        }
        return state.state <= CHECK_STATE_TORN;
    }
    check_chain_scan(backup->check, journal, NULL, NULL);
    if (journal->state > CHECK_STATE_TORN) {
        check_journal_complain(backup->check, journal);
    }
    return journal->state <= CHECK_STATE_TORN;
}

/* Links a closed increment; copies the intact groups of an open one. */
static bool
backup_increment(struct backup *backup, const struct check_increment *increment,
                 const char *to, struct manifest_increment *ret_entry)
{
    ret_entry->number = increment->number;
    ret_entry->closed = true;
    if (increment->file->closed) {
        ret_entry->bytes = increment->file->bytes;
        return check_make_link(&backup->made, increment->fd, increment->path,
                               to);
    }
    ret_entry->bytes = increment->file->end;
    return check_make_copy(&backup->made, increment->fd, increment->file->end,
                           increment->path, to);
}

static bool
write_journal(struct backup *backup, const struct check_journal *journal,
              const char *out, struct manifest *manifest)
{
    char to[CHECK_PATH_MAX];

    if (!check_make_dir(&backup->made, out) ||
        !check_file_join(backup->check, out,
                         check_file_name(journal->base_path), to) ||
        !check_make_link(&backup->made, journal->base_fd, journal->base_path,
                         to)) {
        return false;
    }
    *manifest = journal->manifest;
    manifest->generation++;
    manifest->count = 0;
    for (size_t i = 0; i < journal->count; i++) {
        const struct check_increment *increment = &journal->increments[i];

        /* Increments behind a torn tail do not count. */
        if (increment->file->end < GROUP_FIRST_LINE_BYTES) {
            break;
        }
        if (!check_file_join(backup->check, out,
                             check_file_name(increment->path), to) ||
            !backup_increment(backup, increment, to,
                              &manifest->increments[manifest->count++])) {
            return false;
        }
    }
    return check_make_manifest(&backup->made, out, manifest);
}

static bool
backup_journal(void *ctx, const char *path, const char *out,
               const struct check_data *data)
{
    struct backup *backup = ctx;
    struct check_journal *journal = mem_zalloc(sizeof(*journal));
    struct manifest *manifest = mem_alloc(sizeof(*manifest));
    enum check_found_journal found;
    char why[512] = "";
    bool ok = false;

    found = check_journal_open(backup->check, path, journal, why, sizeof(why));
    if (found == JOURNAL_FOUND) {
        ok = is_sound_journal(backup, path, journal) &&
             write_journal(backup, journal, out, manifest);
        check_journal_close(journal);
    } else if (found == JOURNAL_UNFINISHED) {
        ok = data != NULL; /* the snapshot beside it is the whole state */
        tool_complain(&backup->check->tool, ok ? CHECK_INTACT : CHECK_USAGE,
                      "%s: the manifest: %s", path, why);
    } else if (found == JOURNAL_BROKEN) {
        tool_complain(&backup->check->tool, CHECK_DAMAGED,
                      "%s: the manifest: %s", path, why);
    }
    mem_free(manifest);
    mem_free(journal);
    return ok;
}

static bool
backup_beside(void *ctx, const char *path, const char *out)
{
    struct backup *backup = ctx;

    if (backup->made.fills) {
        return check_beside_copy(&backup->made, path, out,
                                 check_beside_restore);
    }
    return check_beside_copy(&backup->made, path, out, check_beside_backup) &&
           check_outer_copy(&backup->made, path, out);
}

/* Restores from standard input. The secrets that verifying needs have come with
 * the archive. */
static bool
restore_stream(void *ctx, const char *out)
{
    struct backup *backup = ctx;

    if (!check_unpack(&backup->made, out)) {
        return false;
    }
    secrets_find(out);
    return true;
}

static bool
make_backup(struct backup *backup, const char *path, const char *out)
{
    struct check_maker maker = {
        .snapshot = backup_snapshot,
        .journal = backup_journal,
        .beside = backup_beside,
        .stream = backup->made.fills ? restore_stream : NULL,
        .refusal = "is no snapshot, journal or data directory",
        .ctx = backup,
    };

    return check_make_all(&backup->made, path, out, &maker);
}

static bool
is_data(struct check *check, const char *path, const char *refusal)
{
    enum check_kind kind;

    if (!check_file_kind(check, path, &kind)) {
        return false;
    }
    if (kind != CHECK_KIND_DATA) {
        tool_complain(&check->tool, CHECK_USAGE, "%s: %s", path, refusal);
    }
    return kind == CHECK_KIND_DATA;
}

void
check_backup(struct check *check, const char *path, const char *out)
{
    struct backup backup = { .check = check, .made = { .check = check } };

    if (make_backup(&backup, path, out)) {
        check_verify(check, out, true);
    }
}

void
check_backup_stream(struct check *check, const char *path)
{
    struct backup backup = { .check = check,
                             .made = { .check = check, .copies = true } };

    if (!is_data(check, path, "is no data directory, and --tar needs one")) {
        return;
    }
    backup.made.stream = check_stream_new(check);
    if (backup.made.stream != NULL &&
        make_backup(&backup, path, CHECK_STREAM_NAME)) {
        (void)check_stream_end(backup.made.stream);
    }
    check_stream_free(backup.made.stream);
}

void
check_restore(struct check *check, const char *path, const char *out)
{
    struct backup backup = {
        .check = check,
        .made = { .check = check, .copies = true, .fills = true }
    };

    if ((strcmp(path, CHECK_STREAM_NAME) == 0 ||
         is_data(check, path, "is no backup of a data directory")) &&
        make_backup(&backup, path, out)) {
        check_verify(check, out, true);
    }
}
