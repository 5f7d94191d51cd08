/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/file_room.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK_BYTES = 512 /* the unit of st_blocks */ };

static bool
is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* Returns 0 or errno. */
static int
name_room(const char *name, char ret_room[NAME_MAX + 1])
{
    int len = snprintf(ret_room, NAME_MAX + 1, "%.250s" FILE_ROOM_SUFFIX, name);

    return len > NAME_MAX || strlen(name) > 250 ? ENAMETOOLONG : 0;
}

/* Opens the room file, unless it has another link: a backup may have linked it
 * when it was the file in use. */
static int
open_room(int dir_fd, const char *room, struct stat *ret_status)
{
    int fd = openat(dir_fd, room, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, ret_status) != 0 || !S_ISREG(ret_status->st_mode) ||
        ret_status->st_nlink != 1) {
        file_close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

int
file_room_make(int dir_fd, const char *name, uint64_t bytes)
{
    char room[NAME_MAX + 1];
    struct stat status = { .st_blocks = 0 };
    int error = name_room(name, room);
    int fd = error == 0 ? open_room(dir_fd, room, &status) : -1;
    bool made;

    if (error != 0) {
        return error;
    }
    if (fd >= 0 && (uint64_t)status.st_blocks * BLOCK_BYTES >= bytes) {
        file_close(fd);
        return 0;
    }
    made = fd < 0;
    if (made) {
        error = file_create(dir_fd, room, &fd);
        if (error == 0 && fchmod(fd, S_IRUSR | S_IWUSR) != 0) {
            error = errno;
        }
    }
    error = error != 0 ? error : file_reserve(fd, bytes);
    error = error != 0 ? error : file_sync(fd);
    file_close(fd);
    if (error != 0 && made) {
        (void)!file_unlink(dir_fd, room);
    }
    return error != 0 ? error : file_sync_dir(dir_fd);
}

/* Appends line feeds from `from` to `to`. */
static int
pad(int fd, uint64_t from, uint64_t to)
{
    char *feeds;
    int error;

    if (from >= to) {
        return 0;
    }
    feeds = mem_alloc(to - from);
    memset(feeds, '\n', to - from);
    error = file_write(fd, feeds, to - from);
    mem_free(feeds);
    return error;
}

/* Writes the text to the room file, which can still be used after a failed
 * write, but not after a failed sync. */
static int
write_room(int dir_fd, const char *room, struct slice text)
{
    struct stat status;
    int fd = open_room(dir_fd, room, &status);
    int error;

    if (fd < 0) {
        return errno;
    }
    error = file_write(fd, text.data, text.len);
    error = error != 0 ? error : pad(fd, text.len, (uint64_t)status.st_size);
    if (error == 0) {
        error = file_sync(fd);
        if (error != 0) {
            (void)!file_unlink(dir_fd, room);
        }
    }
    file_close(fd);
    return error;
}

/* Gives the room file the name of the file. Without an old file, or on a file
 * system that cannot exchange names, there is no room file afterwards. */
static int
give_name(int dir_fd, const char *room, const char *name)
{
    int error = file_exchange(dir_fd, room, name);

    if (error == ENOENT || error == EINVAL || error == ENOSYS ||
        error == EOPNOTSUPP) {
        error = file_rename(dir_fd, room, name);
    }
    return error != 0 ? error : file_sync_dir(dir_fd);
}

int
file_room_replace(int dir_fd, const char *name, struct slice text,
                  uint64_t bytes)
{
    char room[NAME_MAX + 1];
    int full = file_replace_reserved(dir_fd, name, text, bytes);
    int error = name_room(name, room);

    if (!is_full(full) || error != 0) {
        return full;
    }
    error = write_room(dir_fd, room, text);
    if (error == ENOENT) {
        return full;
    }
    return error != 0 ? error : give_name(dir_fd, room, name);
}
