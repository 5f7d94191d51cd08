/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link is made of the open file, not of its name, so that what was looked
 * at is what is linked, even if its name has gone meanwhile.
 */
#include "tools/check_make.h"

#include "base/file.h"
#include "base/mem.h"
#include "persist/group.h"
#include "tools/check_card.h"
#include "tools/check_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 4 << 20, DIR_MODE = 0750, FILE_MODE = 0640 };

static void
note(struct check_made *made, const char *path)
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

void
check_made_undo(struct check_made *made)
{
    for (size_t i = made->count; i > 0; i--) {
        if (unlink(made->paths[i - 1]) != 0 && errno == EISDIR) {
            (void)rmdir(made->paths[i - 1]);
        }
    }
    check_made_fini(made);
}

void
check_made_fini(struct check_made *made)
{
    for (size_t i = 0; i < made->count; i++) {
        mem_free(made->paths[i]);
    }
    mem_free(made->paths);
    made->paths = NULL;
    made->count = 0;
    made->capacity = 0;
}

/* EEXIST is a mistake of the command line; anything else is the system's. */
static bool
cannot(struct check_made *made, const char *path, const char *what, int error)
{
    if (error == EEXIST) {
        check_complain(made->check, CHECK_USAGE,
                       "%s: exists already; nothing was written", path);
    } else {
        check_complain(made->check, CHECK_UNREADABLE, "%s: cannot be %s: %s",
                       path, what, strerror(error));
    }
    return false;
}

bool
check_make_vacant(struct check_made *made, const char *path)
{
    struct stat status;

    if (lstat(path, &status) == 0) {
        return cannot(made, path, "made", EEXIST);
    }
    return errno == ENOENT || cannot(made, path, "made", errno);
}

bool
check_make_dir(struct check_made *made, const char *path)
{
    if (mkdir(path, DIR_MODE) != 0) {
        return cannot(made, path, "made", errno);
    }
    note(made, path);
    return true;
}

bool
check_make_file(struct check_made *made, const char *path, int *ret_fd)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);

    if (fd < 0) {
        return cannot(made, path, "made", errno);
    }
    note(made, path);
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

/* In pieces, so that the progress is seen. The kernel copies where it can,
 * and shares the blocks where the file system can. */
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
        check_bar_add(check, (uint64_t)got);
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

    if (!check_make_file(made, to, &fd)) {
        return false;
    }
    error = copy_bytes(made->check, from_fd, fd, len);
    if (error != 0) {
        file_close(fd);
        check_complain(made->check, CHECK_UNREADABLE,
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
    if (linkat(AT_FDCWD, name, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0) {
        note(made, to);
        return true;
    }
    if (errno == EEXIST) {
        return cannot(made, to, "made", errno);
    }
    error = file_size(from_fd, &bytes);
    if (error != 0) {
        return cannot(made, from, "read", error);
    }
    return check_make_copy(made, from_fd, bytes, from, to);
}

bool
check_make_sync_dir(struct check_made *made, const char *path)
{
    int fd = -1;
    int error = file_open_dir(path, false, &fd);

    if (error == 0) {
        error = file_sync_dir(fd);
    }
    file_close(fd);
    return error == 0 || cannot(made, path, "synced", error);
}

bool
check_make_sync_parent(struct check_made *made, const char *path)
{
    char parent[CHECK_PATH_MAX];
    const char *name = check_file_name(path);
    size_t len = (size_t)(name - path);

    if (len == 0) {
        return check_make_sync_dir(made, ".");
    }
    CHECK(len < sizeof(parent));
    memcpy(parent, path, len);
    parent[len] = '\0';
    return check_make_sync_dir(made, parent);
}

bool
check_make_manifest(struct check_made *made, const char *dir,
                    const struct manifest *manifest)
{
    char path[CHECK_PATH_MAX];
    int fd = -1;
    int error;

    /* Whoever made the old files up may have put anything there. */
    if (manifest->generation >= GROUP_NUMBER_LIMIT ||
        manifest->position >= GROUP_POSITION_LIMIT ||
        manifest->sequence >= GROUP_NUMBER_LIMIT) {
        check_complain(made->check, CHECK_DAMAGED,
                       "%s: no manifest can be written: the journal's numbers "
                       "are beyond all bounds",
                       dir);
        return false;
    }
    if (!check_file_join(made->check, dir, MANIFEST_NAME, path)) {
        return false;
    }
    error = file_open_dir(dir, false, &fd);
    note(made, path);
    if (error == 0) {
        error = manifest_store(fd, manifest);
    }
    file_close(fd);
    return error == 0 || cannot(made, path, "written", error);
}
