/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files for durable state: whole writes, names relative to an open directory,
 * and 0 or an errno value as the result. EINTR and short writes are handled
 * here. Any thread.
 *
 * Nothing is durable before file_sync of the file and, for a new or changed
 * name, file_sync_dir of its directory. A failed sync is final: Linux may have
 * dropped the pages and marked them clean, so that the next one succeeds
 * (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Opens a directory, for the dir_fd of the other functions. If `make` is set,
 * creates it if it is missing (mode 0750), and syncs its parent. */
MUST_CHECK int file_open_dir(const char *path, bool make, int *ret_fd);

/* file_identify() identifies an open file or directory; while that is open, no
 * other one gets its identity. file_find() returns 0 if the path leads to this
 * file, ESTALE if it leads to another, else an errno value (ENOENT: to none).
 * file_is_dir_at() does both, for the open directory fd. */
struct file_identity {
    uint64_t device, number;
};
MUST_CHECK int file_identify(int fd, struct file_identity *ret_identity);
MUST_CHECK int file_find(const char *path,
                         const struct file_identity *identity);
MUST_CHECK int file_is_dir_at(int fd, const char *path);

/* Opens a regular file, or a link to one, to read it. Fails at once with EISDIR
 * for a directory, and with EMEDIUMTYPE ("Wrong medium type") for a FIFO, a
 * socket or a device. */
MUST_CHECK int file_open(int dir_fd, const char *name, int *ret_fd);

/* Creates an empty file to write to (mode 0640). An existing file of that name
 * is unlinked, not overwritten. All descriptors close on exec. */
MUST_CHECK int file_create(int dir_fd, const char *name, int *ret_fd);
/* Creates a file without a name in the directory, to write to and to read: it
 * is gone when it is closed. */
MUST_CHECK int file_create_unnamed(int dir_fd, int *ret_fd);
void file_close(int fd); /* -1 is fine */

/* Begins to list a directory, for readdir and closedir. dir_fd stays open.
 * Returns NULL on failure, with the reason in errno. */
DIR *file_list_dir(int dir_fd);

/* Writes all bytes at the file's position. iov is changed. After a failure an
 * unknown part of the bytes is in the file. */
MUST_CHECK int file_write(int fd, const void *data, size_t len);
MUST_CHECK int file_writev(int fd, struct iovec *iov, size_t count);

/* Reserves disk space for so many bytes, without changing the size of the file.
 * Writes of these bytes then need no more space, if the file system can promise
 * that. */
MUST_CHECK int file_reserve(int fd, uint64_t bytes);

/* Ask the kernel to start writing these bytes to the disk, and to start reading
 * them. Usually neither waits for the disk. */
void file_start_writing(int fd, uint64_t offset, uint64_t bytes);
void file_will_read(int fd, uint64_t offset, uint64_t bytes);

/* Reads exactly len bytes at the offset. Returns ENODATA if the file ends
 * before. *ret_len, the bytes read, is set in any case. */
MUST_CHECK int file_read_at(int fd, void *to, size_t len, uint64_t offset,
                            size_t *ret_len);

MUST_CHECK int file_sync(int fd);     /* fdatasync */
MUST_CHECK int file_sync_dir(int fd); /* fsync */
MUST_CHECK int file_rename(int dir_fd, const char *from, const char *to);
/* Exchanges the names of two files, in one step. */
MUST_CHECK int file_exchange(int dir_fd, const char *from, const char *to);
MUST_CHECK int file_link(int from_dir_fd, const char *from, int to_dir_fd,
                         const char *to);
MUST_CHECK int file_unlink(int dir_fd, const char *name);
MUST_CHECK int file_size(int fd, uint64_t *ret_bytes);

/* Creates a file with this text, or replaces one: writes and syncs `name`.tmp,
 * renames it, and syncs the directory. Only our user may read it. After a
 * failure the old file or the new one is there, intact. */
MUST_CHECK int file_replace(int dir_fd, const char *name, struct slice text);

/* Replaces a file as file_replace() does, and reserves blocks for so many bytes
 * in the new one. */
MUST_CHECK int file_replace_reserved(int dir_fd, const char *name,
                                     struct slice text, uint64_t reserved);

/* Reads a whole file, but at most `most` + 1 bytes, for which `ret_bytes` has
 * space. If *ret_len is above `most`, the file is too long. */
MUST_CHECK int file_read_name(int dir_fd, const char *name, char *ret_bytes,
                              size_t most, size_t *ret_len);

/* Maps the first `len` bytes of the file (SIZE_MAX: all), to be read in order.
 * An empty file gives an empty slice. */
MUST_CHECK int file_map(int fd, size_t len, struct slice *ret_bytes);
void file_unmap(struct slice bytes);

/* Reads these bytes, then maps them as file_map() does. A place that the disk
 * cannot read is an error here; in a mapping it ends the process (SIGBUS).
 * *ret_offset is where the reading ended. */
MUST_CHECK int file_read_and_map(int fd, size_t len, struct slice *ret_bytes,
                                 uint64_t *ret_offset);

/* ---- faults for tests, in all threads of the process -------------------- */

enum file_call {
    FILE_CALL_OPEN, /* open, create, open_dir */
    FILE_CALL_WRITE,
    FILE_CALL_READ, /* read_at */
    FILE_CALL_SYNC, /* file and directory */
    FILE_CALL_RENAME,
    FILE_CALL_LINK,
    FILE_CALL_UNLINK,
    FILE_CALL_RESERVE,
    FILE_CALL_COUNT
};

/* Lets the nth system call of this kind from now on (1: the next) fail with
 * `error`, and with for_good every later one too. A write that fails writes
 * half of its bytes first; with EINTR, it is a short write. EINTR must not be
 * for good, since such calls are tried again. nth 0 switches off. */
void file_fail_at(enum file_call call, unsigned nth, int error, bool for_good);

/* Switches all faults off; true if any fired. */
bool file_fail_clear(void);
