/* SPDX-License-Identifier: BSD-3-Clause */
#include "life.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/filter.h"
#include "core/payload.h"
#include "core/stream.h"
#include "dump_help.h"
#include "journal/journal_tap.h"
#include "keyspace/defrag.h"
#include "keyspace/gate.h"
#include "keyspace/reclaim.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DBS = 3, ITEMS = 30, ROUNDS = 4, YIELDS = 50 };

static char neighbour[16];
const char *const life_names[NAMES] = { "a", neighbour, "b", "c" };

void
life_name_keys(void)
{
    const unsigned stripe =
        keyspace_stripe_of(hash_name(slice_of(life_names[0])));
    unsigned n = 0;

    do {
        (void)snprintf(neighbour, sizeof(neighbour), "a%u", n++);
    } while (keyspace_stripe_of(hash_name(slice_of(neighbour))) != stripe);
}

static unsigned
below(struct life *life, unsigned n)
{
    return (unsigned)test_random_below(&life->random, n);
}

/* ---- the log ------------------------------------------------------------- */

static void
tap_begin(void *ctx, uint64_t position, uint64_t sequence)
{
    struct life *life = ctx;

    life->begin.position = life->position = position;
    life->begin.sequence = sequence;
    life->group_count = 0;
    life->groups[0].len = 0;
    life->text.len = 0;
}

static void
tap_text(void *ctx, struct slice bytes)
{
    struct life *life = ctx;
    size_t n = life->group_count;

    if (life->groups[n].len == 0) {
        life->groups[n].from = life->text.len;
    }
    life->groups[n].len += bytes.len;
    buf_append_slice(&life->text, bytes);
}

static void
tap_close(void *ctx, uint64_t sequence, const char *seal)
{
    struct life *life = ctx;
    size_t n = life->group_count++;

    assert_null(seal);
    assert_true(n + 1 < GROUPS_MAX);
    life->groups[n].position = life->position;
    life->groups[n].sequence = sequence;
    life->position += life->groups[n].len + GROUP_SEAL_BYTES;
    life->groups[n + 1].len = 0;
}

/* ---- random commands ----------------------------------------------------- */

static void
put_items(struct life *life, struct buf *line, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        buf_printf(line, " i%u", below(life, ITEMS));
    }
}

static void
put_insert(struct life *life, struct buf *line, const char *name)
{
    buf_printf(line, "BF.INSERT %s CAPACITY %u", name, 1 + below(life, 6));
    if (life->forgets != NULL) {
        buf_printf(line, " EXPANSION 200000 %s ITEMS", life->forgets);
        put_items(life, line, 20);
        return;
    }
    if (below(life, 3) == 0) {
        buf_printf(line, " NONSCALING");
    } else if (below(life, 4) == 0) { /* its second layer comes in pieces */
        buf_printf(line, " EXPANSION 200000");
    } else {
        buf_printf(line, " EXPANSION %u", 1 + below(life, 2));
    }
    if (below(life, 2) == 0) {
        buf_printf(line, " DELETABLE %u", 1U << below(life, 4));
    } else if (below(life, 2) == 0) {
        buf_printf(line, " AGEING 1 GENERATIONS %u", 1 + below(life, 64));
    }
    buf_printf(line, " ITEMS");
    put_items(life, line, 1 + below(life, 4));
}

/* A filter that is there comes again under another name. */
static void
put_restore(struct life *life, uint32_t db, unsigned from, unsigned to)
{
    struct slice name = slice_of(life_names[from]);
    const struct key key = key_named(name, db);
    const struct entry *entry = NULL;
    struct buf dump = { 0 };

    if (!life->threaded) { /* else nobody has locked it */
        entry = keyspace_find(life->rig->service.keyspace, &key, 0);
    }
    if (entry == NULL) {
        batch_text(life->rig, "BF.RESERVE b 0.1 7");
        return;
    }
    dump_of(entry, &dump);
    batch_command(life->rig);
    batch_word(life->rig, slice_lit("RESTORE"));
    batch_word(life->rig, slice_of(life_names[to]));
    batch_word(life->rig, slice_of(below(life, 2) == 0 ? "0" : "50000"));
    batch_word(life->rig, buf_slice(&dump));
    batch_word(life->rig, slice_lit("REPLACE"));
    buf_free(&dump);
}

/* Has a piece of the filter's stream loaded. */
static void
put_chunk(struct life *life, const struct bloom *bloom, const char *to)
{
    enum { PIECE_MAX = 16 << 10 };
    uint8_t piece[PIECE_MAX];
    uint64_t offset = below(life, (unsigned)stream_bytes(bloom));
    uint64_t left;
    size_t len;
    char iterator[24];

    if (below(life, 2) == 0) { /* a whole layer, if it is small */
        offset = 0;
    }
    left = stream_left(bloom, offset);
    len = left > PIECE_MAX || below(life, 3) == 0
              ? 1 + below(life, left < PIECE_MAX ? (unsigned)left : PIECE_MAX)
              : (size_t)left;
    stream_read(bloom, offset, len, piece);
    (void)snprintf(iterator, sizeof(iterator), "%llu",
                   (unsigned long long)(offset + len + 1));
    batch_command(life->rig);
    batch_word(life->rig, slice_lit("BF.LOADCHUNK"));
    batch_word(life->rig, slice_of(to));
    batch_word(life->rig, slice_of(iterator));
    batch_word(life->rig, (struct slice){ (const char *)piece, len });
}

/* A filter that is there comes in chunks under another name, not all of them.
 */
static void
put_chunks(struct life *life, uint32_t db, unsigned from, const char *to)
{
    struct slice name = slice_of(life_names[from]);
    const struct key key = key_named(name, db);
    const struct entry *entry = NULL;
    char line[32];
    uint8_t header[1024];

    if (!life->threaded) { /* else nobody has locked it */
        entry = keyspace_find(life->rig->service.keyspace, &key, 0);
    }
    if (entry == NULL || bloom_is_incomplete(&entry->bloom) ||
        payload_header_bytes(&entry->bloom) > sizeof(header)) {
        return;
    }
    if (below(life, 2) == 0) {
        (void)snprintf(line, sizeof(line), "DEL %s", to);
        batch_text(life->rig, line);
    }
    batch_command(life->rig);
    batch_word(life->rig, slice_lit("BF.LOADCHUNK"));
    batch_word(life->rig, slice_of(to));
    batch_word(life->rig, slice_lit("1"));
    batch_word(life->rig,
               (struct slice){ (const char *)header,
                               payload_put_header(&entry->bloom, header) });
    for (unsigned i = below(life, 3); i > 0; i--) {
        put_chunk(life, &entry->bloom, to);
    }
}

/* Adds a command to the batch, behind a SELECT. */
static void
put_command(struct life *life)
{
    uint32_t db = below(life, DBS);
    uint32_t other = below(life, DBS);
    unsigned from = below(life, NAMES);
    unsigned to = below(life, NAMES);
    const char *k = life_names[from];
    const char *m = life_names[to];
    unsigned kind = below(life, life->forgets != NULL ? 55 : 100);
    struct buf line = { 0 };

    buf_printf(&line, "SELECT %u", db);
    buf_append(&line, "", 1);
    batch_text(life->rig, line.data);
    line.len = 0;
    if (kind < 25) { /* a run */
        for (unsigned i = below(life, 4); i > 0; i--) {
            line.len = 0;
            buf_printf(&line, "BF.ADD %s", k);
            put_items(life, &line, 1);
            buf_append(&line, "", 1);
            batch_text(life->rig, line.data);
        }
        line.len = 0;
        buf_printf(&line, "BF.ADD %s i1", k);
    } else if (kind < 45) {
        buf_printf(&line, "%s %s", below(life, 3) ? "BF.MADD" : "BF.MDEL", k);
        put_items(life, &line, 1 + below(life, 5));
    } else if (kind < 55) {
        put_insert(life, &line, k);
    } else if (kind < 60) {
        buf_printf(&line, "%s %s %s", below(life, 2) ? "DEL" : "UNLINK", k, m);
    } else if (kind < 65) {
        buf_printf(&line, "PEXPIRE %s %u", k, below(life, 3) * 30000 + 1);
    } else if (kind < 67) {
        buf_printf(&line, "PERSIST %s", k);
    } else if (kind < 73) {
        buf_printf(&line, "%s %s %s", below(life, 3) ? "RENAME" : "RENAMENX", k,
                   m);
    } else if (kind < 78) {
        buf_printf(&line, "MOVE %s %u", k, other);
    } else if (kind < 83) {
        buf_printf(&line, "COPY %s %s DB %u REPLACE", k, m, other);
    } else if (kind < 85) {
        put_restore(life, db, from, to);
    } else if (kind < 87) {
        put_chunks(life, db, from, m);
    } else if (kind < 90) {
        buf_printf(&line, "BF.RESET %s", k);
    } else if (kind < 94) {
        buf_printf(&line, "BF.MERGE %s %s", m, k);
    } else if (kind < 96) {
        buf_printf(&line, "SWAPDB %u %u", db, other);
    } else if (kind < 99) {
        buf_printf(&line, "FLUSHDB");
    } else {
        buf_printf(&line, "FLUSHALL");
    }
    if (line.len > 0) {
        buf_append(&line, "", 1);
        batch_text(life->rig, line.data);
    }
    buf_free(&line);
}

static void *
move_block(void *block, size_t align)
{
    size_t bytes = malloc_usable_size(block);
    void *moved = mem_try_lines((bytes + 63) / 64 * 64);

    assert_non_null(moved);
    assert_int_equal((uintptr_t)moved % align, 0);
    memcpy(moved, block, bytes);
    mem_free(block);
    return moved;
}

/* What one loop does between commands. */
static void
tidy(struct life *life)
{
    struct worker *worker = life->rig->worker;
    struct keyspace *ks = worker->service->keyspace;
    struct defrag_sums sums = { 0 };

    if (!life->threaded &&
        below(life, 20) == 0) { /* removes what has expired */
        (void)keyspace_reclaim(ks, worker->index, clock_wall_ms(), 1000);
    }
    if (below(life, 8) == 0) { /* moves some or all to other addresses */
        gate_enter(keyspace_gate(ks), worker->index);
        (void)keyspace_defrag(ks, worker->index, move_block,
                              below(life, 2) * 1000, &sums);
        gate_leave(keyspace_gate(ks), worker->index);
        life->moved += sums.keys.moved;
    }
}

void
life_run(struct life *life)
{
    unsigned count = below(life, 6) == 0 ? 2 + below(life, 3) : 1;

    if (life->rig->worker->index <= 1) {
        tidy(life);
    }
    batch_begin(life->rig);
    if (count > 1) {
        batch_text(life->rig, "MULTI");
    }
    for (unsigned i = 0; i < count; i++) {
        put_command(life);
    }
    if (count > 1) {
        batch_text(life->rig, "EXEC");
    }
    batch_run(life->rig);
    if (below(life, 4) == 0) {
        (void)journal_close_group(life->rig->journal);
    }
}

/* What happens between two holds of the walk. */
static void
live(struct life *life)
{
    static const unsigned counts[] = { 0, 0, 1, 1, 2 };

    for (unsigned i = life->threaded && !life->still ? below(life, YIELDS) : 0;
         i > 0; i--) {
        (void)sched_yield();
    }
    if (life->threaded) {
        return;
    }

    for (unsigned i = counts[below(life, 5)]; i > 0 && !life->still; i--) {
        life_run(life);
    }
}

/* ---- the walk ------------------------------------------------------------ */

static struct snapshot_record
record_of(const struct walk_item *item)
{
    return (struct snapshot_record){ .name = item->name,
                                     .db = item->db,
                                     .expires_at_ms = item->expires_at_ms,
                                     .incarnation = item->incarnation,
                                     .epoch = item->epoch,
                                     .copied_at = item->position };
}

static int
on_item(void *ctx, const struct walk_item *item)
{
    struct life *life = ctx;
    struct snapshot_record record = record_of(item);
    int error;

    life->items++;
    if (life->without == NO_EPOCHS) {
        record.epoch = 0;
    }
    if (life->without == NO_POSITION) {
        record.copied_at = life->begin.position;
    }
    error = item->whole ? snapshot_put(life->writer, &record, item->form)
                        : snapshot_put_head(life->writer, &record, item->form);
    live(life);
    return error;
}

static int
on_lines(void *ctx, uint32_t layer, uint64_t offset, struct slice lines,
         bool last)
{
    struct life *life = ctx;
    int error = snapshot_put_lines(life->writer, lines.data, lines.len);

    (void)layer;
    (void)offset;
    (void)last;
    life->pieces++;
    live(life);
    return error;
}

static int
on_gone(void *ctx, const struct walk_item *item)
{
    struct life *life = ctx;
    struct snapshot_record record = record_of(item);

    life->gone++;
    return snapshot_void(life->writer, &record);
}

static int
on_pieces(void *ctx, size_t most, const uint64_t *positions, size_t count)
{
    struct life *life = ctx;

    life->placed += (unsigned)count;
    if (life->without == NO_PIECES) {
        return snapshot_put_pieces(life->writer, 0, NULL, 0);
    }
    return snapshot_put_pieces(life->writer, most, positions, count);
}

static void
put_effects(struct life *life)
{
    for (size_t i = 0; i < life->group_count; i++) {
        const struct snapshot_effects effects = {
            .position = life->groups[i].position,
            .sequence = life->groups[i].sequence,
            .commands = { life->text.data + life->groups[i].from,
                          life->groups[i].len },
        };

        assert_int_equal(0, snapshot_put_effects(life->writer, &effects));
    }
}

void
life_raise_gate(struct life *life, bool on)
{
    struct gate *gate = keyspace_gate(life->rig->service.keyspace);

    if (life->threaded && on) {
        gate_raise(gate, 0);
    } else if (life->threaded) {
        gate_lower(gate, 0);
    }
}

/* Copies all keys, and most of what is to be copied again. */
static void *
copy_keys(void *ptr)
{
    struct life *life = ptr;
    const struct walk_sink sink = { on_item,   on_lines, on_gone,
                                    on_pieces, NULL,     life };
    unsigned thread = life->threaded ? LOOPS : 1;
    uint64_t ignored;

    live(life);
    CHECK(walk_run(life->walk, thread, &sink) == 0);
    for (unsigned i = 0; i < ROUNDS && life->without != NO_AGAIN; i++) {
        CHECK(walk_run_again(life->walk, thread, &sink, &ignored) == 0);
    }
    if (life->threaded) {
        metric_thread_exit();
    }
    return NULL;
}

int
life_walk(struct life *life)
{
    const struct journal_tap tap = { tap_begin, tap_text, tap_close, life };
    const struct walk_sink sink = { on_item,   on_lines, on_gone,
                                    on_pieces, NULL,     life };
    struct snapshot_stamp end = { .history = "h" };
    int fd = memfd_create("walk", MFD_CLOEXEC);
    pthread_t thread;
    uint64_t ignored;

    life->walk = walk_try_new(life->rig->service.keyspace);
    life_raise_gate(life, true);
    journal_set_tap(life->rig->journal, JOURNAL_TAP_WALK, &tap,
                    &life->begin.position, &life->begin.sequence);
    walk_begin(life->walk, life->begin.position, life->part);
    life_raise_gate(life, false);
    assert_int_equal(0,
                     snapshot_begin(life->writer, &life->begin, 16, fd, NULL));
    if (life->threaded) {
        assert_int_equal(0, pthread_create(&thread, NULL, copy_keys, life));
        assert_int_equal(0, pthread_join(thread, NULL));
    } else {
        (void)copy_keys(life);
    }
    life_raise_gate(life, true);
    life->still = true;
    while (walk_has_again(life->walk) && life->without != NO_AGAIN) {
        assert_int_equal(0, walk_run_again(life->walk, 0, &sink, &ignored));
    }
    life->still = false;
    walk_end(life->walk);
    walk_free(life->walk);
    end.position = journal_close_group(life->rig->journal);
    end.sequence = life->begin.sequence + life->group_count;
    end.keys = keyspace_count_keys(life->rig->service.keyspace);
    assert_int_equal(life->position, end.position);
    put_effects(life);
    assert_int_equal(0, snapshot_end(life->writer, &end));
    journal_set_tap(life->rig->journal, JOURNAL_TAP_WALK, NULL, &ignored,
                    &ignored);
    return fd;
}
