/* SPDX-License-Identifier: BSD-3-Clause */
#include "heal/merge_held.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct merge_held_file *
find_file(struct merge_held *held, const char *name)
{
    for (size_t i = 0; i < held->count; i++) {
        if (strcmp(held->files[i].name, name) == 0) {
            return &held->files[i];
        }
    }
    return NULL;
}

void
merge_held_add(struct merge_held *held, int dir_fd, const char *name)
{
    struct merge_held_file *file = &held->files[held->count];

    if (find_file(held, name) == NULL && held->count < MERGE_HELD_MAX &&
        file_open(dir_fd, name, &file->fd) == 0) {
        (void)snprintf(file->name, sizeof(file->name), "%.*s",
                       MERGE_NAME_MAX - 1, name);
        held->count++;
    }
}

void
merge_held_remove(struct merge_held *held, const char *name)
{
    struct merge_held_file *file = find_file(held, name);

    if (file != NULL) {
        file_close(file->fd);
        *file = held->files[--held->count];
    }
}

/* Copies the file to a temporary name first: a file of that name counts as
 * unfinished. */
static int
write_again(int dir_fd, const struct merge_held_file *file)
{
    char temporary[MERGE_NAME_MAX + 8];
    struct slice bytes = { NULL, 0 };
    int fd = -1;
    int error = file_map(file->fd, SIZE_MAX, &bytes);

    (void)snprintf(temporary, sizeof(temporary), "%s.tmp", file->name);
    if (error == 0) {
        error = file_create(dir_fd, temporary, &fd);
    }
    if (error == 0) {
        error = file_write(fd, bytes.data, bytes.len);
    }
    error = error == 0 ? file_sync(fd) : error;
    file_close(fd);
    file_unmap(bytes);
    return error == 0 ? file_rename(dir_fd, temporary, file->name) : error;
}

void
merge_held_write_again(void *arg)
{
    struct merge_held *held = arg;
    int dir_fd = -1;
    int error = file_open_dir(held->dir, false, &dir_fd);

    for (size_t i = 0; i < held->count && error == 0; i++) {
        int there = -1;

        error = file_open(dir_fd, held->files[i].name, &there);
        file_close(there);
        if (error == ENOENT) {
            error = write_again(dir_fd, &held->files[i]);
        }
    }
    if (error == 0 && held->count > 0) {
        error = file_sync_dir(dir_fd);
    }
    file_close(dir_fd);
    held->error = error;
}

void
merge_held_fini(struct merge_held *held)
{
    for (size_t i = 0; i < held->count; i++) {
        file_close(held->files[i].fd);
    }
    held->count = 0;
}
