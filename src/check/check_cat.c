/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text output is one command a line, with the words quoted like in redis-cli,
 * so that it can be read, searched and typed back. RESP output is for redis-cli
 * --pipe, in commands that a client may send: an add never creates a key, and a
 * filter that no command of a client can create is a RESTORE.
 */
#include "check/check_cat.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "check/check_card.h"
#include "check/check_chain.h"
#include "check/check_pick.h"
#include "check/check_snapshot.h"
#include "check/check_world.h"
#include "command/rows.h"
#include "core/bloom.h"
#include "core/codec.h"
#include "core/payload.h"
#include "engine/effect_words.h"
#include "engine/logged.h"
#include "keyspace/scan.h"
#include "proto/reply.h"

#include <errno.h>
#include <stdio.h>

enum { OUT_BYTES = 1 << 20 };

struct cat {
    struct check *check;
    struct buf out;
    struct logged_reader reader;
    struct buf words; /* of a command that differs from the log's */
    uint32_t db;
    bool db_known;
    bool failed; /* an error was printed: stop */
};

/* ---- output -------------------------------------------------------------- */

static bool
flush(struct cat *cat)
{
    if (!cat->failed && cat->out.failed) {
        tool_complain(&cat->check->tool, CHECK_UNREADABLE, "%s",
                      strerror(ENOMEM));
        cat->failed = true;
    }
    if (!cat->failed && cat->out.len > 0 &&
        fwrite(cat->out.data, 1, cat->out.len, stdout) != cat->out.len) {
        tool_complain(&cat->check->tool, CHECK_UNREADABLE,
                      "standard output: cannot be written: %s",
                      strerror(errno));
        cat->failed = true;
    }
    buf_reset(&cat->out, OUT_BYTES);
    cat->out.failed = false;
    return !cat->failed;
}

static bool
put_command(struct cat *cat, const struct slice *argv, size_t argc)
{
    struct reply reply = { .buf = &cat->out, .resp = 2 };

    if (cat->check->resp) {
        reply_array(&reply, argc);
    }
    for (size_t i = 0; i < argc; i++) {
        if (cat->check->resp) {
            reply_bulk(&reply, argv[i]);
            continue;
        }
        buf_append(&cat->out, " ", i > 0);
        buf_append(&cat->out, "\"", 1);
        buf_append_escaped(&cat->out, argv[i]);
        buf_append(&cat->out, "\"", 1);
    }
    if (!cat->check->resp) {
        buf_append(&cat->out, "\n", 1);
    }
    return cat->out.len < OUT_BYTES || flush(cat);
}

static bool
put_select(struct cat *cat, uint32_t db)
{
    char text[16];
    struct slice argv[] = { slice_lit("SELECT"), { text, 0 } };

    if (cat->db_known && cat->db == db) {
        return true;
    }
    cat->db = db;
    cat->db_known = true;
    argv[1].len = (size_t)snprintf(text, sizeof(text), "%u", db);
    return put_command(cat, argv, 2);
}

/* ---- snapshots ----------------------------------------------------------- */

/* Writes a filter as its DUMP into *ret_payload, which the caller frees. */
static bool
make_payload(struct cat *cat, const struct bloom *bloom, uint64_t incarnation,
             struct slice *ret_payload)
{
    bool whole = !bloom_is_incomplete(bloom);
    uint64_t bytes = whole ? payload_bytes_any(bloom) : codec_dump_bytes(bloom);
    char *payload = mem_try_alloc((size_t)bytes);

    if (payload == NULL) {
        tool_complain(&cat->check->tool, CHECK_UNREADABLE,
                      "no memory for a filter of %llu bytes",
                      (unsigned long long)bytes);
        cat->failed = true;
        return false;
    }
    if (whole) {
        payload_put_any(bloom, incarnation, payload);
    } else {
        codec_dump(bloom, incarnation, payload);
    }
    *ret_payload = (struct slice){ payload, (size_t)bytes };
    return true;
}

static bool
put_restore(struct cat *cat, const struct snapshot_record *record,
            const struct bloom *bloom)
{
    char expires[24];
    struct slice argv[] = { slice_lit("RESTORE"), record->name,
                            { expires, 0 },       { NULL, 0 },
                            slice_lit("REPLACE"), slice_lit("ABSTTL") };
    bool ok;

    if (!make_payload(cat, bloom, record->incarnation, &argv[3])) {
        return false;
    }
    argv[2].len = (size_t)snprintf(expires, sizeof(expires), "%llu",
                                   (unsigned long long)record->expires_at_ms);
    ok = put_command(cat, argv, 6);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): only casts const away */
    mem_free((void *)(uintptr_t)argv[3].data);
    return ok;
}

static bool
put_filter(struct cat *cat, const struct snapshot_record *record,
           const struct bloom *bloom)
{
    if (cat->check->resp && bloom_is_incomplete(bloom)) {
        tool_complain(&cat->check->tool, CHECK_DAMAGED,
                      "left out a filter of database %u of which only a part "
                      "has come (BF.LOADCHUNK): no client can restore it",
                      record->db);
        return true;
    }
    return put_select(cat, record->db) && put_restore(cat, record, bloom);
}

static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    bool ok = put_filter(ctx, record, bloom);

    bloom_fini(bloom, NULL);
    return ok;
}

static struct snapshot_record
record_of(uint32_t db, const struct entry *entry, uint64_t expires_at_ms)
{
    return (struct snapshot_record){ .name = entry_name(entry),
                                     .db = db,
                                     .expires_at_ms = expires_at_ms,
                                     .incarnation = entry->incarnation };
}

static bool
on_entry(void *ctx, uint32_t db, const struct entry *entry,
         uint64_t expires_at_ms)
{
    const struct snapshot_record record = record_of(db, entry, expires_at_ms);

    return put_filter(ctx, &record, &entry->bloom);
}

/* Prints the filters of a snapshot after its effects were executed on them. */
static bool
cat_world(struct cat *cat, int fd, const char *path)
{
    struct check_world *world = check_world_new();
    char why[256] = "";
    bool ok = check_world_load(world, fd, false, why, sizeof(why));

    if (!ok) {
        tool_complain(&cat->check->tool,
                      check_card_status(check_card_failure(why)), "%s: %s",
                      path, why);
    }
    ok = ok && keyspace_each(check_world_keyspace(world), on_entry, cat);
    check_world_free(world);
    return ok;
}

static bool
cat_snapshot_fd(struct cat *cat, int fd, const char *path)
{
    struct snapshot_visitor visitor = { .filter = on_filter, .ctx = cat };
    struct check_snapshot found = { 0 };
    enum snapshot_status status;

    status = snapshot_read_stamp(fd, &found.stamp, &found.error);
    if (status == SNAPSHOT_OK && check_snapshot_is_walked(&found)) {
        return cat_world(cat, fd, path);
    }
    status = snapshot_read(fd, NULL, &visitor, NULL, &found.error);
    if (status == SNAPSHOT_OK || status == SNAPSHOT_STOPPED) {
        return status == SNAPSHOT_OK;
    }
    (void)flush(cat);
    found.state = check_snapshot_state(status);
    check_snapshot_complain(cat->check, path, &found);
    return false;
}

static void
cat_snapshot(struct cat *cat, const char *path)
{
    int fd = -1;

    if (check_file_open(cat->check, path, &fd)) {
        (void)cat_snapshot_fd(cat, fd, path);
        file_close(fd);
    }
}

/* ---- journals ------------------------------------------------------------ */

static bool
put_made(void *ctx, uint32_t db, const struct entry *entry,
         uint64_t expires_at_ms)
{
    const struct snapshot_record record = record_of(db, entry, expires_at_ms);

    return put_restore(ctx, &record, &entry->bloom);
}

/* Prints the filter that a BF.INSERT creates, without its items, as RESTORE. */
static bool
put_creation(struct cat *cat, const struct slice *argv, size_t argc)
{
    struct check_world *world = check_world_new();
    struct buf text = { 0 };
    struct reply reply = { .buf = &text, .resp = 2 };
    char why[256] = "";
    bool ok;

    reply_array(&reply, argc);
    for (size_t i = 0; i < argc; i++) {
        reply_bulk(&reply, argv[i]);
    }
    ok = !text.failed &&
         check_world_execute(world, buf_slice(&text), why, sizeof(why));
    if (!ok) {
        tool_complain(&cat->check->tool, CHECK_UNREADABLE,
                      "a filter of the log cannot be made: %s", why);
        cat->failed = true;
    }
    ok = ok && keyspace_each(check_world_keyspace(world), put_made, cat);
    check_world_free(world);
    buf_free(&text);
    return ok;
}

/* Prints adds of items, which stand STEP words apart, to a key that is there.
 */
static bool
put_adds(struct cat *cat, struct slice key, const struct slice *items,
         size_t count, size_t step)
{
    struct slice *argv;
    size_t argc = 0;

    if (count == 0) {
        return true;
    }
    buf_reset(&cat->words, SIZE_MAX);
    argv = (void *)buf_reserve(&cat->words, (count + 4) * sizeof(*argv));
    if (argv == NULL) {
        tool_complain(&cat->check->tool, CHECK_UNREADABLE, "%s",
                      strerror(ENOMEM));
        cat->failed = true;
        return false;
    }
    argv[argc++] = slice_lit("BF.INSERT");
    argv[argc++] = key;
    argv[argc++] = slice_lit("NOCREATE");
    argv[argc++] = slice_lit("ITEMS");
    for (size_t i = 0; i < count; i++) {
        argv[argc++] = items[i * step];
    }
    return put_command(cat, argv, argc);
}

/* Prints a BF.INSERT as a client may send it. */
static bool
put_insert(struct cat *cat, const struct logged *logged)
{
    struct slice *argv = logged->argv;
    size_t argc = logged->argc;
    struct insert_words found = insert_words_of(argv, argc);
    size_t step = found.placed ? 2 : 1;
    size_t first = found.list + step; /* argv position of the first item */
    size_t count = first < argc ? (argc - first + step - 1) / step : 0;
    const struct slice remove[] = { slice_lit("DEL"), argv[1] };

    if ((found.flags & INSERT_MAKES) == 0) {
        return put_adds(cat, argv[1], argv + first, count, step);
    }
    if ((found.flags & INSERT_TIMED) != 0 &&
        !put_command(cat, remove, 2)) { /* may stand for a BF.RESET */
        return false;
    }
    if ((found.flags & INSERT_SHAPE) != 0) {
        return put_creation(cat, argv, found.list) &&
               put_adds(cat, argv[1], argv + first, count, step);
    }
    return put_command(cat, argv, effect_plain(argv, logged));
}

/* Prints a command of the log as a client may send it. */
static bool
put_plain(struct cat *cat, const struct logged *logged)
{
    struct slice *argv = logged->argv;

    switch (logged->kind) {
    case LOGGED_HISTORY: /* names the log; no client may send it */
        return true;
    case LOGGED_ADD:
        return put_adds(cat, argv[1], argv + 2, logged->argc - 2, 1);
    case LOGGED_INSERT:
        return put_insert(cat, logged);
    default:
        return put_command(cat, argv, effect_plain(argv, logged));
    }
}

static bool
on_group(void *ctx, const struct check_increment *increment,
         const struct group *group, uint64_t end_position)
{
    struct cat *cat = ctx;
    struct logged_reader *reader = &cat->reader;
    struct logged logged;

    (void)end_position;
    logged_begin(reader, group->commands);
    while (logged_next(reader, &logged)) {
        if (logged.kind == LOGGED_SELECT) {
            cat->db_known = false;
        }
        if (!(cat->check->resp ? put_plain(cat, &logged)
                               : put_command(cat, logged.argv, logged.argc))) {
            return false;
        }
    }
    if (reader->error != 0) {
        bool damaged = reader->error != ENOMEM;
        uint64_t offset = group->begin + reader->at;

        (void)flush(cat);
        tool_complain(
            &cat->check->tool, damaged ? CHECK_DAMAGED : CHECK_UNREADABLE,
            "%s: group %llu: %s at offset %llu", increment->path,
            (unsigned long long)group->seal.sequence,
            damaged ? "no command" : "no memory", (unsigned long long)offset);
        cat->failed = true;
        return false;
    }
    return true;
}

static void
cat_groups(struct cat *cat, struct check_journal *journal)
{
    check_chain_scan(cat->check, journal, on_group, cat);
    (void)flush(cat);
    check_journal_complain(cat->check, journal);
}

static void
cat_increment(struct cat *cat, const char *path)
{
    struct check_journal *journal = mem_zalloc(sizeof(*journal));

    if (check_journal_open_single(cat->check, path, journal)) {
        cat_groups(cat, journal);
        check_journal_close(journal);
    }
    mem_free(journal);
}

static void
cat_journal(struct cat *cat, const char *path)
{
    struct check_journal *journal = mem_zalloc(sizeof(*journal));

    if (check_journal_open_found(cat->check, path, journal)) {
        if (cat_snapshot_fd(cat, journal->base_fd, journal->base_path)) {
            cat_groups(cat, journal);
        }
        check_journal_close(journal);
    }
    mem_free(journal);
}

void
check_cat(struct check *check, const char *path)
{
    struct cat cat = { .check = check };
    char inner[CHECK_PATH_MAX];
    enum check_kind kind;

    if (!check_pick_state(check, path, &kind, inner)) {
        return;
    }
    command_table_init(command_rows);
    switch (kind) {
    case CHECK_KIND_SNAPSHOT:
        cat_snapshot(&cat, inner);
        break;
    case CHECK_KIND_INCREMENT:
        cat_increment(&cat, inner);
        break;
    default:
        cat_journal(&cat, inner);
        break;
    }
    (void)flush(&cat);
    logged_fini(&cat.reader);
    buf_free(&cat.words);
    buf_free(&cat.out);
}
