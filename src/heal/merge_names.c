/* SPDX-License-Identifier: BSD-3-Clause */
#include "heal/merge_names.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char heal_mark[] = "heal-";
static const char heal_end[] = ".log";
static const char quarantine_mark[] = "quarantine-";

void
merge_names_heal(const char *history, uint64_t position, char *ret_name)
{
    (void)snprintf(ret_name, MERGE_NAME_MAX, "%s%s-%" PRIu64 "%s", heal_mark,
                   history, position, heal_end);
}

static bool
begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool
ends(const char *name, const char *with)
{
    size_t len = strlen(name);

    return len >= strlen(with) && strcmp(name + len - strlen(with), with) == 0;
}

uint64_t
merge_names_bytes(int dir_fd, const char *name)
{
    uint64_t bytes = 0;
    int fd = -1;

    if (file_open(dir_fd, name, &fd) == 0) {
        (void)!file_size(fd, &bytes);
        file_close(fd);
    }
    return bytes;
}

uint64_t
merge_names_quarantined(int dir_fd, const char *but)
{
    DIR *dir = file_list_dir(dir_fd);
    struct dirent *entry;
    uint64_t bytes = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (begins(entry->d_name, quarantine_mark) &&
            strcmp(entry->d_name, but) != 0) {
            bytes += merge_names_bytes(dir_fd, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return bytes;
}

void
merge_names_quarantine(const char *history, uint64_t position, char *ret_name)
{
    (void)snprintf(ret_name, MERGE_NAME_MAX, "%s%s-%" PRIu64 ".resp",
                   quarantine_mark, history, position);
}

void
merge_names_refused(const char *heal, char *ret_name)
{
    size_t len = strlen(heal) - strlen(heal_end) - strlen(heal_mark);

    (void)snprintf(ret_name, MERGE_NAME_MAX, "%s%.*s-refused.resp",
                   quarantine_mark, (int)len, heal + strlen(heal_mark));
}

bool
merge_names_is_heal(const char *name)
{
    return begins(name, heal_mark) && ends(name, heal_end) &&
           strlen(name) < MERGE_NAME_MAX;
}

bool
merge_names_is_unfinished(const char *name)
{
    return begins(name, heal_mark) && ends(name, ".log.tmp");
}
