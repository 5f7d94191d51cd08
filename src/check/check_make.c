/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link is made from the open descriptor, not from the name, so that it leads
 * to the file that was checked even if the name has gone meanwhile.
 */
#include "check/check_make.h"

#include "base/file.h"
#include "base/mem.h"
#include "journal/group.h"
#include "snapshot/data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COPY_BYTES = 4 << 20,
    DIR_MODE = 0700,
    FILE_MODE = 0640,
    SECRET_MODE = 0600
};

static void
note_path(struct check_made *made, const char *path)
{
    if (made->count == made->capacity) {
        size_t capacity = made->capacity > 0 ? made->capacity * 2 : 16;
        char **paths = mem_try_realloc(made->paths, capacity * sizeof(*paths));

        CHECK(paths != NULL);
        made->paths = paths;
        made->capacity = capacity;
    }
    made->paths[made->count++] = mem_copy_text(slice_of(path));
}

/* Prints why something failed. EEXIST is a mistake in the command line, any
 * other error is the system's. */
static bool
cannot(struct check_made *made, const char *path, const char *what, int error)
{
    if (error == EEXIST) {
        tool_complain(&made->check->tool, CHECK_USAGE,
                      "%s: exists already; nothing was written", path);
    } else {
        tool_complain(&made->check->tool, CHECK_UNREADABLE,
                      "%s: cannot be %s: %s", path, what, strerror(error));
    }
    return false;
}

bool
check_make_dir(struct check_made *made, const char *path)
{
    if (made->stream != NULL) {
        return check_stream_dir(made->stream, path);
    }
    if (mkdir(path, DIR_MODE) != 0) {
        return cannot(made, path, "made", errno);
    }
    note_path(made, path);
    return true;
}

bool
check_make_file(struct check_made *made, const char *path, int *ret_fd)
{
    int fd;

    CHECK(made->stream == NULL);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0) {
        return cannot(made, path, "made", errno);
    }
    note_path(made, path);
    *ret_fd = fd;
    return true;
}

bool
check_make_write(struct check_made *made, int fd, const char *path,
                 struct slice bytes)
{
    int error = file_write(fd, bytes.data, bytes.len);

    return error == 0 || cannot(made, path, "written", error);
}

bool
check_make_done(struct check_made *made, int fd, const char *path)
{
    int error = file_sync(fd);

    file_close(fd);
    return error == 0 || cannot(made, path, "synced", error);
}

bool
check_make_text(struct check_made *made, const char *path, struct slice text)
{
    bool ok;
    int fd;

    if (made->stream != NULL) {
        return check_stream_text(made->stream, path, text);
    }
    if (!check_make_file(made, path, &fd)) {
        return false;
    }
    ok = fchmod(fd, SECRET_MODE) == 0 && check_make_write(made, fd, path, text);
    return check_make_done(made, fd, path) && ok;
}

/* Copies in pieces, to show the progress. copy_file_range lets the file system
 * share the blocks; where it fails, the rest is read and written. */
static int
copy_bytes(struct check *check, int from_fd, int to_fd, uint64_t len)
{
    uint64_t done = 0;
    char *block = NULL;
    int error = 0;

    while (done < len && error == 0) {
        size_t piece =
            len - done < COPY_BYTES ? (size_t)(len - done) : (size_t)COPY_BYTES;
        loff_t at = (loff_t)done;
        ssize_t got = block == NULL
                          ? copy_file_range(from_fd, &at, to_fd, NULL, piece, 0)
                          : -1;

        if (got <= 0) {
            size_t have = 0;

            block = block != NULL ? block : mem_alloc(COPY_BYTES);
            error = file_read_at(from_fd, block, piece, done, &have);
            if (error == 0) {
                error = file_write(to_fd, block, piece);
            }
            got = (ssize_t)piece;
        }
        done += (uint64_t)got;
        tool_bar_add(&check->tool, (uint64_t)got);
    }
    mem_free(block);
    return error;
}

bool
check_make_copy(struct check_made *made, int from_fd, uint64_t len,
                const char *from, const char *to)
{
    int error;
    int fd;

    if (made->stream != NULL) {
        return check_stream_file(made->stream, to, from_fd, len, from);
    }
    if (!check_make_file(made, to, &fd)) {
        return false;
    }
    error = copy_bytes(made->check, from_fd, fd, len);
    if (error != 0) {
        file_close(fd);
        tool_complain(&made->check->tool, CHECK_UNREADABLE,
                      "%s: cannot be copied to %s: %s", from, to,
                      strerror(error));
        return false;
    }
    return check_make_done(made, fd, to);
}

bool
check_make_link(struct check_made *made, int from_fd, const char *from,
                const char *to)
{
    char name[64];
    uint64_t bytes = 0;
    int error;

    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", from_fd);
    if (!made->copies &&
        linkat(AT_FDCWD, name, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0) {
        note_path(made, to);
        return true;
    }
    if (!made->copies && errno == EEXIST) {
        return cannot(made, to, "made", errno);
    }
    error = file_size(from_fd, &bytes);
    if (error != 0) {
        return cannot(made, from, "read", error);
    }
    return check_make_copy(made, from_fd, bytes, from, to);
}

static bool
stream_manifest(struct check_made *made, const char *path,
                const struct manifest *manifest)
{
    char *text = mem_alloc(MANIFEST_BYTES_MAX);
    size_t len = manifest_format(manifest, text);
    bool ok =
        check_stream_text(made->stream, path, (struct slice){ text, len });

    mem_free(text);
    return ok;
}

bool
check_make_manifest(struct check_made *made, const char *dir,
                    const struct manifest *manifest)
{
    char path[CHECK_PATH_MAX];
    int fd = -1;
    int error;

    /* The old files may contain any numbers. */
    if (manifest->generation >= GROUP_NUMBER_LIMIT ||
        manifest->position >= GROUP_POSITION_LIMIT ||
        manifest->sequence >= GROUP_NUMBER_LIMIT) {
        tool_complain(&made->check->tool, CHECK_DAMAGED,
                      "%s: no manifest can be written: the journal's numbers "
                      "are beyond all bounds",
                      dir);
        return false;
    }
    if (!check_file_join(made->check, dir, MANIFEST_NAME, path)) {
        return false;
    }
    if (made->stream != NULL) {
        return stream_manifest(made, path, manifest);
    }
    error = file_open_dir(dir, false, &fd);
    note_path(made, path);
    if (error == 0) {
        error = manifest_store(fd, manifest);
    }
    file_close(fd);
    return error == 0 || cannot(made, path, "written", error);
}

/* ---- a whole command ----------------------------------------------------- */

/* Stops at the first file. A lost+found, which a mount point has, is none. */
static bool
is_no_file(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           strcmp(name, "lost+found") == 0;
}

/* Returns whether a server has locked the directory. */
static bool
is_in_use(const char *path)
{
    char lock[CHECK_PATH_MAX];
    int fd;
    bool locked;

    (void)snprintf(lock, sizeof(lock), "%.4000s/%s", path,
                   data_files[FILE_LOCK].name);
    fd = open(lock, O_RDONLY | O_CLOEXEC);
    locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
    file_close(fd);
    return locked;
}

/* Returns whether the directory is empty, so that it can be filled. */
static bool
may_fill(struct check_made *made, const char *path)
{
    made->filled = check_file_each(made->check, path, is_no_file, NULL);
    if (!made->filled) {
        tool_complain(&made->check->tool, CHECK_USAGE,
                      is_in_use(path)
                          ? "%s: a server uses it; nothing was written"
                          : "%s: is not empty; nothing was written",
                      path);
    }
    return made->filled;
}

/* Refuses an `out` that cannot be made or filled, before hours of reading. */
static bool
is_vacant(struct check_made *made, const char *path)
{
    struct stat status;

    if (made->stream != NULL) {
        return true;
    }
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode) && made->fills) {
        return may_fill(made, path);
    }
    if (lstat(path, &status) == 0) {
        return cannot(made, path, "made", EEXIST);
    }
    return errno == ENOENT || cannot(made, path, "made", errno);
}

static bool
sync_dir(struct check_made *made, const char *path)
{
    int fd = -1;
    int error;

    if (made->stream != NULL) {
        return true;
    }
    error = file_open_dir(path, false, &fd);
    if (error == 0) {
        error = file_sync_dir(fd);
    }
    file_close(fd);
    return error == 0 || cannot(made, path, "synced", error);
}

/* Makes the name `path` durable. */
static bool
sync_parent(struct check_made *made, const char *path)
{
    char parent[CHECK_PATH_MAX];
    const char *name = check_file_name(path);
    size_t len = (size_t)(name - path);

    if (len == 0) {
        return sync_dir(made, ".");
    }
    CHECK(len < sizeof(parent));
    memcpy(parent, path, len);
    parent[len] = '\0';
    return sync_dir(made, parent);
}

/* Makes the snapshots first. A snapshot that is newer than the copy of the
 * journal would make the journal look out of date. */
static bool
make_contents(struct check_made *made, const struct check_data *data,
              const char *out, const struct check_maker *maker)
{
    char from[CHECK_PATH_MAX];
    char to[CHECK_PATH_MAX];
    bool ok = true;

    for (size_t i = 0; ok && maker->snapshot != NULL && i < data->count; i++) {
        const char *name = data->snapshots[i];

        ok = check_file_join(made->check, data->path, name, from) &&
             check_file_join(made->check, out, name, to) &&
             maker->snapshot(maker->ctx, from, to);
    }
    if (ok && data->journal[0] != '\0') {
        ok = check_file_join(made->check, data->path, data->journal, from) &&
             check_file_join(made->check, out, data->journal, to) &&
             maker->journal(maker->ctx, from, to, data);
    }
    return ok;
}

static bool
make_data(struct check_made *made, const char *path, const char *out,
          const struct check_maker *maker)
{
    struct check_data *data = mem_zalloc(sizeof(*data));
    bool ok = check_file_list(made->check, path, data);

    if (ok && maker->snapshot == NULL && data->journal[0] == '\0') {
        tool_complain(&made->check->tool, CHECK_USAGE, "%s: holds no journal",
                      path);
        ok = false;
    }
    ok = ok && (made->filled || check_make_dir(made, out)) &&
         make_contents(made, data, out, maker) &&
         (maker->beside == NULL || maker->beside(maker->ctx, path, out)) &&
         sync_dir(made, out);
    mem_free(data);
    return ok;
}

static bool
make_kind(struct check_made *made, const char *path, const char *out,
          const struct check_maker *maker)
{
    enum check_kind kind;

    if (maker->stream != NULL && strcmp(path, CHECK_STREAM_NAME) == 0) {
        return (made->filled || check_make_dir(made, out)) &&
               maker->stream(maker->ctx, out) && sync_dir(made, out);
    }
    if (!check_file_kind(made->check, path, &kind)) {
        return false;
    }
    if (kind == CHECK_KIND_SNAPSHOT && maker->snapshot != NULL) {
        return maker->snapshot(maker->ctx, path, out);
    }
    if (kind == CHECK_KIND_INCREMENT && maker->increment != NULL) {
        return maker->increment(maker->ctx, path, out);
    }
    if (kind == CHECK_KIND_JOURNAL) {
        return maker->journal(maker->ctx, path, out, NULL);
    }
    if (kind == CHECK_KIND_DATA) {
        return make_data(made, path, out, maker);
    }
    tool_complain(&made->check->tool, CHECK_USAGE, "%s: %s", path,
                  maker->refusal);
    return false;
}

static void
remove_all(struct check_made *made)
{
    for (size_t i = made->count; i > 0; i--) {
        if (unlink(made->paths[i - 1]) != 0 && errno == EISDIR) {
            (void)rmdir(made->paths[i - 1]);
        }
    }
}

/* Gives the new files to the owner of the directory that they fill, or else to
 * the owner of the files that they were made from. A stream has no owner. */
static bool
give(struct check_made *made, const char *path, const char *out)
{
    struct stat status;
    bool owned = made->filled || strcmp(path, CHECK_STREAM_NAME) != 0;
    bool ok = stat(made->filled ? out : path, &status) == 0 || !owned;

    for (size_t i = 0; i < made->count && ok && owned && geteuid() == 0; i++) {
        ok = chown(made->paths[i], status.st_uid, status.st_gid) == 0;
    }
    return ok || cannot(made, out, "given to its owner", errno);
}

bool
check_make_all(struct check_made *made, const char *path, const char *out,
               const struct check_maker *maker)
{
    bool ok = is_vacant(made, out) && make_kind(made, path, out, maker) &&
              (!made->fills || give(made, path, out)) && sync_parent(made, out);

    if (!ok) {
        remove_all(made);
    }
    for (size_t i = 0; i < made->count; i++) {
        mem_free(made->paths[i]);
    }
    mem_free(made->paths);
    return ok;
}
