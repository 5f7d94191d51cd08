/* SPDX-License-Identifier: BSD-3-Clause */
#include "heal/merge_read.h"

#include "base/file.h"
#include "engine/logged.h"
#include "heal/merge_held.h"
#include "proto/reply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Finds the heal file whose name comes first, and removes the files of an
 * interrupted save. */
static void
choose(struct merge_read *read, int dir_fd)
{
    DIR *dir = file_list_dir(dir_fd);
    struct dirent *entry;

    read->name[0] = '\0';
    read->bytes_waiting = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;

        if (merge_names_is_unfinished(name)) {
            (void)!file_unlink(dir_fd, name);
        } else if (merge_names_is_heal(name)) {
            read->bytes_waiting += merge_names_bytes(dir_fd, name);
            merge_held_add(read->held, dir_fd, name);
            if (read->name[0] == '\0' || strcmp(name, read->name) < 0) {
                (void)snprintf(read->name, sizeof(read->name), "%.*s",
                               MERGE_NAME_MAX - 1, name);
            }
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

void
merge_read_find(void *arg)
{
    struct merge_read *read = arg;
    int dir_fd = -1;
    uint64_t offset;

    read->fd = read->refused_fd = -1;
    read->map = read->batch = (struct slice){ NULL, 0 };
    read->at = 0;
    read->error = file_open_dir(read->dir, false, &dir_fd);
    if (read->error == 0) {
        choose(read, dir_fd);
    }
    if (read->error == 0 && read->name[0] != '\0') {
        char name[MERGE_NAME_MAX];

        merge_names_refused(read->name, name);
        read->quarantine_bytes = merge_names_quarantined(dir_fd, name);
        read->error = file_open(dir_fd, read->name, &read->fd);
        if (read->error == 0) {
            read->error =
                file_read_and_map(read->fd, SIZE_MAX, &read->map, &offset);
        }
        if (read->error == 0 &&
            group_read_first_line(read->map, &read->first) != GROUP_OK) {
            read->error = EBADMSG;
        } else if (read->error == 0) {
            read->at = GROUP_FIRST_LINE_BYTES;
        }
    }
    file_close(dir_fd);
}

/* Calls fn for each command; stops if it returns an error. */
static int
each_command(struct slice commands,
             int (*fn)(void *ctx, const struct logged *logged), void *ctx)
{
    struct logged_reader reader = { 0 };
    struct logged logged;
    int error = 0;

    logged_begin(&reader, commands);
    while (error == 0 && logged_next(&reader, &logged)) {
        error = fn(ctx, &logged);
    }
    if (error == 0) {
        error = reader.error == EINVAL ? EBADMSG : reader.error;
    }
    logged_fini(&reader);
    return error;
}

enum { OFFERED_AT = 5 }; /* the first item of an offer */

/* Counts a command, which is a SELECT or an offer of items. */
static int
count_command(void *ctx, const struct logged *logged)
{
    struct merge_read *read = ctx;
    uint64_t db;
    bool good = logged->kind == LOGGED_SELECT
                    ? slice_to_u64(logged->argv[1], &db)
                    : logged->argc > OFFERED_AT;

    read->commands++;
    return good ? 0 : EBADMSG;
}

void
merge_read_next(void *arg)
{
    struct merge_read *read = arg;
    struct group group;

    read->batch = (struct slice){ NULL, 0 };
    read->commands = 0;
    if (read->at == read->map.len) {
        return;
    }
    if (group_read(read->map, read->first.key, read->at, &group) != GROUP_OK) {
        read->error = EBADMSG;
        return;
    }
    read->batch = group.commands;
    read->at = group.end;
    read->error = each_command(read->batch, count_command, read);
    if (read->error != 0) {
        read->batch = (struct slice){ NULL, 0 };
    }
}

struct storing {
    struct merge_read *read;
    struct buf out;
    size_t next;      /* index of the next refusal */
    uint32_t command; /* index of the command in the batch */
    struct slice db;
    bool selected;
};

/* Writes the refused items of a command as a BF.MADD. */
static int
store_command(void *ctx, const struct logged *logged)
{
    const struct slice *argv = logged->argv;
    size_t argc = logged->argc;
    struct storing *storing = ctx;
    struct merge_read *read = storing->read;
    const struct merge_refusal *refusal = &read->refusals[storing->next];
    struct reply reply = { &storing->out, 2 };
    size_t from;
    size_t before = storing->out.len;

    if (logged->kind == LOGGED_SELECT) {
        storing->db = argv[1];
        storing->selected = false;
    }
    if (storing->next == read->refused ||
        refusal->command != storing->command++) {
        return 0;
    }
    storing->next++;
    from = OFFERED_AT + refusal->item;
    if (from >= argc) {
        return 0;
    }
    if (!storing->selected) {
        reply_array(&reply, 2);
        reply_bulk_text(&reply, "SELECT");
        reply_bulk(&reply, storing->db);
    }
    reply_array(&reply, 2 + argc - from);
    reply_bulk_text(&reply, "BF.MADD");
    reply_bulk(&reply, argv[1]);
    for (size_t i = from; i < argc; i++) {
        reply_bulk(&reply, argv[i]);
    }
    if (storing->out.failed) {
        return ENOMEM;
    }
    if (read->quarantine_bytes + storing->out.len > read->quarantine_max) {
        storing->out.len = before;
        read->lost += argc - from;
        return 0;
    }
    storing->selected = true;
    read->quarantined += argc - from;
    return 0;
}

void
merge_read_store(void *arg)
{
    struct merge_read *read = arg;
    struct storing storing = { .read = read };
    char name[MERGE_NAME_MAX];
    int dir_fd = -1;

    read->quarantined = read->lost = 0;
    if (read->refused == 0) {
        return;
    }
    read->error = each_command(read->batch, store_command, &storing);
    if (read->error == 0 && read->refused_fd < 0) {
        merge_names_refused(read->name, name);
        read->error = file_open_dir(read->dir, false, &dir_fd);
        if (read->error == 0) {
            read->error = file_create(dir_fd, name, &read->refused_fd);
        }
        file_close(dir_fd);
    }
    if (read->error == 0) {
        read->error =
            file_write(read->refused_fd, storing.out.data, storing.out.len);
        read->quarantine_bytes += storing.out.len;
    }
    buf_free(&storing.out);
}

void
merge_read_finish(void *arg)
{
    struct merge_read *read = arg;
    char aside[MERGE_NAME_MAX + 16];
    int dir_fd = -1;
    int error = file_open_dir(read->dir, false, &dir_fd);

    read->set_aside = false;
    if (error == 0 && read->error == 0 && read->refused_fd >= 0) {
        error = file_sync(read->refused_fd);
    }
    if (error == 0 && read->error == EBADMSG) {
        (void)snprintf(aside, sizeof(aside), "%s.damaged", read->name);
        error = file_rename(dir_fd, read->name, aside);
        read->set_aside = error == 0;
    } else if (error == 0 && read->error == 0) {
        error = file_unlink(dir_fd, read->name);
    }
    if (error == 0) {
        merge_held_remove(read->held, read->name);
        error = file_sync_dir(dir_fd);
    }
    file_close(dir_fd);
    read->error = error;
}

void
merge_read_end(struct merge_read *read)
{
    file_unmap(read->map);
    file_close(read->fd);
    file_close(read->refused_fd);
    read->map = read->batch = (struct slice){ NULL, 0 };
    read->fd = read->refused_fd = -1;
    read->name[0] = '\0';
}
