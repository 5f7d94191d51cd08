/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes, names and removes the files of the journal.
 */

#include "persist/journal_dir.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "journal/group.h"
#include "journal/kept.h"
#include "persist/directory.h"
#include "persist/persist_state.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool
is_named(const struct manifest *manifest, const char *name)
{
    char known[MANIFEST_FILE_NAME_MAX];

    manifest_base_name(manifest->base_number, known);
    if (strcmp(name, known) == 0) {
        return true;
    }
    for (uint32_t i = 0; i < manifest->count; i++) {
        manifest_increment_name(manifest->increments[i].number, known);
        if (strcmp(name, known) == 0) {
            return true;
        }
    }
    return false;
}

static bool
has_temporary_name(const char *name)
{
    size_t len = strlen(name);

    return len > 4 && strcmp(name + len - 4, ".tmp") == 0;
}

/* Returns whether the file is a base, an increment, a manifest, or a temporary
 * file of one of these. */
static bool
is_ours(const char *name)
{
    size_t len = strlen(name);
    bool temporary = has_temporary_name(name);
    char stem[64];

    len -= temporary ? 4 : 0;
    if (len >= sizeof(stem)) {
        return false;
    }
    memcpy(stem, name, len);
    stem[len] = '\0';
    return manifest_is_file_name(stem) || strcmp(stem, KEPT_NAME) == 0 ||
           strcmp(name, MANIFEST_NAME ".tmp") == 0;
}

void
journal_dir_tidy(const struct persist *persist)
{
    DIR *dir =
        persist->journal_fd < 0 ? NULL : file_list_dir(persist->journal_fd);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_ours(entry->d_name) && has_temporary_name(entry->d_name)) {
            (void)!file_unlink(persist->journal_fd, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* A failure is harmless: the next call tries again. */
void
journal_dir_clean(const struct persist *persist,
                  const struct manifest *manifest)
{
    struct manifest *kept = mem_try_alloc(sizeof(*kept));
    DIR *dir = persist->files.doubt == DOUBT_MANY || kept == NULL
                   ? NULL
                   : file_list_dir(persist->journal_fd);
    struct dirent *entry;

    if (dir == NULL) {
        mem_free(kept);
        return;
    }
    (void)kept_load(persist->journal_fd, kept);
    while ((entry = readdir(dir)) != NULL) {
        if (is_ours(entry->d_name) && !is_named(manifest, entry->d_name) &&
            !kept_has(kept, entry->d_name) &&
            (kept->count == 0 || strcmp(entry->d_name, KEPT_NAME) != 0) &&
            !(persist->files.doubt == DOUBT_ONE &&
              is_named(&persist->files.doubtful, entry->d_name))) {
            (void)!file_unlink(persist->journal_fd, entry->d_name);
        }
    }
    (void)closedir(dir);
    mem_free(kept);
}

void
journal_dir_keep(const struct persist *persist, const struct manifest *fresh,
                 uint64_t needed, uint64_t limit_bytes)
{
    struct manifest *kept = mem_try_zalloc(sizeof(*kept));
    uint64_t bytes = 0;
    int error = kept == NULL ? ENOMEM : 0;

    if (error == 0 && limit_bytes > 0) {
        (void)kept_load(persist->journal_fd, kept);
        bytes = kept_extend(persist->journal_fd, kept, &persist->files.manifest,
                            fresh, needed, limit_bytes);
    }
    if (error == 0) {
        error = kept_store(persist->journal_fd, kept);
    }
    if (error != 0) {
        log_warn("persist.rewrite", "cannot keep what a merge may need",
                 "dir=\"%s\" error=\"%s\"", persist->journal_dir,
                 strerror(error));
    } else if (bytes > 0) {
        log_info("persist.rewrite", "keeps what a merge may need",
                 "position=%llu bytes=%llu", (unsigned long long)kept->position,
                 (unsigned long long)bytes);
    }
    mem_free(kept);
}

/* Some files may stay after the manifest is removed. The mark, which stays,
 * says that they are rubbish. */
int
journal_dir_clear(struct persist *persist)
{
    struct dirent *entry;
    DIR *dir;
    int error = 0;

    if (persist->journal_fd < 0) {
        return 0;
    }
    if (directory_has(persist->journal_fd, MANIFEST_NAME)) {
        error = manifest_mark(persist->journal_fd);
        if (error == 0) {
            error = file_unlink(persist->journal_fd, MANIFEST_NAME);
        }
    }
    if (error == 0) {
        error = file_sync_dir(persist->journal_fd);
    }
    if (error != 0) {
        return error;
    }
    dir = file_list_dir(persist->journal_fd);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_ours(entry->d_name)) {
            (void)!file_unlink(persist->journal_fd, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return 0;
}

/* Keeps a journal that cannot be used: the operator may want it. */
int
journal_dir_set_aside(struct persist *persist, const char *why)
{
    char to[512];
    const char *name = persist->journal_name;
    int error;

    (void)snprintf(to, sizeof(to), "%s.stale-%llu", name,
                   (unsigned long long)clock_wall_ms());
    error = file_rename(persist->dir_fd, name, to);
    if (error == 0) {
        error = file_sync_dir(persist->dir_fd);
    }
    if (error == 0) {
        file_close(persist->journal_fd);
        persist->journal_fd = -1;
        log_warn("persist.rewrite", "set a journal aside",
                 "reason=\"%s\" directory=\"%s/%s\"", why, persist->dir, to);
    }
    return error == ENOENT ? 0 : error; /* ENOENT: the journal is gone */
}

/* Makes the path free after the directory was moved or removed. Sets aside a
 * journal of another server, or a backup, that was put there. */
static int
clear_place(struct persist *persist)
{
    struct manifest *manifest = mem_try_alloc(sizeof(*manifest));
    enum manifest_status found = MANIFEST_MISSING;
    char why[256];
    int fd = -1;
    int error = manifest == NULL
                    ? ENOMEM
                    : file_open_dir(persist->journal_dir, false, &fd);

    if (error == 0) {
        found = manifest_load(fd, manifest, why, sizeof(why));
        file_close(fd);
    }
    mem_free(manifest);
    if (error == 0 && found != MANIFEST_MISSING) {
        return journal_dir_set_aside(persist, "it was put there meanwhile");
    }
    return error == ENOENT ? 0 : error;
}

/* Makes the mark if there is no manifest. Fails if it cannot find out whether
 * there is one: the next start could not interpret files without manifest and
 * mark. */
static int
mark_unfinished(int dir_fd)
{
    int fd = -1;
    int error = file_open(dir_fd, MANIFEST_NAME, &fd);

    file_close(fd);
    return error == ENOENT ? manifest_mark(dir_fd) : error;
}

int
journal_dir_open(struct persist *persist)
{
    int error = 0;

    if (persist->journal_fd >= 0 &&
        file_is_dir_at(persist->journal_fd, persist->journal_dir) != 0) {
        file_close(persist->journal_fd);
        persist->journal_fd = -1;
        error = clear_place(persist);
    }
    if (error == 0 && persist->journal_fd < 0) {
        error = file_open_dir(persist->journal_dir, true, &persist->journal_fd);
    }
    return error == 0 ? mark_unfinished(persist->journal_fd) : error;
}

int
journal_dir_make_increment(struct persist *persist, uint64_t number,
                           struct journal_file *ret_file)
{
    char name[MANIFEST_FILE_NAME_MAX];
    char line[GROUP_FIRST_LINE_BYTES];
    struct group_file first = { .created_ms = clock_wall_ms() };
    int fd = -1;
    int error;

    random_bytes(&first.key, sizeof(first.key));
    (void)snprintf(first.run_id, sizeof(first.run_id), "%.40s",
                   persist->options.run_id);
    group_write_first_line(&first, line);
    manifest_increment_name(number, name);
    error = file_create(persist->journal_fd, name, &fd);
    if (error == 0) {
        error = file_write(fd, line, sizeof(line));
    }
    if (error == 0) {
        error = file_sync(fd);
    }
    if (error == 0) {
        error = file_sync_dir(persist->journal_fd);
    }
    if (error != 0) {
        file_close(fd);
        return error;
    }
    *ret_file =
        (struct journal_file){ .fd = fd, .key = first.key, .number = number };
    return 0;
}

uint64_t
journal_dir_bytes(int dir_fd, const char *name)
{
    uint64_t bytes = 0;
    int fd;

    if (file_open(dir_fd, name, &fd) == 0) {
        (void)!file_size(fd, &bytes);
        file_close(fd);
    }
    return bytes;
}
