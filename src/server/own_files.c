/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rename puts the new pidfile in the place of one that a crash has left.
 */
#include "server/own_files.h"

#include "base/file.h"
#include "base/log.h"
#include "conf/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
own_files_write_pid(const char *path)
{
    char temporary[1100];
    char line[32];
    int len = snprintf(line, sizeof(line), "%d\n", (int)getpid());
    int error = 0;
    int fd;

    if (path[0] == '\0') {
        return;
    }
    (void)snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    (void)unlink(temporary); /* a link there may name a file of somebody else */
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    error = fd < 0 ? errno : file_write(fd, line, (size_t)len);
    if (fd >= 0 && close(fd) != 0 && error == 0) {
        error = errno;
    }
    if (error == 0 && rename(temporary, path) != 0) {
        error = errno;
    }
    if (fd >= 0 && error != 0) {
        (void)unlink(temporary);
    }
    if (error != 0) {
        log_warn("server", "could not write the pidfile",
                 "path=\"%s\" error=\"%s\"", path, strerror(error));
    }
}

void
own_files_remove_pid(const char *path)
{
    char line[32] = "";
    int fd = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0) {
        return;
    }
    if (read(fd, line, sizeof(line) - 1) > 0 &&
        strtol(line, NULL, 10) == (long)getpid()) {
        (void)unlink(path);
    }
    (void)close(fd);
}

void
own_files_reopen_log(const char *path)
{
    int error = path[0] != '\0' ? log_open(path) : 0;

    if (error != 0) {
        log_error("server", "kept the old log file",
                  "logfile=\"%s\" error=\"%s\"", path, strerror(error));
    }
}

static void
warn_of_mode(const char *option, const char *path, mode_t bit, const char *what)
{
    struct stat info;

    if (path[0] != '\0' && stat(path, &info) == 0 &&
        (info.st_mode & bit) != 0) {
        log_warn("server", what,
                 "option=%s file=\"%s\" mode=%04o advice=\"chmod o= the file\"",
                 option, path, (unsigned)(info.st_mode & 07777));
    }
}

void
own_files_warn_of_modes(const struct conf *conf)
{
    warn_of_mode("aclfile", conf->aclfile, S_IWOTH,
                 "everyone may write the file of the users");
    warn_of_mode("tls-key-file", conf->tls_key_file, S_IROTH,
                 "everyone may read a private key");
    warn_of_mode("tls-client-key-file", conf->tls_client_key_file, S_IROTH,
                 "everyone may read a private key");
}
