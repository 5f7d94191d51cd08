/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files by descriptor, the way durable state needs them: whole writes, names
 * below an open directory, and 0 or an errno value as the result. EINTR and
 * short writes are dealt with here. Only plain system calls: what writes and
 * syncs may be called in a forked child. Any thread.
 *
 * Nothing is durable before file_sync of the file and, for a new or changed
 * name, file_sync_dir of its directory. A failed sync is final: Linux may have
 * dropped the pages and marked them clean, so that the next one succeeds
 * (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Opens a directory, for the dir_fd of the others; makes it first if it is
 * missing and `make` says so (mode 0750, and its parent is synced). */
MUST_CHECK int file_open_dir(const char *path, bool make, int *ret_fd);

/* Which file or directory it is: of an open one; and whether that is what a
 * path leads to: 0, ESTALE if it leads to another one, or an errno value
 * (ENOENT: to none). As long as it is open, nothing else gets this identity.
 * is_dir_at is both at once. May be called in a forked child. */
struct file_identity {
    uint64_t device, number;
};
MUST_CHECK int file_identify(int fd, struct file_identity *ret_identity);
MUST_CHECK int file_find(const char *path,
                         const struct file_identity *identity);
MUST_CHECK int file_is_dir_at(int fd, const char *path);

/* To read: a regular file, or a link to one. A directory is EISDIR, and what is
 * neither (a FIFO, a socket, a device) EMEDIUMTYPE, "Wrong medium type"; none
 * of them is waited for. */
MUST_CHECK int file_open(int dir_fd, const char *name, int *ret_fd);

/* New and empty to write (mode 0640): a file of that name is unlinked, not
 * overwritten. Descriptors close on exec, here and above. */
MUST_CHECK int file_create(int dir_fd, const char *name, int *ret_fd);
void file_close(int fd); /* -1 is fine */

/* All of it, at the end of what was written so far. iov is used up. On failure
 * an unknown part of it is in the file. */
MUST_CHECK int file_write(int fd, const void *data, size_t len);
MUST_CHECK int file_writev(int fd, struct iovec *iov, size_t count);

/* Hints: these bytes may go to the disk now, and these are read soon. Neither
 * waits for the disk, as a rule, nor promises anything. */
void file_start_writing(int fd, uint64_t offset, uint64_t bytes);
void file_will_read(int fd, uint64_t offset, uint64_t bytes);

/* Reads exactly len bytes at the offset; EIO and *ret_len short at the end of
 * the file. *ret_len is set whatever happens. */
MUST_CHECK int file_read_at(int fd, void *to, size_t len, uint64_t offset,
                            size_t *ret_len);

MUST_CHECK int file_sync(int fd);     /* fdatasync */
MUST_CHECK int file_sync_dir(int fd); /* fsync */
MUST_CHECK int file_rename(int dir_fd, const char *from, const char *to);
MUST_CHECK int file_link(int from_dir_fd, const char *from, int to_dir_fd,
                         const char *to);
MUST_CHECK int file_unlink(int dir_fd, const char *name);
MUST_CHECK int file_size(int fd, uint64_t *ret_bytes);

/* Creates a file with this text, or replaces one: writes and syncs `name`.tmp,
 * renames it, and syncs the directory. Only our user may read it. After a
 * failure the old file or the new one is there, intact. */
MUST_CHECK int file_replace(int dir_fd, const char *name, struct slice text);

/* Reads a whole file. Of a longer one than `most` bytes it reads one byte more,
 * so that the caller sees that it is too long: `ret_bytes` has space for it. */
MUST_CHECK int file_read_name(int dir_fd, const char *name, char *ret_bytes,
                              size_t most, size_t *ret_len);

/* The first `len` bytes of the file (SIZE_MAX: all), mapped read-only;
 * advised to be read in order. An empty file is an empty slice. */
MUST_CHECK int file_map(int fd, size_t len, struct slice *ret_bytes);
void file_unmap(struct slice bytes);

/* ---- faults, for tests: all threads of the process ----------------------- */

enum file_call {
    FILE_CALL_OPEN, /* open, create, open_dir */
    FILE_CALL_WRITE,
    FILE_CALL_READ, /* read_at */
    FILE_CALL_SYNC, /* file and directory */
    FILE_CALL_RENAME,
    FILE_CALL_LINK,
    FILE_CALL_UNLINK,
    FILE_CALL_COUNT
};

/* From here on the nth call of this kind (1: the next), and if for_good every
 * later one, fails with `error`; a call is one system call. A write that fails
 * writes half of its bytes first. EINTR is retried, so never for good; a write
 * that it meets is a short one. nth 0 switches off. */
void file_fail_at(enum file_call call, unsigned nth, int error, bool for_good);

/* Switches all faults off; true if any fired. */
bool file_fail_clear(void);
