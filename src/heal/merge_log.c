/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A save copies its part of the log into a file without a name first, so that
 * the memory of the backlog is free soon, and groups are in one piece.
 *
 * Items are collected by key before they go into a group: the primary needs
 * much less time for one command with many items than for a command for each
 * item.
 */
#include "heal/merge_log.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "heal/merge_held.h"
#include "heal/merge_names.h"
#include "journal/group.h"
#include "journal/kept.h"
#include "journal/manifest.h"
#include "proto/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP_ITEMS = 8192, /* most items of a batch */
    GROUP_BYTES = 256 << 10,
    COMMAND_ITEMS = 64,
    QUARANTINE_BUF = 1 << 20,
    SELECT_NONE = -1
};

/* ---- commands ------------------------------------------------------------ */

static void
put_select(struct buf *out, uint32_t db)
{
    struct reply reply = { out, 2 };
    char digits[16];

    (void)snprintf(digits, sizeof(digits), "%" PRIu32, db);
    reply_array(&reply, 2);
    reply_bulk_text(&reply, "SELECT");
    reply_bulk_text(&reply, digits);
}

static void
put_command(struct buf *out, const struct slice *argv, size_t argc)
{
    struct reply reply = { out, 2 };

    reply_array(&reply, argc);
    for (size_t i = 0; i < argc; i++) {
        reply_bulk(&reply, argv[i]);
    }
}

/* ---- the writer of a save ------------------------------------------------ */

struct pending {
    const struct merge_name *name;
    struct slice item;
    size_t order;
};

struct writer {
    struct merge_log *log;
    int dir_fd, heal_fd, aside_fd;
    struct pending *pending;
    size_t count, bytes;
    struct buf group, aside;
    struct group_hash *hash;
    uint64_t key, sequence;
    int64_t aside_db;
    uint64_t aside_bytes; /* total size of the quarantine files */
    char aside_name[MERGE_NAME_MAX];
    char temp[MERGE_NAME_MAX + 8];
};

static int
compare(const void *left, const void *right)
{
    const struct pending *a = left;
    const struct pending *b = right;

    if (a->name != b->name) {
        return (uintptr_t)a->name < (uintptr_t)b->name ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Appends the command that adds these items of one key. */
static void
put_offer(struct buf *out, const struct pending *items, size_t count)
{
    struct reply reply = { out, 2 };
    char digits[24];

    (void)snprintf(digits, sizeof(digits), "%" PRIu64,
                   items->name->incarnation);
    reply_array(&reply, 5 + count);
    reply_bulk_text(&reply, "BF.INSERT");
    reply_bulk(&reply, items->name->name);
    reply_bulk_text(&reply, "IFINCARNATION");
    reply_bulk_text(&reply, digits);
    reply_bulk_text(&reply, "ITEMS");
    for (size_t i = 0; i < count; i++) {
        reply_bulk(&reply, items[i].item);
    }
}

static int
write_group(struct writer *writer)
{
    struct group_seal seal = { .sequence = ++writer->sequence,
                               .unix_ms = clock_wall_ms(),
                               .bytes = writer->group.len };
    char text[GROUP_SEAL_BYTES];
    int error;

    if (writer->group.failed) {
        return ENOMEM;
    }
    group_hash_begin(writer->hash, writer->key);
    group_hash_add(writer->hash, writer->group.data, writer->group.len);
    group_write_seal(writer->hash, writer->key, &seal, text);
    error = file_write(writer->heal_fd, writer->group.data, writer->group.len);
    if (error == 0) {
        error = file_write(writer->heal_fd, text, sizeof(text));
    }
    writer->log->heal_bytes += writer->group.len + sizeof(text);
    writer->group.len = 0;
    return error;
}

/* Writes the collected items as one group. */
static int
flush_items(struct writer *writer)
{
    int64_t db = SELECT_NONE;
    size_t i = 0;

    if (writer->count == 0) {
        return 0;
    }
    qsort(writer->pending, writer->count, sizeof(*writer->pending), compare);
    while (i < writer->count) {
        const struct pending *first = &writer->pending[i];
        size_t same = 1;

        while (same < COMMAND_ITEMS && i + same < writer->count &&
               first[same].name == first->name) {
            same++;
        }
        if (db != (int64_t)first->name->db) {
            db = (int64_t)first->name->db;
            put_select(&writer->group, first->name->db);
        }
        put_offer(&writer->group, first, same);
        i += same;
    }
    writer->log->offered += writer->count;
    writer->count = writer->bytes = 0;
    return write_group(writer);
}

static bool
on_offer(void *ctx, const struct merge_name *name, struct slice item)
{
    struct writer *writer = ctx;

    writer->pending[writer->count] =
        (struct pending){ name, item, writer->count };
    writer->count++;
    writer->bytes += item.len + name->name.len;
    if (writer->count == GROUP_ITEMS || writer->bytes >= GROUP_BYTES) {
        writer->log->error = flush_items(writer);
    }
    return writer->log->error == 0;
}

static int
flush_aside(struct writer *writer)
{
    int error = 0;

    if (writer->aside.failed) {
        return ENOMEM;
    }
    if (writer->aside.len > 0 && writer->aside_fd < 0) {
        error =
            file_create(writer->dir_fd, writer->aside_name, &writer->aside_fd);
    }
    if (error == 0 && writer->aside.len > 0) {
        error =
            file_write(writer->aside_fd, writer->aside.data, writer->aside.len);
    }
    writer->aside.len = 0;
    return error;
}

static bool
on_aside(void *ctx, uint32_t db, const struct slice *argv, size_t argc,
         size_t changes)
{
    struct writer *writer = ctx;
    size_t before = writer->aside.len;

    if (writer->aside_db != (int64_t)db) {
        put_select(&writer->aside, db);
    }
    put_command(&writer->aside, argv, argc);
    if (writer->aside_bytes + writer->aside.len - before >
        writer->log->quarantine_max) {
        writer->aside.len = before; /* the quarantine has reached its limit */
        writer->log->lost += changes;
        return true;
    }
    writer->aside_bytes += writer->aside.len - before;
    writer->aside_db = (int64_t)db;
    writer->log->quarantined += changes;
    if (writer->aside.len >= QUARANTINE_BUF) {
        writer->log->error = flush_aside(writer);
    }
    return writer->log->error == 0;
}

/* ---- saving -------------------------------------------------------------- */

/* Copies the part of the log into a file without a name, and maps it. */
static int
copy_log(struct merge_log *log, int dir_fd)
{
    int error = file_create_unnamed(dir_fd, &log->raw_fd);

    for (size_t i = 0; i < log->count && error == 0; i++) {
        error =
            file_write(log->raw_fd, log->slices[i].data, log->slices[i].len);
    }
    return error == 0 ? file_map(log->raw_fd, SIZE_MAX, &log->raw) : error;
}

/* ---- the journal --------------------------------------------------------- */

static int
map_increment(int dir_fd, const struct manifest_increment *increment,
              struct verify_file *file)
{
    char name[MANIFEST_FILE_NAME_MAX];
    uint64_t offset;
    int fd = -1;
    int error;

    manifest_increment_name(increment->number, name);
    file->closed = increment->closed;
    file->bytes = increment->bytes;
    error = file_open(dir_fd, name, &fd);
    if (error == 0) {
        error = file_read_and_map(
            fd, increment->closed ? (size_t)increment->bytes : SIZE_MAX,
            &file->data, &offset);
    }
    file_close(fd);
    return error;
}

static void
unmap_journal(struct merge_log *log)
{
    for (uint32_t i = 0; log->files != NULL && i < log->manifest->count; i++) {
        file_unmap(log->files[i].data);
    }
    mem_free(log->files);
    mem_free(log->manifest);
    log->files = NULL;
    log->manifest = NULL;
}

/* Reads which increments have our part of the log: those of the manifest, and
 * those that rewrites have kept. The log before them is lost. */
static int
load_manifest(struct merge_log *log, int journal_fd)
{
    struct manifest *kept = mem_try_zalloc(sizeof(*kept));
    char reason[160];
    bool loaded =
        kept != NULL && manifest_load(journal_fd, log->manifest, reason,
                                      sizeof(reason)) == MANIFEST_OK;

    if (loaded && !log->skips_kept && log->manifest->position > log->position) {
        (void)kept_load(journal_fd, kept);
        kept_prepend(kept, log->manifest);
    }
    mem_free(kept);
    if (!loaded) {
        return ENOENT;
    }
    log->missing = 0;
    if (log->manifest->position > log->position) {
        log->missing = log->manifest->position < log->end
                           ? log->manifest->position - log->position
                           : log->end - log->position;
    }
    return 0;
}

/* Returns the first group's sequence number, less one. */
static uint64_t
first_sequence(const struct merge_log *log)
{
    for (uint32_t i = 0; i < log->manifest->count; i++) {
        struct group_file first;
        struct group group;

        if (group_read_first_line(log->files[i].data, &first) == GROUP_OK &&
            group_read(log->files[i].data, first.key, GROUP_FIRST_LINE_BYTES,
                       &group) == GROUP_OK) {
            return group.seal.sequence - 1;
        }
    }
    return log->manifest->sequence;
}

/* Maps the increments. ENODATA: a rewrite has just removed a file. */
static int
map_journal(struct merge_log *log)
{
    int journal_fd = -1;
    int error;

    log->manifest = mem_try_zalloc(sizeof(*log->manifest));
    if (log->manifest == NULL) {
        return ENOMEM;
    }
    error = file_open_dir(log->journal_dir, false, &journal_fd);
    if (error == 0) {
        error = load_manifest(log, journal_fd);
    }
    if (error == 0) {
        log->files =
            mem_try_zalloc((log->manifest->count + 1) * sizeof(*log->files));
        error = log->files == NULL ? ENOMEM : 0;
    }
    for (uint32_t i = 0; error == 0 && i < log->manifest->count; i++) {
        error = map_increment(journal_fd, &log->manifest->increments[i],
                              &log->files[i]);
    }
    if (error == 0) {
        log->manifest->sequence = first_sequence(log);
    }
    file_close(journal_fd);
    return error == ENOENT ? ENODATA : error;
}

/* ---- groups -------------------------------------------------------------- */

struct visit {
    struct merge_log *log;
    const struct merge_sift_hooks *hooks;
    int error;
};

static int
sift_group(struct merge_log *log, const struct merge_sift_hooks *hooks,
           struct slice commands)
{
    return hooks == NULL ? merge_sift_note(log->sift, commands)
                         : merge_sift_split(log->sift, commands, hooks);
}

static bool
visit_group(void *ctx, uint32_t file, const struct group *group,
            uint64_t end_position)
{
    struct visit *visit = ctx;

    (void)file;
    if (end_position > visit->log->position &&
        end_position <= visit->log->end) {
        visit->error = sift_group(visit->log, visit->hooks, group->commands);
    }
    return visit->error == 0 && end_position < visit->log->end;
}

static int
each_of_journal(struct merge_log *log, const struct merge_sift_hooks *hooks)
{
    struct visit visit = { log, hooks, 0 };
    const struct verify_walk walk = { .position = log->manifest->position,
                                      .sequence = log->manifest->sequence,
                                      .visit = visit_group,
                                      .ctx = &visit };
    struct verify_result result;

    (void)verify_each(log->files, log->manifest->count, &walk, &result);
    if (visit.error != 0) {
        return visit.error;
    }
    return result.position >= log->end ? 0 : ENODATA;
}

/* Sifts each group: notes its names if hooks is NULL, else calls the hooks. */
static int
each_group(struct merge_log *log, const struct merge_sift_hooks *hooks)
{
    uint64_t at = 0;
    int error = 0;

    if (log->files != NULL) {
        return each_of_journal(log, hooks);
    }
    while (at < log->raw.len && error == 0) {
        struct group group;

        if (group_read(log->raw, log->key, at, &group) != GROUP_OK) {
            return EBADMSG;
        }
        error = sift_group(log, hooks, group.commands);
        at = group.end;
    }
    return error;
}

void
merge_log_collect(void *arg)
{
    struct merge_log *log = arg;
    int dir_fd = -1;

    unmap_journal(log); /* the last attempt may have mapped it */
    merge_sift_free(log->sift);
    log->raw_fd = -1;
    log->sift = merge_sift_new();
    log->error = file_open_dir(log->dir, false, &dir_fd);
    if (log->error == 0) {
        log->error =
            log->slices != NULL ? copy_log(log, dir_fd) : map_journal(log);
    }
    if (log->error == 0) {
        log->error = each_group(log, NULL);
    }
    file_close(dir_fd);
}

static int
begin_heal(struct writer *writer)
{
    struct group_file first = { .key = random_number(),
                                .created_ms = clock_wall_ms() };
    char line[GROUP_FIRST_LINE_BYTES];
    int error = file_create(writer->dir_fd, writer->temp, &writer->heal_fd);

    memcpy(first.run_id, writer->log->history, sizeof(first.run_id));
    group_write_first_line(&first, line);
    writer->key = first.key;
    return error == 0 ? file_write(writer->heal_fd, line, sizeof(line)) : error;
}

/* Writes the rest, syncs the quarantine, then the heal file, and names that. */
static int
settle_files(struct writer *writer)
{
    struct merge_log *log = writer->log;
    char name[MERGE_NAME_MAX];
    int error = flush_items(writer);

    if (error == 0) {
        error = flush_aside(writer);
    }
    if (error == 0 && writer->aside_fd >= 0) {
        error = file_sync(writer->aside_fd);
    }
    if (error != 0 || log->offered == 0) {
        (void)!file_unlink(writer->dir_fd, writer->temp);
        return error != 0 ? error : file_sync_dir(writer->dir_fd);
    }
    merge_names_heal(log->history, log->position, name);
    error = file_sync(writer->heal_fd);
    if (error == 0) {
        error = file_rename(writer->dir_fd, writer->temp, name);
    }
    if (error == 0) {
        merge_held_add(log->held, writer->dir_fd, name);
    }
    return error == 0 ? file_sync_dir(writer->dir_fd) : error;
}

void
merge_log_write(void *arg)
{
    struct merge_log *log = arg;
    struct writer writer = { .log = log,
                             .dir_fd = -1,
                             .heal_fd = -1,
                             .aside_fd = -1,
                             .aside_db = SELECT_NONE };
    struct merge_sift_hooks hooks = { on_offer, on_aside, &writer };

    merge_names_quarantine(log->history, log->position, writer.aside_name);
    merge_names_heal(log->history, log->position, writer.temp);
    (void)strncat(writer.temp, ".tmp",
                  sizeof(writer.temp) - 1 - strlen(writer.temp));
    writer.pending = mem_try_alloc(GROUP_ITEMS * sizeof(*writer.pending));
    writer.hash = group_hash_new();
    log->error = writer.pending == NULL
                     ? ENOMEM
                     : file_open_dir(log->dir, false, &writer.dir_fd);
    if (log->error == 0) {
        writer.aside_bytes =
            merge_names_quarantined(writer.dir_fd, writer.aside_name);
        log->error = begin_heal(&writer);
    }
    if (log->error == 0) {
        int error = each_group(log, &hooks);

        log->error = error != 0 && error != ECANCELED ? error : log->error;
    }
    if (log->error == 0) {
        log->error = settle_files(&writer);
    }
    file_close(writer.heal_fd);
    file_close(writer.aside_fd);
    file_close(writer.dir_fd);
    group_hash_free(writer.hash);
    buf_free(&writer.group);
    buf_free(&writer.aside);
    mem_free(writer.pending);
}

void
merge_log_end(struct merge_log *log)
{
    unmap_journal(log);
    mem_free(log->journal_dir);
    merge_sift_free(log->sift);
    file_unmap(log->raw);
    file_close(log->raw_fd);
    mem_free((void *)log->slices);
    *log = (struct merge_log){ .raw_fd = -1 };
}
