/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks the data directory, names its files and opens it.
 */
#include "persist/directory.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "persist/persist_state.h"
#include "snapshot/data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_TRIES = 50 }; /* half a second in all */

/* The suffix of a snapshot that will replace the old one. While the old or the
 * new one is being written, ".tmp" is appended to its name. */
#define ARRIVAL_SUFFIX ".new"

/* The suffix of the file of arriving data, which may not be synced completely.
 */
#define INCOMING_SUFFIX ".arriving"

/* Waits a moment for the lock: a server that was killed holds it until the
 * kernel has freed its memory and closed its files. */
static bool
lock_soon(int fd)
{
    static const struct timespec pause = { .tv_nsec = 10000000 };
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;

    for (int i = 0; i < LOCK_TRIES && !locked; i++) {
        (void)nanosleep(&pause, NULL);
        locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    }
    return locked;
}

/* flock() belongs to the descriptor, so the directory is free when this process
 * is gone, however it ends. */
int
directory_lock(struct persist *persist, int dir_fd, int *ret_fd)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    int fd = openat(dir_fd, DIRECTORY_LOCK,
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

    if (fd < 0) {
        return errno;
    }
    if (!lock_soon(fd)) {
        char owner[32] = "";
        ssize_t got = read(fd, owner, sizeof(owner) - 1);

        owner[got > 0 ? strcspn(owner, "\n") : 0] = '\0';
        log_error("persist", "another server uses the directory",
                  "dir=\"%s\" pid=%s", persist->dir, owner);
        (void)close(fd);
        return EWOULDBLOCK;
    }
    (void)!ftruncate(fd, 0);
    /* Another server names this process in its message. */
    (void)!pwrite(fd, text, (size_t)len, 0);
    *ret_fd = fd;
    return 0;
}

static bool
lock_dir(struct persist *persist)
{
    const struct conf *conf = persist->options.conf;
    bool nothing_is_written = conf->save.count == 0 && !conf->appendonly;
    int error = directory_lock(persist, persist->dir_fd, &persist->lock_fd);

    if ((error == EACCES || error == EROFS) && nothing_is_written) {
        log_warn("persist", "did not lock the directory",
                 "dir=\"%s\" error=\"%s\" reason=\"nothing is saved there\"",
                 persist->dir, strerror(error));
        return true;
    }
    if (error != 0 && error != EWOULDBLOCK) {
        log_error("persist", "cannot open the lock",
                  "file=\"%s/" DIRECTORY_LOCK "\" error=\"%s\"", persist->dir,
                  strerror(error));
    }
    return error == 0;
}

/* Returns whether a snapshot of this name needs a file called `name`. */
static bool
is_beside(const char *snapshot, const char *name)
{
    size_t len = strlen(snapshot);

    return strncmp(name, snapshot, len) == 0 &&
           (strcmp(name + len, ".tmp") == 0 ||
            strcmp(name + len, ARRIVAL_SUFFIX) == 0 ||
            strcmp(name + len, INCOMING_SUFFIX) == 0 ||
            strcmp(name + len, ARRIVAL_SUFFIX ".tmp") == 0);
}

/* Returns whether another file of the server has this name. */
static bool
is_taken(const char *name)
{
    enum file_id id = data_files_find(name);

    return id != FILE_ID_COUNT && data_files[id].name[0] != '*';
}

static void
describe_clash(const struct conf *conf, char *ret_reason, size_t reason_size)
{
    char taken[512] = "";
    size_t len = 0;

    for (unsigned id = 0; id < FILE_ID_COUNT; id++) {
        if (data_files[id].place == IN_DIR && data_files[id].name[0] != '*') {
            len += (size_t)snprintf(taken + len, sizeof(taken) - len, "%s%s",
                                    len > 0 ? " " : "", data_files[id].name);
            CHECK(len < sizeof(taken));
        }
    }
    (void)snprintf(ret_reason, reason_size,
                   "dbfilename %s and appenddirname %s must differ from "
                   "each other and from the server's other files (%s), "
                   "and not end in .tmp; and appenddirname must not be "
                   "dbfilename followed by .tmp, " INCOMING_SUFFIX
                   " or " ARRIVAL_SUFFIX,
                   conf->dbfilename, conf->appenddirname, taken);
}

bool
directory_names_clash(const struct conf *conf, char *ret_reason,
                      size_t reason_size)
{
    const char *dot = strrchr(conf->dbfilename, '.');
    bool clash = strcmp(conf->dbfilename, conf->appenddirname) == 0 ||
                 is_taken(conf->dbfilename) || is_taken(conf->appenddirname) ||
                 is_beside(conf->dbfilename, conf->appenddirname) ||
                 (dot != NULL && strcmp(dot, ".tmp") == 0);

    if (clash) {
        describe_clash(conf, ret_reason, reason_size);
    }
    return clash;
}

/* Copies the names. Paths are absolute, since the working directory may be
 * moved as well. */
static void
copy_names(struct persist *persist)
{
    const struct conf *conf = persist->options.conf;
    char text[PATH_MAX + 2048];
    char here[PATH_MAX];

    if (conf->dir[0] == '/' || getcwd(here, sizeof(here)) == NULL) {
        persist->dir = mem_copy_text(slice_of(conf->dir));
    } else {
        (void)snprintf(text, sizeof(text), "%s/%s", here, conf->dir);
        persist->dir =
            mem_copy_text(slice_of(strcmp(conf->dir, ".") == 0 ? here : text));
    }
    persist->journal_name = mem_copy_text(slice_of(conf->appenddirname));
    persist->snapshot_name = mem_copy_text(slice_of(conf->dbfilename));
    (void)snprintf(text, sizeof(text), "%s/%s", persist->dir,
                   conf->appenddirname);
    persist->journal_dir = mem_copy_text(slice_of(text));
    (void)snprintf(text, sizeof(text), "%s" ARRIVAL_SUFFIX, conf->dbfilename);
    persist->arrival_name = mem_copy_text(slice_of(text));
    (void)snprintf(text, sizeof(text), "%s" INCOMING_SUFFIX, conf->dbfilename);
    persist->incoming_name = mem_copy_text(slice_of(text));
}

bool
directory_has(int dir_fd, const char *name)
{
    int fd = -1;
    int error = file_open(dir_fd, name, &fd);

    file_close(fd);
    return error != ENOENT;
}

static void
remove_if_there(int dir_fd, const char *name)
{
    if (directory_has(dir_fd, name)) {
        (void)!file_unlink(dir_fd, name);
    }
}

/* Returns whether the name is the temporary name of one of the server's files.
 */
static bool
is_temporary(const char *name)
{
    size_t len = strlen(name);
    char stem[256];

    if (len <= 4 || len >= sizeof(stem) ||
        strcmp(name + len - 4, ".tmp") != 0) {
        return false;
    }
    (void)snprintf(stem, sizeof(stem), "%.*s", (int)len - 4, name);
    return data_files_find(stem) != FILE_ID_COUNT;
}

/* Removes the temporary files that a kill left. */
static void
remove_rest(const struct persist *persist)
{
    DIR *dir = file_list_dir(persist->dir_fd);
    struct dirent *entry;
    char name[1024];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_temporary(entry->d_name)) {
            (void)!file_unlink(persist->dir_fd, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)snprintf(name, sizeof(name), "%s.tmp", persist->snapshot_name);
    (void)!file_unlink(persist->dir_fd, name);
    (void)snprintf(name, sizeof(name), "%s.tmp", persist->arrival_name);
    remove_if_there(persist->dir_fd, name);
    remove_if_there(persist->dir_fd, persist->incoming_name);
}

bool
directory_open(struct persist *persist)
{
    char reason[PERSIST_REASON_MAX];
    int error;

    if (directory_names_clash(persist->options.conf, reason, sizeof(reason))) {
        log_error("persist", "cannot use these names", "reason=\"%s\"", reason);
        return false;
    }
    copy_names(persist);
    error = file_open_dir(persist->dir, false, &persist->dir_fd);
    if (error != 0) {
        log_error("persist", "cannot use the directory",
                  "dir=\"%s\" error=\"%s\" "
                  "help=\"create it, or name another one with --dir\"",
                  persist->dir, strerror(error));
        return false;
    }
    if (!lock_dir(persist)) {
        return false;
    }
    error = file_open_dir(persist->journal_dir, false, &persist->journal_fd);
    if (error != 0 && error != ENOENT) {
        log_error("persist", "cannot use the journal's directory",
                  "dir=\"%s\" error=\"%s\"", persist->journal_dir,
                  strerror(error));
        return false;
    }
    remove_rest(persist);
    return true;
}
