/* SPDX-License-Identifier: BSD-3-Clause
 *
 * System calls with their retries. Each system call that a test can let fail
 * asks fault() first. A retry asks again, so a test counts system calls, not
 * calls of these functions.
 */
#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DIR_MODE = 0750,
    FILE_MODE = 0640,
    OWN_MODE = 0600,
    VECTORS_MAX = 1024, /* IOV_MAX of Linux */
    THROUGH_BYTES = 1 << 20
};

/* ---- faults -------------------------------------------------------------- */

/* The faults that are set. `error` is written last; 0: there is no fault. */
static struct fault {
    _Atomic int64_t left;
    _Atomic int error;
    atomic_bool for_good;
} faults[FILE_CALL_COUNT];

static atomic_bool fault_fired;

/* Returns the errno value with which this call must fail, or 0. */
static int
fault(enum file_call call)
{
    struct fault *fault = &faults[call];
    int error = atomic_load_explicit(&fault->error, memory_order_acquire);
    int64_t left;

    if (__builtin_expect(error == 0, 1)) {
        return 0;
    }
    left = atomic_fetch_sub(&fault->left, 1);
    if (left == 1 || (left < 1 && atomic_load(&fault->for_good))) {
        atomic_store(&fault_fired, true);
        return error;
    }
    return 0;
}

void
file_fail_at(enum file_call call, unsigned nth, int error, bool for_good)
{
    struct fault *fault = &faults[call];

    atomic_store(&fault->error, 0);
    atomic_store(&fault->left, (int64_t)nth);
    atomic_store(&fault->for_good, for_good);
    atomic_store(&fault->error, nth > 0 ? error : 0);
}

bool
file_fail_clear(void)
{
    for (unsigned call = 0; call < FILE_CALL_COUNT; call++) {
        atomic_store(&faults[call].error, 0);
    }
    return atomic_exchange(&fault_fired, false);
}

/* ---- opening ------------------------------------------------------------- */

/* Returns 0 or an errno; retries after EINTR. */
static int
open_at(int dir_fd, const char *name, int flags, int *ret_fd)
{
    int error;
    int fd;

    do {
        error = fault(FILE_CALL_OPEN);
        fd = error != 0 ? -1
                        : openat(dir_fd, name, flags | O_CLOEXEC, FILE_MODE);
        if (fd < 0 && error == 0) {
            error = errno;
        }
    } while (error == EINTR);
    if (error == 0) {
        *ret_fd = fd;
    }
    return error;
}

/* Syncs the parent, which makes the name of a new directory durable. */
static int
sync_parent(const char *path)
{
    char parent[PATH_MAX];
    size_t len = strlen(path);
    int error;
    int fd = -1;

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    if (len >= sizeof(parent)) {
        return ENAMETOOLONG;
    }
    memcpy(parent, path, len);
    parent[len] = '\0';
    error =
        open_at(AT_FDCWD, len > 0 ? parent : ".", O_RDONLY | O_DIRECTORY, &fd);
    if (error == 0) {
        error = file_sync_dir(fd);
        file_close(fd);
    }
    return error;
}

int
file_identify(int fd, struct file_identity *ret_identity)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return errno;
    }
    ret_identity->device = status.st_dev;
    ret_identity->number = status.st_ino;
    return 0;
}

int
file_find(const char *path, const struct file_identity *identity)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        return errno;
    }
    return identity->device == status.st_dev &&
                   identity->number == status.st_ino
               ? 0
               : ESTALE;
}

int
file_is_dir_at(int fd, const char *path)
{
    struct file_identity identity = { 0 };
    int error = file_identify(fd, &identity);

    return error == 0 ? file_find(path, &identity) : error;
}

int
file_open_dir(const char *path, bool make, int *ret_fd)
{
    int error = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, ret_fd);

    if (error != ENOENT || !make) {
        return error;
    }
    if (mkdir(path, DIR_MODE) != 0 && errno != EEXIST) {
        return errno;
    }
    error = sync_parent(path);
    return error != 0 ? error
                      : open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, ret_fd);
}

/* Returns 0, or the errno value that says why this descriptor is not a regular
 * file. */
static int
check_regular(int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return errno;
    }
    if (S_ISDIR(info.st_mode)) {
        return EISDIR;
    }
    return S_ISREG(info.st_mode) ? 0 : EMEDIUMTYPE;
}

/* Without O_NONBLOCK, opening a FIFO would wait for a writer; the flag has no
 * effect on a regular file. The kernel returns ENXIO for sockets. */
int
file_open(int dir_fd, const char *name, int *ret_fd)
{
    int fd = -1;
    int error = open_at(dir_fd, name, O_RDONLY | O_NOCTTY | O_NONBLOCK, &fd);

    if (error != 0) {
        return error == ENXIO ? EMEDIUMTYPE : error;
    }
    error = check_regular(fd);
    if (error != 0) {
        file_close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

/* Always makes a new inode: a backup may have a link to the old one, and after
 * a failed sync the old one cannot be trusted. */
int
file_create(int dir_fd, const char *name, int *ret_fd)
{
    if (unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT) {
        return errno;
    }
    return open_at(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, ret_fd);
}

/* On a file system without unnamed files, the file gets a name, which is
 * removed at once. */
int
file_create_unnamed(int dir_fd, int *ret_fd)
{
    static const char name[] = "unnamed.tmp";
    int error = open_at(dir_fd, ".", O_TMPFILE | O_RDWR, ret_fd);

    if (error != EOPNOTSUPP && error != EISDIR && error != EINVAL) {
        return error;
    }
    (void)!file_unlink(dir_fd, name);
    error = open_at(dir_fd, name, O_CREAT | O_EXCL | O_RDWR, ret_fd);
    if (error == 0) {
        (void)!file_unlink(dir_fd, name);
    }
    return error;
}

void
file_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd); /* written data was synced before */
    }
}

DIR *
file_list_dir(int dir_fd)
{
    int fd = dup(dir_fd);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (dir == NULL) {
        file_close(fd);
    } else {
        rewinddir(dir); /* it shares its offset with dir_fd */
    }
    return dir;
}

/* ---- writing ------------------------------------------------------------- */

/* Writes half of the bytes, as a disk that becomes full does. */
static ssize_t
write_half(int fd, const struct iovec *iov, size_t count)
{
    size_t left = 0;
    size_t done = 0;

    for (size_t i = 0; i < count; i++) {
        left += iov[i].iov_len;
    }
    left /= 2;
    for (size_t i = 0; i < count && left > 0; i++) {
        size_t len = iov[i].iov_len < left ? iov[i].iov_len : left;
        ssize_t written = write(fd, iov[i].iov_base, len);

        if (written < 0) {
            return -1;
        }
        done += (size_t)written;
        left -= len;
    }
    return (ssize_t)done;
}

/* Does what writev does. An injected EINTR has the effect of a signal during
 * the write: a short count if any byte was written. */
static ssize_t
write_some(int fd, const struct iovec *iov, size_t count)
{
    int error = fault(FILE_CALL_WRITE);
    ssize_t written;

    if (__builtin_expect(error == 0, 1)) {
        return count == 1 ? write(fd, iov->iov_base, iov->iov_len)
                          : writev(fd, iov, (int)count);
    }
    written = write_half(fd, iov, count);
    if (error == EINTR && written > 0) {
        return written;
    }
    errno = error;
    return -1;
}

/* If the file system cannot reserve blocks, this does nothing. */
int
file_reserve(int fd, uint64_t bytes)
{
    int error;

    do {
        error = fault(FILE_CALL_RESERVE);
        if (error == 0 &&
            fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) != 0) {
            error = errno;
        }
    } while (error == EINTR);
    return error == EOPNOTSUPP || error == ENOSYS ? 0 : error;
}

/* Removes `written` bytes from the front of the vector. */
static void
advance(struct iovec **iov, size_t *count, size_t written)
{
    while (*count > 0 && written >= (*iov)->iov_len) {
        written -= (*iov)->iov_len;
        (*iov)++;
        (*count)--;
    }
    if (*count > 0 && written > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + written;
        (*iov)->iov_len -= written;
    }
}

int
file_writev(int fd, struct iovec *iov, size_t count)
{
    advance(&iov, &count, 0); /* skips empty vectors at the front */
    while (count > 0) {
        ssize_t written =
            write_some(fd, iov, count < VECTORS_MAX ? count : VECTORS_MAX);

        if (written < 0 && errno != EINTR) {
            return errno;
        }
        if (written == 0) {
            return EIO; /* neither an error nor progress */
        }
        advance(&iov, &count, written > 0 ? (size_t)written : 0);
    }
    return 0;
}

int
file_write(int fd, const void *data, size_t len)
{
    /* iov_base is no pointer to const, although writev only reads. Copying the
     * pointer avoids a cast. */
    struct iovec iov = { .iov_len = len };

    memcpy(&iov.iov_base, &data, sizeof(data));
    return file_writev(fd, &iov, 1);
}

void
file_start_writing(int fd, uint64_t offset, uint64_t bytes)
{
    (void)sync_file_range(fd, (off_t)offset, (off_t)bytes,
                          SYNC_FILE_RANGE_WRITE);
}

/* ---- reading ------------------------------------------------------------- */

int
file_read_at(int fd, void *to, size_t len, uint64_t offset, size_t *ret_len)
{
    size_t done = 0;
    int error = 0;

    while (done < len && error == 0) {
        ssize_t n = -1;

        error = fault(FILE_CALL_READ);
        if (error == 0) {
            n = pread(fd, (char *)to + done, len - done,
                      (off_t)(offset + done));
            error = n < 0 ? errno : n == 0 ? ENODATA : 0;
        }
        done += n > 0 ? (size_t)n : 0;
        error = error == EINTR ? 0 : error;
    }
    *ret_len = done;
    return error;
}

void
file_will_read(int fd, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}

int
file_size(int fd, uint64_t *ret_bytes)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return errno;
    }
    *ret_bytes = (uint64_t)info.st_size;
    return 0;
}

int
file_map(int fd, size_t len, struct slice *ret_bytes)
{
    uint64_t size = 0;
    int error = file_size(fd, &size);
    void *at;

    if (error != 0) {
        return error;
    }
    if (size < len) {
        len = (size_t)size;
    }
    if (len == 0) {
        *ret_bytes = (struct slice){ "", 0 };
        return 0;
    }
    at = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        return errno;
    }
    (void)madvise(at, len, MADV_SEQUENTIAL);
    *ret_bytes = (struct slice){ at, len };
    return 0;
}

/* Reads the first bytes of a file, so that they are in the page cache. */
static int
read_through(int fd, uint64_t bytes, uint64_t *ret_offset)
{
    char *chunk = mem_try_alloc(THROUGH_BYTES);
    int error = chunk != NULL ? 0 : ENOMEM;
    size_t got;

    while (error == 0 && *ret_offset < bytes) {
        uint64_t left = bytes - *ret_offset;
        size_t len = left < THROUGH_BYTES ? (size_t)left : THROUGH_BYTES;

        error = file_read_at(fd, chunk, len, *ret_offset, &got);
        *ret_offset += error == 0 ? len : 0;
    }
    mem_free(chunk);
    return error;
}

int
file_read_and_map(int fd, size_t len, struct slice *ret_bytes,
                  uint64_t *ret_offset)
{
    uint64_t size = 0;
    int error = file_size(fd, &size);

    *ret_offset = 0;
    if (error == 0) {
        error = read_through(fd, size < len ? size : len, ret_offset);
    }
    return error == 0 ? file_map(fd, len, ret_bytes) : error;
}

void
file_unmap(struct slice bytes)
{
    const union {
        const char *in;
        void *out;
    } at = { bytes.data };

    if (bytes.len > 0) {
        (void)munmap(at.out, bytes.len);
    }
}

/* ---- names and syncs ----------------------------------------------------- */

/* Retries after EINTR: the pages are still dirty. */
int
file_sync(int fd)
{
    int error;

    do {
        error = fault(FILE_CALL_SYNC);
        if (error == 0 && fdatasync(fd) != 0) {
            error = errno;
        }
    } while (error == EINTR);
    return error;
}

/* EINVAL: this file system cannot sync a directory, and never will. */
int
file_sync_dir(int fd)
{
    int error;

    do {
        error = fault(FILE_CALL_SYNC);
        if (error == 0 && fsync(fd) != 0) {
            error = errno == EINVAL ? 0 : errno;
        }
    } while (error == EINTR);
    return error;
}

int
file_rename(int dir_fd, const char *from, const char *to)
{
    int error = fault(FILE_CALL_RENAME);

    if (error == 0 && renameat(dir_fd, from, dir_fd, to) != 0) {
        error = errno;
    }
    return error;
}

int
file_exchange(int dir_fd, const char *from, const char *to)
{
    int error = fault(FILE_CALL_RENAME);

    if (error == 0 &&
        renameat2(dir_fd, from, dir_fd, to, RENAME_EXCHANGE) != 0) {
        error = errno;
    }
    return error;
}

int
file_link(int from_dir_fd, const char *from, int to_dir_fd, const char *to)
{
    int error = fault(FILE_CALL_LINK);

    if (error == 0 && linkat(from_dir_fd, from, to_dir_fd, to, 0) != 0) {
        error = errno;
    }
    return error;
}

int
file_unlink(int dir_fd, const char *name)
{
    int error = fault(FILE_CALL_UNLINK);

    if (error == 0 && unlinkat(dir_fd, name, 0) != 0) {
        error = errno;
    }
    return error;
}

/* ---- whole files --------------------------------------------------------- */

int
file_read_name(int dir_fd, const char *name, char *ret_bytes, size_t most,
               size_t *ret_len)
{
    uint64_t size = 0;
    int fd = -1;
    int error = file_open(dir_fd, name, &fd);

    if (error != 0) {
        return error;
    }
    error = file_size(fd, &size);
    if (error == 0) {
        error = file_read_at(fd, ret_bytes,
                             size > most ? most + 1 : (size_t)size, 0, ret_len);
    }
    file_close(fd);
    return error;
}

int
file_replace_reserved(int dir_fd, const char *name, struct slice text,
                      uint64_t reserved)
{
    char temporary[NAME_MAX + 1];
    int fd = -1;
    int error;

    if (strlen(name) + sizeof(".tmp") > sizeof(temporary)) {
        return ENAMETOOLONG;
    }
    (void)snprintf(temporary, sizeof(temporary), "%.250s.tmp", name);
    error = file_create(dir_fd, temporary, &fd);
    if (error != 0) {
        return error;
    }
    error = fchmod(fd, OWN_MODE) != 0 ? errno : 0;
    error = error != 0 || reserved == 0 ? error : file_reserve(fd, reserved);
    error = error != 0 ? error : file_write(fd, text.data, text.len);
    error = error != 0 ? error : file_sync(fd);
    file_close(fd);
    error = error != 0 ? error : file_rename(dir_fd, temporary, name);
    if (error != 0) {
        (void)!file_unlink(dir_fd, temporary);
        return error;
    }
    return file_sync_dir(dir_fd);
}

int
file_replace(int dir_fd, const char *name, struct slice text)
{
    return file_replace_reserved(dir_fd, name, text, 0);
}
