/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server never writes to snapshots, bases and closed increments again, so
 * they are linked. The open increments grow, so their intact groups are copied.
 * The new manifest calls all of them closed: the backup never changes, whatever
 * happens to the original.
 */
#include "tools/check_backup.h"

#include "base/file.h"
#include "base/mem.h"
#include "tools/check_beside.h"
#include "tools/check_chain.h"
#include "tools/check_make.h"
#include "tools/check_verify.h"

struct backup {
    struct check *check;
    struct check_made made;
};

static bool
backup_snapshot(void *ctx, const char *from, const char *to)
{
    struct backup *backup = ctx;
    int fd = -1;
    bool ok = check_file_open(backup->check, from, &fd) &&
              check_make_link(&backup->made, fd, from, to);

    file_close(fd);
    return ok;
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
    char why[256] = "";
    bool ok = false;

    found = check_journal_open(backup->check, path, journal, why, sizeof(why));
    if (found == JOURNAL_FOUND) {
        check_chain_scan(backup->check, journal, NULL, NULL);
        if (journal->state > CHECK_STATE_TORN) {
            check_journal_complain(backup->check, journal);
        } else {
            ok = write_journal(backup, journal, out, manifest);
        }
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

    return check_beside_copy(&backup->made, path, out,
                             backup->made.fills ? check_beside_restore
                                                : check_beside_backup);
}

/* Makes the copy, and verifies it. */
static void
make(struct backup *backup, const char *path, const char *out)
{
    struct check_maker maker = {
        .snapshot = backup_snapshot,
        .journal = backup_journal,
        .beside = backup_beside,
        .refusal = "is no snapshot, journal or data directory",
        .ctx = backup,
    };

    if (check_make_all(&backup->made, path, out, &maker)) {
        check_verify(backup->check, out, true);
    }
}

void
check_backup(struct check *check, const char *path, const char *out)
{
    struct backup backup = { .check = check, .made = { .check = check } };

    make(&backup, path, out);
}

void
check_restore(struct check *check, const char *path, const char *out)
{
    struct backup backup = {
        .check = check,
        .made = { .check = check, .copies = true, .fills = true }
    };
    enum check_kind kind;

    if (!check_file_kind(check, path, &kind)) {
        return;
    }
    if (kind != CHECK_KIND_DATA) {
        tool_complain(&check->tool, CHECK_USAGE,
                      "%s: is no backup of a data directory", path);
        return;
    }
    make(&backup, path, out);
}
