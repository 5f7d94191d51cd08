/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that move bytes: into files, out of them, and to clients.
 */
#include "shim.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* ---- write, read, truncate ----------------------------------------------- */

/* offset -1 means the current offset of the file. */
static ssize_t
raw_write(int fd, const struct iovec *iov, int count, int64_t offset)
{
    return offset < 0 ? RAW(writev, fd, iov, count)
                      : RAW(pwritev, fd, iov, count, offset, 0);
}

/* Copies at most max bytes of iov to ret_iov; returns the number of pieces. */
static int
shortened(const struct iovec *iov, int count, size_t max, struct iovec *ret_iov)
{
    int used = 0;

    for (; used < count && max > 0; used++) {
        ret_iov[used] = iov[used];
        if (ret_iov[used].iov_len > max) {
            ret_iov[used].iov_len = max;
        }
        max -= ret_iov[used].iov_len;
    }
    return used;
}

/* Writes, and logs what the file contains then. Under the lock. */
static ssize_t
write_noted(int fd, struct shim_file *file, const struct step *step,
            const struct iovec *iov, int count, int64_t offset)
{
    struct bytes pieces[1024];
    struct iovec taken[1024];
    int64_t at = offset;
    ssize_t done = raw_write(fd, iov, count, offset);
    int error = errno;

    if (done <= 0) {
        errno = error;
        return done;
    }
    if (at < 0) {
        at = lseek(fd, 0, SEEK_CUR) - done;
    }
    if (file->dirty_end == 0 || at < file->dirty_from) {
        file->dirty_from = at;
    }
    if (at + done > file->dirty_end) {
        file->dirty_end = at + done;
    }
    int used = shortened(iov, count, (size_t)done, taken);
    for (int i = 0; i < used; i++) {
        pieces[i] = (struct bytes){ taken[i].iov_base, taken[i].iov_len };
    }
    struct record record = control_record(step, RECORD_WRITE);
    record.handle = file->handle;
    record.a = at;
    control_append(record, pieces, (size_t)used);
    errno = error;
    return done;
}

static ssize_t
write_file(int fd, struct shim_file *file, const struct iovec *iov, int count,
           int64_t offset)
{
    struct iovec half[1024];
    size_t total = 0;

    if (count > 1024) {
        return shim_fail(EINVAL);
    }
    for (int i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    struct step step = control_begin(CALL_WRITE, file->kind);
    if (file->error != 0) {
        int error = file->error;

        file->error = 0;
        return shim_fail(error);
    }
    if (step.error != 0) {
        if (!step.shorten || total < 2) {
            return shim_fail(step.error);
        }
        file->error = step.error;
        count = shortened(iov, count, total / 2, half);
        iov = half;
    }
    control_lock();
    ssize_t done = write_noted(fd, file, &step, iov, count, offset);
    control_unlock();
    control_finish(&step);
    return done;
}

/* Returns the client's or the server's port, or 0 for another kind of socket.
 */
static uint32_t
port_of(int fd, int (*name_fn)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_storage to;
    socklen_t len = sizeof(to);

    if (name_fn(fd, (struct sockaddr *)&to, &len) != 0) {
        return 0;
    }
    if (to.ss_family == AF_INET) {
        return ntohs(((struct sockaddr_in *)&to)->sin_port);
    }
    if (to.ss_family == AF_INET6) {
        return ntohs(((struct sockaddr_in6 *)&to)->sin6_port);
    }
    return 0;
}

static size_t
bytes_of(const struct iovec *iov, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    return total;
}

static ssize_t
raw_send(int fd, const struct msghdr *msg, int flags, bool plain)
{
    if (!plain) {
        return RAW(sendmsg, fd, msg, flags);
    }
    return msg->msg_iovlen == 1
               ? RAW(write, fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len)
               : RAW(writev, fd, msg->msg_iov, msg->msg_iovlen);
}

/* Sends, and logs the begin before any byte can leave, and then how many bytes
 * the socket accepted. */
static ssize_t
send_noted(int fd, const struct msghdr *msg, int flags, bool plain)
{
    uint32_t port = 0;
    uint32_t own_port = 0;

    if (control_shared != NULL && control_shared->control.record != 0) {
        int error = errno;

        port = port_of(fd, getpeername);
        own_port = port_of(fd, getsockname);
        errno = error;
    }
    if (port == 0) {
        return raw_send(fd, msg, flags, plain);
    }
    struct step step = control_begin(CALL_SEND, KIND_SOCKET);
    struct record record = control_record(&step, RECORD_SEND_BEGIN);
    record.handle = port;
    record.b = own_port;
    record.a = (int64_t)bytes_of(msg->msg_iov, msg->msg_iovlen);
    control_lock();
    control_append(record, NULL, 0);
    control_unlock();
    ssize_t done = raw_send(fd, msg, flags, plain);
    int error = errno;
    record.type = RECORD_SEND_END;
    record.a = done < 0 ? 0 : done;
    control_lock();
    control_append(record, NULL, 0);
    control_unlock();
    errno = error;
    return done;
}

ssize_t
writev(int fd, const struct iovec *iov, int count)
{
    struct shim_file *file = shim_file_of(fd);
    struct msghdr msg = { .msg_iovlen = (size_t)count };

    if (file != NULL) {
        return write_file(fd, file, iov, count, -1);
    }
    memcpy(&msg.msg_iov, &iov, sizeof(iov));
    return send_noted(fd, &msg, 0, true);
}

ssize_t
write(int fd, const void *data, size_t len)
{
    struct iovec iov = { .iov_len = len };

    memcpy(&iov.iov_base, &data, sizeof(data));
    return writev(fd, &iov, 1);
}

static ssize_t
write_at(int fd, const void *data, size_t len, off_t offset)
{
    struct shim_file *file = shim_file_of(fd);
    struct iovec iov = { .iov_len = len };

    memcpy(&iov.iov_base, &data, sizeof(data));
    return file == NULL ? RAW(pwrite64, fd, data, len, offset)
                        : write_file(fd, file, &iov, 1, offset);
}

ssize_t
pwrite(int fd, const void *data, size_t len, off_t offset)
{
    return write_at(fd, data, len, offset);
}

ssize_t
pwrite64(int fd, const void *data, size_t len, off64_t offset)
{
    return write_at(fd, data, len, offset);
}

ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return send_noted(fd, msg, flags, false);
}

ssize_t
send(int fd, const void *data, size_t len, int flags)
{
    struct iovec iov = { .iov_len = len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    memcpy(&iov.iov_base, &data, sizeof(data));
    return send_noted(fd, &msg, flags, false);
}

static ssize_t
read_at(int fd, void *to, size_t len, off_t offset)
{
    struct shim_file *file = shim_file_of(fd);

    if (file == NULL) {
        return offset < 0 ? RAW(read, fd, to, len)
                          : RAW(pread64, fd, to, len, offset);
    }
    struct step step = control_begin(CALL_READ, file->kind);
    if (step.error != 0) {
        return shim_fail(step.error);
    }
    ssize_t done =
        offset < 0 ? RAW(read, fd, to, len) : RAW(pread64, fd, to, len, offset);
    control_finish(&step);
    return done;
}

ssize_t
read(int fd, void *to, size_t len)
{
    return read_at(fd, to, len, -1);
}

ssize_t
pread(int fd, void *to, size_t len, off_t offset)
{
    return read_at(fd, to, len, offset);
}

ssize_t
pread64(int fd, void *to, size_t len, off64_t offset)
{
    return read_at(fd, to, len, offset);
}

ssize_t __read_chk(int fd, void *to, size_t len, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t len, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t len, off64_t offset,
                      size_t room);

ssize_t
__read_chk(int fd, void *to, size_t len, size_t room)
{
    return read_at(fd, to, len > room ? room : len, -1);
}

ssize_t
__pread_chk(int fd, void *to, size_t len, off_t offset, size_t room)
{
    return read_at(fd, to, len > room ? room : len, offset);
}

ssize_t
__pread64_chk(int fd, void *to, size_t len, off64_t offset, size_t room)
{
    return read_at(fd, to, len > room ? room : len, offset);
}

static int
truncate_to(int fd, off_t size)
{
    struct shim_file *file = shim_file_of(fd);

    if (file == NULL) {
        return (int)RAW(ftruncate, fd, size);
    }
    struct step step = control_begin(CALL_TRUNCATE, file->kind);
    if (step.error != 0) {
        return shim_fail(step.error);
    }
    struct record record = control_record(&step, RECORD_TRUNCATE);
    record.handle = file->handle;
    record.a = size;
    control_lock();
    int result = (int)RAW(ftruncate, fd, size);
    if (result == 0) {
        control_append(record, NULL, 0);
    }
    control_unlock();
    control_finish(&step);
    return result;
}

int
ftruncate(int fd, off_t size)
{
    return truncate_to(fd, size);
}

int
ftruncate64(int fd, off64_t size)
{
    return truncate_to(fd, size);
}
