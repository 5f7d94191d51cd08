/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library to preload into the server. It intercepts every call on the data
 * directory and every send to a client. It counts them, and kills or fails
 * where a test asks for it. In record mode it logs all effects in order;
 * tests/lib/images.py builds the possible states after a power failure from it.
 *
 * control.h describes how a test controls it. BLOOMERY_SHIM names the
 * control_shared file, BLOOMERY_SHIM_DIR the data directory; without them the
 * library does nothing.
 *
 * It intercepts allocations too, so it allocates nothing and makes only plain
 * system calls. A failed sync discards the unsynced data, as
 * Linux does: it drops dirty pages and marks them clean.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char top[NAME_MAX_BYTES];
static size_t top_len;
static struct shim_file files[FDS_MAX];

__attribute__((constructor)) static void
start(void)
{
    const char *path = getenv("BLOOMERY_SHIM");
    const char *dir = getenv("BLOOMERY_SHIM_DIR");

    if (path == NULL || dir == NULL || strlen(dir) >= sizeof(top)) {
        return;
    }
    top_len = strlen(dir);
    memcpy(top, dir, top_len + 1);
    control_open(path);
}

int
shim_fail(int error)
{
    errno = error;
    return -1;
}

/* ---- names --------------------------------------------------------------- */

static bool
ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool
begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static enum kind
kind_of(const char *name, bool directory)
{
    const char *slash = strchr(name, '/');
    bool tmp = ends_with(name, ".tmp") || ends_with(name, ".arriving");

    if (directory) {
        return *name == '\0' ? KIND_DIR : KIND_JOURNAL_DIR;
    }
    if (slash == NULL) {
        return strcmp(name, "lock") == 0  ? KIND_LOCK
               : tmp                      ? KIND_SNAPSHOT_TMP
               : ends_with(name, ".room") ? KIND_ROOM
                                          : KIND_SNAPSHOT;
    }
    name = slash + 1;
    if (begins_with(name, "base-")) {
        return tmp ? KIND_BASE_TMP : KIND_BASE;
    }
    if (begins_with(name, "incr-")) {
        return tmp ? KIND_INCR_TMP : KIND_INCR;
    }
    if (begins_with(name, "manifest")) {
        return tmp ? KIND_MANIFEST_TMP : KIND_MANIFEST;
    }
    if (strcmp(name, "unfinished") == 0) {
        return KIND_MARK;
    }
    return KIND_OTHER;
}

struct shim_file *
shim_file_of(int fd)
{
    if (control_shared == NULL || fd < 0 || fd >= FDS_MAX || !files[fd].used) {
        return NULL;
    }
    return &files[fd];
}

/* Returns the name below the data directory, or false if it is elsewhere. */
static bool
resolve(int dir_fd, const char *path, char *ret_name)
{
    struct shim_file *dir = shim_file_of(dir_fd);
    int len;

    if (control_shared == NULL) {
        return false;
    }
    if (path[0] == '/') {
        if (strncmp(path, top, top_len) != 0 ||
            (path[top_len] != '\0' && path[top_len] != '/')) {
            return false;
        }
        path += top_len;
        len = snprintf(ret_name, NAME_MAX_BYTES, "%s", path + (*path == '/'));
    } else {
        if (dir == NULL ||
            (dir->kind != KIND_DIR && dir->kind != KIND_JOURNAL_DIR)) {
            return false;
        }
        if (strcmp(path, ".") == 0) {
            path = "";
        }
        len =
            snprintf(ret_name, NAME_MAX_BYTES, "%s%s%s", dir->name,
                     dir->name[0] != '\0' && path[0] != '\0' ? "/" : "", path);
    }
    while (len > 0 && len < NAME_MAX_BYTES && ret_name[len - 1] == '/') {
        ret_name[--len] = '\0';
    }
    return len < NAME_MAX_BYTES;
}

/* ---- open ---------------------------------------------------------------- */

static bool
is_directory(int dir_fd, const char *path)
{
    struct stat st;

    return RAW(newfstatat, dir_fd, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static bool
exists(int dir_fd, const char *path)
{
    struct stat st;

    return RAW(newfstatat, dir_fd, path, &st, 0) == 0;
}

static void
remember(int fd, const struct step *step, const char *name, int flags,
         bool existed)
{
    if (fd < 0) {
        return;
    }
    struct record record = control_record(
        step, (flags & O_CREAT) != 0 ? RECORD_CREATE : RECORD_OPENED);
    record.handle = (uint32_t)++control_shared->control.handles;
    record.a = existed ? 0 : 1;
    record.b = (flags & O_TRUNC) != 0 ? 1 : 0;
    control_append_names(record, name, NULL);
    if (fd < FDS_MAX) {
        files[fd] = (struct shim_file){ .used = true,
                                        .kind = step->kind,
                                        .handle = record.handle };
        memcpy(files[fd].name, name, strlen(name) + 1);
    }
}

static int
open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
    char name[NAME_MAX_BYTES];

    if (!resolve(dir_fd, path, name)) {
        int fd = (int)RAW(openat, dir_fd, path, flags, mode);
        if (control_shared != NULL && fd >= 0 && fd < FDS_MAX) {
            files[fd].used = false;
        }
        return fd;
    }
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    bool directory = (flags & O_DIRECTORY) != 0 || is_directory(dir_fd, path);
    bool creates = (flags & O_CREAT) != 0 || unnamed;
    struct step step =
        control_begin(creates ? CALL_CREATE : CALL_OPEN,
                      unnamed ? KIND_OTHER : kind_of(name, directory));
    if (step.error != 0) {
        return shim_fail(step.error);
    }
    control_lock();
    bool existed = creates && exists(dir_fd, path);
    int fd = (int)RAW(openat, dir_fd, path, flags, mode);
    int error = errno;
    remember(fd, &step, name, flags, existed);
    control_unlock();
    errno = error;
    control_finish(&step);
    return fd;
}

#define MODE_OF(flags)                                                         \
    mode_t mode = 0;                                                           \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                              \
        va_list args;                                                          \
        va_start(args, flags);                                                 \
        mode = va_arg(args, mode_t);                                           \
        va_end(args);                                                          \
    }

int
open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int
open64(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int
openat(int dir_fd, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(dir_fd, path, flags, mode);
}

int
openat64(int dir_fd, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(dir_fd, path, flags | O_LARGEFILE, mode);
}

/* The functions that _FORTIFY_SOURCE uses for calls without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir_fd, const char *path, int flags);
int __openat64_2(int dir_fd, const char *path, int flags);

int
__open_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags, 0);
}

int
__open64_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags, 0);
}

int
__openat_2(int dir_fd, const char *path, int flags)
{
    return open_at(dir_fd, path, flags, 0);
}

int
__openat64_2(int dir_fd, const char *path, int flags)
{
    return open_at(dir_fd, path, flags, 0);
}

int
close(int fd)
{
    if (control_shared != NULL && fd >= 0 && fd < FDS_MAX) {
        files[fd].used = false;
    }
    return (int)RAW(close, fd);
}

/* ---- sync ---------------------------------------------------------------- */

/* Discards unsynced data, as Linux does when write-back fails: it drops the
 * pages and marks them clean. Zeros stand for the unknown contents of the disk.
 */
static void
throw_away(int fd, struct shim_file *file)
{
    static const char zeros[65536];

    while (file->dirty_from < file->dirty_end) {
        int64_t len = file->dirty_end - file->dirty_from;
        if (len > (int64_t)sizeof(zeros)) {
            len = sizeof(zeros);
        }
        int64_t done = RAW(pwrite64, fd, zeros, (size_t)len, file->dirty_from);
        if (done <= 0) {
            break;
        }
        file->dirty_from += done;
    }
    file->dirty_from = file->dirty_end = 0;
}

static int
sync_file(int fd, bool data_only)
{
    struct shim_file *file = shim_file_of(fd);
    int result = 0;

    if (file == NULL) {
        return (int)(data_only ? RAW(fdatasync, fd) : RAW(fsync, fd));
    }
    struct step step = control_begin(CALL_SYNC, file->kind);
    struct record record = control_record(&step, RECORD_SYNC_BEGIN);
    record.handle = file->handle;
    if (step.error != 0) {
        record.type = RECORD_SYNC_FAILED;
        control_lock();
        throw_away(fd, file);
        control_append_names(record, file->name, NULL);
        control_unlock();
        control_finish(&step);
        return shim_fail(step.error);
    }
    if (step.lie) {
        return 0;
    }
    control_lock();
    file->dirty_from = file->dirty_end = 0;
    control_append_names(record, file->name, NULL);
    control_unlock();
    if (control_shared->control.skip_syncs == 0) {
        result = (int)(data_only ? RAW(fdatasync, fd) : RAW(fsync, fd));
    }
    int error = errno;
    record.type = result == 0 ? RECORD_SYNC_END : RECORD_SYNC_FAILED;
    record.a = (int64_t)step.number;
    control_lock();
    control_append_names(record, file->name, NULL);
    control_unlock();
    control_finish(&step);
    errno = error;
    return result;
}

int
fsync(int fd)
{
    return sync_file(fd, false);
}

int
fdatasync(int fd)
{
    return sync_file(fd, true);
}

/* ---- names change -------------------------------------------------------- */

struct names {
    int from_fd, to_fd;
    const char *from, *to;
};

/* Renames or links; both names are in the data directory, or neither is. */
static int
two_names(enum call call, const struct names *names, unsigned flags)
{
    char from[NAME_MAX_BYTES], to[NAME_MAX_BYTES];
    bool renames = call == CALL_RENAME, known;

    known = resolve(names->from_fd, names->from, from);
    known = resolve(names->to_fd, names->to, to) && known;
    bool directory = known && is_directory(names->from_fd, names->from);
    struct step step = { .call = call };
    if (known) {
        step = control_begin(call, kind_of(to, directory));
        if (step.error != 0) {
            return shim_fail(step.error);
        }
        control_lock();
    }
    int result = (int)(renames ? RAW(renameat2, names->from_fd, names->from,
                                     names->to_fd, names->to, flags)
                               : RAW(linkat, names->from_fd, names->from,
                                     names->to_fd, names->to, flags));
    int error = errno;
    if (known) {
        if (result == 0) {
            control_append_names(
                control_record(&step, renames ? RECORD_RENAME : RECORD_LINK),
                from, to);
        }
        control_unlock();
        control_finish(&step);
    }
    errno = error;
    return result;
}

int
rename(const char *from, const char *to)
{
    return two_names(CALL_RENAME,
                     &(struct names){ AT_FDCWD, AT_FDCWD, from, to }, 0);
}

int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return two_names(CALL_RENAME, &(struct names){ from_fd, to_fd, from, to },
                     0);
}

int
renameat2(int from_fd, const char *from, int to_fd, const char *to,
          unsigned flags)
{
    return two_names(CALL_RENAME, &(struct names){ from_fd, to_fd, from, to },
                     flags);
}

int
link(const char *from, const char *to)
{
    return two_names(CALL_LINK, &(struct names){ AT_FDCWD, AT_FDCWD, from, to },
                     0);
}

int
linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    return two_names(CALL_LINK, &(struct names){ from_fd, to_fd, from, to },
                     (unsigned)flags);
}

/* Removes a name, or makes a directory. */
static int
one_name(enum call call, int dir_fd, const char *path, int flags, mode_t mode)
{
    char name[NAME_MAX_BYTES];
    bool known = resolve(dir_fd, path, name), makes = call == CALL_MKDIR;
    struct step step = { .call = call };

    if (known) {
        step = control_begin(call, kind_of(name, makes));
        if (step.error != 0) {
            return shim_fail(step.error);
        }
        control_lock();
    }
    int result = (int)(makes ? RAW(mkdirat, dir_fd, path, mode)
                             : RAW(unlinkat, dir_fd, path, flags));
    int error = errno;
    if (known) {
        if (result == 0) {
            control_append_names(
                control_record(&step, makes ? RECORD_MKDIR : RECORD_UNLINK),
                name, NULL);
        }
        control_unlock();
        control_finish(&step);
    }
    errno = error;
    return result;
}

int
unlink(const char *path)
{
    return one_name(CALL_UNLINK, AT_FDCWD, path, 0, 0);
}

int
unlinkat(int dir_fd, const char *path, int flags)
{
    return one_name(CALL_UNLINK, dir_fd, path, flags, 0);
}

int
mkdir(const char *path, mode_t mode)
{
    return one_name(CALL_MKDIR, AT_FDCWD, path, 0, mode);
}

int
mkdirat(int dir_fd, const char *path, mode_t mode)
{
    return one_name(CALL_MKDIR, dir_fd, path, 0, mode);
}

/* ---- calls that images cannot model: a test with such a call fails --------
 */

static void
note_other(int fd)
{
    struct shim_file *file = shim_file_of(fd);

    if (file != NULL) {
        struct step step = control_begin(CALL_OTHER, file->kind);
        control_lock();
        control_append_names(control_record(&step, RECORD_OTHER), file->name,
                             NULL);
        control_unlock();
    }
}

int
fallocate(int fd, int mode, off_t offset, off_t len)
{
    note_other(fd);
    return (int)RAW(fallocate, fd, mode, offset, len);
}

int
posix_fallocate(int fd, off_t offset, off_t len)
{
    note_other(fd);
    return RAW(fallocate, fd, 0, offset, len) == 0 ? 0 : errno;
}

ssize_t
copy_file_range(int from_fd, off64_t *from, int to_fd, off64_t *to, size_t len,
                unsigned flags)
{
    note_other(to_fd);
    return RAW(copy_file_range, from_fd, from, to_fd, to, len, flags);
}
