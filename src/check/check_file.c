/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files are mapped, so that a group or a section is one slice, and parts can be
 * read twice. Where the disk cannot read a page, the kernel sends SIGBUS, which
 * this file handles.
 */
#include "check/check_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "journal/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARK_BYTES_MAX = 18, MAPS_MAX = 1100, COMPLAINTS_MAX = 20 };

/* All mapped files, for the signal handler. */
static struct check_map maps[MAPS_MAX];
static volatile sig_atomic_t unreadable; /* pages */
static const char *program;              /* name for the signal handler */

/* ---- kinds --------------------------------------------------------------- */

static bool
has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool
has_suffix(const char *name, const char *suffix)
{
    size_t len = strlen(name);

    return len >= strlen(suffix) &&
           strcmp(name + len - strlen(suffix), suffix) == 0;
}

static enum check_kind
kind_by_name(const char *path)
{
    const char *name = check_file_name(path);

    if (strcmp(name, MANIFEST_NAME) == 0) {
        return CHECK_KIND_MANIFEST;
    }
    if (has_prefix(name, "incr-")) {
        return CHECK_KIND_INCREMENT;
    }
    if (has_prefix(name, "base-") || has_suffix(name, ".snapshot")) {
        return CHECK_KIND_SNAPSHOT;
    }
    return CHECK_KIND_UNKNOWN;
}

/* The first bytes of each format are the same in all its versions. */
static enum check_kind
kind_by_bytes(struct slice start)
{
    static const struct {
        enum check_kind kind;
        const char *mark;
        size_t len;
    } marks[] = {
        { CHECK_KIND_SNAPSHOT, "BLMYSNAP", 8 },
        { CHECK_KIND_INCREMENT, "#BLOOMERY JOURNAL ", 18 },
        { CHECK_KIND_MANIFEST, "bloomery-journal ", 17 },
    };

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (start.len >= marks[i].len &&
            memcmp(start.data, marks[i].mark, marks[i].len) == 0) {
            return marks[i].kind;
        }
    }
    return CHECK_KIND_UNKNOWN;
}

static bool
kind_of_file(struct check *check, int fd, const char *path,
             enum check_kind *ret_kind)
{
    char start[MARK_BYTES_MAX];
    size_t len = 0;
    int error = file_read_at(fd, start, sizeof(start), 0, &len);

    if (error != 0 && error != ENODATA) {
        tool_complain(&check->tool, CHECK_UNREADABLE, "%s: cannot be read: %s",
                      path, strerror(error));
        return false;
    }
    *ret_kind = kind_by_bytes((struct slice){ start, len });
    if (*ret_kind == CHECK_KIND_UNKNOWN) {
        *ret_kind = kind_by_name(path);
    }
    return true;
}

/* Stops at the first name that only a journal's directory has. */
static bool
note_kind(void *ctx, const char *name)
{
    enum check_kind *kind = ctx;

    if (strcmp(name, MANIFEST_NAME) == 0 || has_prefix(name, "base-") ||
        has_prefix(name, "incr-")) {
        *kind = CHECK_KIND_JOURNAL;
    }
    return *kind != CHECK_KIND_JOURNAL;
}

bool
check_file_kind(struct check *check, const char *path,
                enum check_kind *ret_kind)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    bool ok = true;

    if (fd < 0 || fstat(fd, &status) != 0) {
        tool_complain(&check->tool, CHECK_UNREADABLE,
                      "%s: cannot be opened: %s", path, strerror(errno));
        ok = false;
    } else if (S_ISREG(status.st_mode)) {
        ok = kind_of_file(check, fd, path, ret_kind);
    } else if (S_ISDIR(status.st_mode)) {
        *ret_kind = CHECK_KIND_DATA;
        ok = check_file_each(check, path, note_kind, ret_kind) ||
             *ret_kind == CHECK_KIND_JOURNAL;
    } else {
        tool_complain(&check->tool, CHECK_UNREADABLE,
                      "%s: is neither a file nor a directory", path);
        ok = false;
    }
    file_close(fd);
    return ok;
}

/* ---- directories --------------------------------------------------------- */

bool
check_file_each(struct check *check, const char *path, check_name_fn *visit,
                void *ctx)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    bool ok = true;

    if (dir == NULL) {
        tool_complain(&check->tool, CHECK_UNREADABLE,
                      "%s: cannot be opened: %s", path, strerror(errno));
        return false;
    }
    while (ok && (entry = readdir(dir)) != NULL) {
        ok = visit(ctx, entry->d_name);
    }
    (void)closedir(dir);
    return ok;
}

/* Returns whether this program may not read the file, which then belongs to
 * another program: a mount point has a lost+found, for instance. */
static bool
is_foreign(const char *path)
{
    return access(path, R_OK) != 0 && errno == EACCES;
}

struct listing {
    struct check *check;
    struct check_data *data;
};

static bool
note_entry(void *ctx, const char *name)
{
    struct check *check = ((struct listing *)ctx)->check;
    struct check_data *data = ((struct listing *)ctx)->data;
    char path[CHECK_PATH_MAX];
    struct stat status;
    enum check_kind kind;

    if (name[0] == '.' || has_suffix(name, ".tmp") ||
        strstr(name, ".stale-") != NULL ||
        strlen(name) >= sizeof(data->journal)) {
        return true;
    }
    if (!check_file_join(check, data->path, name, path)) {
        return false;
    }
    if (stat(path, &status) != 0 ||
        (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) ||
        (kind_by_name(path) == CHECK_KIND_UNKNOWN && is_foreign(path))) {
        return true;
    }
    if (!check_file_kind(check, path, &kind)) {
        return false;
    }
    if (kind == CHECK_KIND_JOURNAL) {
        if (data->journal[0] != '\0') {
            tool_complain(&check->tool, CHECK_USAGE,
                          "%s holds two journals, %s and %s: name one",
                          data->path, data->journal, name);
            return false;
        }
        memcpy(data->journal, name, strlen(name) + 1);
    } else if (kind == CHECK_KIND_SNAPSHOT) {
        if (data->count == CHECK_SNAPSHOTS_MAX) {
            tool_complain(&check->tool, CHECK_USAGE,
                          "%s holds too many snapshots: name one", data->path);
            return false;
        }
        memcpy(data->snapshots[data->count++], name, strlen(name) + 1);
    }
    return true;
}

bool
check_file_list(struct check *check, const char *path,
                struct check_data *ret_data)
{
    struct listing listing = { check, ret_data };
    bool ok;

    memset(ret_data, 0, sizeof(*ret_data));
    (void)snprintf(ret_data->path, sizeof(ret_data->path), "%s", path);
    ok = check_file_each(check, path, note_entry, &listing);
    if (ok && ret_data->journal[0] == '\0' && ret_data->count == 0) {
        tool_complain(&check->tool, CHECK_UNREADABLE,
                      "%s: holds neither a snapshot nor a journal; with "
                      "appendonly no, a server writes its first snapshot when "
                      "a rule of save or BGSAVE asks for it",
                      path);
        return false;
    }
    return ok;
}

bool
check_file_join(struct check *check, const char *path, const char *name,
                char *ret_path)
{
    size_t len = strlen(path);
    int got;

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    got = snprintf(ret_path, CHECK_PATH_MAX, "%.*s/%s", (int)len, path, name);
    if (got < 0 || got >= CHECK_PATH_MAX) {
        tool_complain(&check->tool, CHECK_USAGE, "%s: the path is too long",
                      path);
        return false;
    }
    return true;
}

const char *
check_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* ---- reading ------------------------------------------------------------- */

bool
check_file_open(struct check *check, const char *path, int *ret_fd)
{
    int error = file_open(AT_FDCWD, path, ret_fd);

    if (error != 0) {
        tool_complain(&check->tool, CHECK_UNREADABLE,
                      "%s: cannot be opened: %s", path, strerror(error));
    }
    return error == 0;
}

/* Writes text from a signal handler. */
static void
say_text(const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t wrote = write(STDERR_FILENO, text, len);

        if (wrote <= 0) {
            return;
        }
        text += wrote;
        len -= (size_t)wrote;
    }
}

static void
say_number(uint64_t value)
{
    char digits[24];
    char *at = digits + sizeof(digits) - 1;

    *at = '\0';
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    say_text(at);
}

/* Puts zeros in place of a page that cannot be read. The zeros count as damage
 * like any other, and the rest of the file can still be salvaged. */
static void
on_bus_error(int number, siginfo_t *info, void *context)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)info->si_addr / page * page;
    void *zeros = NULL;

    (void)number;
    (void)context;
    for (size_t i = 0; i < MAPS_MAX; i++) {
        uintptr_t begin = (uintptr_t)maps[i].bytes.data;

        if (begin != 0 && at >= begin && at - begin < maps[i].bytes.len) {
            memcpy(&zeros, &at, sizeof(zeros));
            zeros = mmap(zeros, page, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            if (zeros != MAP_FAILED && unreadable++ < COMPLAINTS_MAX) {
                say_text(program);
                say_text(": ");
                say_text(maps[i].path);
                say_text(": cannot be read at offset ");
                say_number(at - begin);
                say_text(": I/O error, or the file was cut meanwhile\n");
            }
            if (zeros != MAP_FAILED) {
                return;
            }
        }
    }
    say_text(program);
    say_text(": I/O error\n");
    _exit(CHECK_UNREADABLE);
}

bool
check_file_map(struct check *check, int fd, size_t len, const char *path,
               struct check_map *ret_map)
{
    struct sigaction action = { .sa_sigaction = on_bus_error,
                                .sa_flags = SA_SIGINFO };
    int error;

    program = check->tool.name;
    (void)sigaction(SIGBUS, &action, NULL);
    error = file_map(fd, len, &ret_map->bytes);
    if (error != 0) {
        tool_complain(&check->tool, CHECK_UNREADABLE, "%s: cannot be read: %s",
                      path, strerror(error));
        return false;
    }
    ret_map->path = path;
    for (size_t i = 0; i < MAPS_MAX; i++) {
        if (maps[i].bytes.data == NULL) {
            maps[i] = *ret_map;
            break;
        }
    }
    return true;
}

bool
check_file_failed(void)
{
    return unreadable > 0;
}

void
check_file_unmap(struct check_map *map)
{
    for (size_t i = 0; i < MAPS_MAX && map->bytes.data != NULL; i++) {
        if (maps[i].bytes.data == map->bytes.data) {
            memset(&maps[i], 0, sizeof(maps[i]));
            break;
        }
    }
    file_unmap(map->bytes);
    memset(map, 0, sizeof(*map));
}
