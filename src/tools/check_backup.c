/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots, bases and closed increments are never written to again: they get
 * a second name. Of increments that are still written to, the intact groups
 * are copied. The new manifest calls all of them closed, so the backup stands
 * still whatever happens to the original.
 */
#include "tools/check_backup.h"

#include "base/file.h"
#include "base/mem.h"
#include "tools/check_journal.h"
#include "tools/check_make.h"
#include "tools/check_snapshot.h"
#include "tools/check_verify.h"

struct backup {
    struct check *check;
    struct check_made made;
};

static bool
backup_snapshot(struct backup *backup, const char *from, const char *to)
{
    int fd = -1;
    bool ok = check_snapshot_open(backup->check, from, &fd) &&
              check_make_link(&backup->made, fd, from, to);

    file_close(fd);
    return ok;
}

/* Closed ones keep their bytes; of open ones what the scan took. */
static bool
backup_increment(struct backup *backup, const struct check_increment *increment,
                 const char *to, struct manifest_increment *ret_entry)
{
    ret_entry->number = increment->number;
    ret_entry->closed = true;
    if (increment->closed) {
        ret_entry->bytes = increment->closed_bytes;
        return check_make_link(&backup->made, increment->fd, increment->path,
                               to);
    }
    ret_entry->bytes = increment->end;
    return check_make_copy(&backup->made, increment->fd, increment->end,
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

        /* Behind a torn tail nothing counts. */
        if (increment->end < GROUP_FIRST_LINE_BYTES) {
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
backup_journal(struct backup *backup, const char *path, const char *out,
               bool in_data)
{
    struct check_journal *journal = mem_zalloc(sizeof(*journal));
    struct manifest *manifest = mem_alloc(sizeof(*manifest));
    enum check_found_journal found;
    char why[256] = "";
    bool ok = false;

    found = check_journal_open(backup->check, path, journal, why, sizeof(why));
    if (found == JOURNAL_FOUND) {
        check_journal_scan(backup->check, journal, NULL, NULL);
        if (journal->state > CHECK_STATE_TORN) {
            check_journal_complain(backup->check, journal);
        } else {
            ok = write_journal(backup, journal, out, manifest);
        }
        check_journal_close(journal);
    } else if (found == JOURNAL_UNFINISHED) {
        ok = in_data; /* the snapshot beside it is all that there is */
        check_complain(backup->check, ok ? CHECK_INTACT : CHECK_USAGE,
                       "%s: the manifest: %s", path, why);
    } else if (found == JOURNAL_BROKEN) {
        check_complain(backup->check, CHECK_DAMAGED, "%s: the manifest: %s",
                       path, why);
    }
    mem_free(manifest);
    mem_free(journal);
    return ok;
}

/* Snapshots first: one that is younger than the copy of the journal would
 * make that look out of date. */
static bool
backup_data(struct backup *backup, const char *path, const char *out)
{
    struct check_data *data = mem_zalloc(sizeof(*data));
    char from[CHECK_PATH_MAX];
    char to[CHECK_PATH_MAX];
    bool ok = check_file_list(backup->check, path, data) &&
              check_make_dir(&backup->made, out);

    for (size_t i = 0; ok && i < data->count; i++) {
        ok = check_file_join(backup->check, path, data->snapshots[i], from) &&
             check_file_join(backup->check, out, data->snapshots[i], to) &&
             backup_snapshot(backup, from, to);
    }
    if (ok && data->journal[0] != '\0') {
        ok = check_file_join(backup->check, path, data->journal, from) &&
             check_file_join(backup->check, out, data->journal, to) &&
             backup_journal(backup, from, to, true);
    }
    ok = ok && check_make_sync_dir(&backup->made, out);
    mem_free(data);
    return ok;
}

static bool
backup_kind(struct backup *backup, const char *path, const char *out)
{
    enum check_kind kind;

    if (!check_file_kind(backup->check, path, &kind)) {
        return false;
    }
    switch (kind) {
    case CHECK_KIND_SNAPSHOT:
        return backup_snapshot(backup, path, out);
    case CHECK_KIND_JOURNAL:
        return backup_journal(backup, path, out, false);
    case CHECK_KIND_DATA:
        return backup_data(backup, path, out);
    default:
        check_complain(backup->check, CHECK_USAGE,
                       "%s: is no snapshot, journal or data directory", path);
        return false;
    }
}

void
check_backup(struct check *check, const char *path, const char *out)
{
    struct backup backup = { .check = check, .made = { .check = check } };

    if (check_make_vacant(&backup.made, out) &&
        backup_kind(&backup, path, out) &&
        check_make_sync_parent(&backup.made, out)) {
        check_made_fini(&backup.made);
        check_verify(check, out, true);
    } else {
        check_made_undo(&backup.made);
    }
}
