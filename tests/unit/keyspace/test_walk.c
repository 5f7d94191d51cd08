/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A walk copies every filter exactly while others change, names what has gone,
 * and comes back to what was marked.
 */
#include "core/codec.h"
#include "core/payload.h"
#include "keyspace/databases.h"
#include "keyspace/gate.h"
#include "keyspace/hash_slot.h"
#include "keyspace/walk.h"
#include "keyspace/walk_internal.h"
#include "keyspace/walk_part.h"
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { KEYS = 3000, LARGE = 4 * 1000 * 1000 };

/* What a sink was given, by the number of the key. */
struct seen {
    struct keyspace *ks;
    unsigned items[KEYS], gone[KEYS];
    uint64_t position[KEYS];
    uint32_t db[KEYS], epoch[KEYS];
    struct buf form; /* of the last item, its lines added */
    uint64_t form_bytes;
    unsigned pieces;
    int error;
    /* Called at the first piece of lines, once. */
    void (*meanwhile)(struct seen *seen);
    atomic_bool stop;
};

static uint64_t
number(struct slice name)
{
    char text[NAME_MAX_BYTES + 1] = "";

    memcpy(text, name.data, name.len);
    return strtoull(text + strcspn(text, "0123456789"), NULL, 10);
}

static int
on_item(void *ctx, const struct walk_item *item)
{
    struct seen *seen = ctx;
    uint64_t n = number(item->name);

    assert_true(n < KEYS);
    seen->items[n]++;
    seen->position[n] = item->position;
    seen->db[n] = item->db;
    seen->epoch[n] = item->epoch;
    seen->form.len = 0;
    buf_append_slice(&seen->form, item->form);
    seen->form_bytes = item->form_bytes;
    if (item->whole) {
        assert_int_equal(item->form.len, item->form_bytes);
    }
    return seen->error;
}

static int
on_lines(void *ctx, uint32_t layer, uint64_t offset, struct slice lines,
         bool last)
{
    struct seen *seen = ctx;

    (void)layer;
    (void)offset;
    (void)last;
    assert_true(lines.len > 0 && lines.len <= WALK_PIECE_BYTES);
    buf_append_slice(&seen->form, lines);
    if (seen->pieces++ == 0 && seen->meanwhile != NULL) {
        seen->meanwhile(seen);
    }
    return 0;
}

static int
on_gone(void *ctx, const struct walk_item *item)
{
    struct seen *seen = ctx;

    seen->gone[number(item->name)]++;
    return 0;
}

static struct walk_sink
sink_of(struct seen *seen)
{
    return (struct walk_sink){ on_item, on_lines,    on_gone,
                               NULL,    &seen->stop, seen };
}

static struct seen *
seen_new(struct keyspace *ks)
{
    struct seen *seen = mem_zalloc(sizeof(*seen));

    seen->ks = ks;
    return seen;
}

static void
seen_free(struct seen *seen)
{
    buf_free(&seen->form);
    mem_free(seen);
}

static void
put(struct keyspace *ks, uint32_t db, unsigned n, uint64_t capacity)
{
    struct test_key key;

    (void)test_put_sized(ks, test_key_set(&key, db, n), capacity);
}

static void
begin(struct walk *walk, struct keyspace *ks, uint64_t position)
{
    gate_raise(ks->gate, 0);
    walk_begin(walk, position, NULL);
    gate_lower(ks->gate, 0);
}

static void
end(struct walk *walk, struct keyspace *ks)
{
    gate_raise(ks->gate, 0);
    walk_end(walk);
    gate_lower(ks->gate, 0);
}

TEST(walk_copies_every_key_with_its_position)
{
    struct keyspace *ks = test_keyspace(1);
    struct walk *walk = walk_try_new(ks);
    struct seen *seen = seen_new(ks);
    const struct walk_sink sink = sink_of(seen);

    for (unsigned i = 0; i < KEYS; i++) {
        put(ks, i % 3, i, 10 + i % 50);
    }
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        keyspace_set_position(ks, i, i % 2 == 0 ? 50 : 150);
    }
    begin(walk, ks, 100);
    assert_int_equal(walk_run(walk, 0, &sink), 0);
    end(walk, ks);
    for (unsigned i = 0; i < KEYS; i++) {
        struct test_key key;
        unsigned stripe = keyspace_stripe_of(test_key_set(&key, 0, i)->hash);

        assert_int_equal(seen->items[i], 1);
        assert_int_equal(seen->db[i], i % 3);
        assert_int_equal(seen->epoch[i], 0);
        assert_int_equal(seen->position[i], stripe % 2 == 0 ? 100 : 150);
    }
    assert_true(walk_figures(walk).holds >= 900);
    walk_free(walk);
    seen_free(seen);
    keyspace_free(ks);
}

/* Returns a filter of the server that this kind comes from, or one of which no
 * byte has come but the header. */
static struct bloom *
foreign_bloom(enum bloom_kind kind, bool incomplete)
{
    const struct bloom_params params = { .struct_size = sizeof(params),
                                         .capacity = 1000,
                                         .error_rate = 0.01,
                                         .tightening = 0.5,
                                         .expansion = 2,
                                         .kind = kind };
    const struct bloom_env env = test_env();
    struct bloom *bloom = NULL;
    struct bloom *begun = NULL;
    uint8_t header[CODEC_HEAD_BYTES_MAX];
    size_t len;

    assert_int_equal(bloom_new(&params, &env, &bloom), BLOOM_OK);
    if (!incomplete) {
        return bloom;
    }
    len = payload_put_header(bloom, header);
    assert_int_equal(payload_read_header(header, len, &env, &begun), BLOOM_OK);
    test_bloom_free(bloom);
    return begun;
}

TEST(walk_copies_foreign_and_incomplete_filters_in_their_stored_form)
{
    static const enum bloom_kind kinds[] = { BLOOM_NATIVE, BLOOM_REDISBLOOM,
                                             BLOOM_VALKEYBLOOM };

    for (size_t i = 0; i < 6; i++) {
        struct keyspace *ks = test_keyspace(1);
        struct walk *walk = walk_try_new(ks);
        struct seen *seen = seen_new(ks);
        const struct walk_sink sink = sink_of(seen);
        struct bloom *bloom = foreign_bloom(kinds[i / 2], i % 2 == 1);
        uint64_t bytes = codec_dump_bytes(bloom) - CODEC_CHECKSUM_BYTES;
        char *dump = malloc(bytes + CODEC_CHECKSUM_BYTES);
        struct test_key key;
        struct entry *entry;

        codec_dump(bloom, 999, dump);
        assert_int_equal(
            keyspace_insert(ks, test_key_set(&key, 0, 7), bloom, 999, &entry),
            OK);
        begin(walk, ks, 1);
        assert_int_equal(walk_run(walk, 0, &sink), 0);
        end(walk, ks);
        assert_int_equal(seen->items[7], 1);
        assert_int_equal(seen->form_bytes, bytes);
        assert_int_equal(seen->form.len, bytes);
        assert_memory_equal(seen->form.data, dump, bytes);
        free(dump);
        walk_free(walk);
        seen_free(seen);
        keyspace_free(ks);
    }
}

/* ---- what happens meanwhile ---------------------------------------------- */

static void
delete_it(struct seen *seen)
{
    struct test_key key;

    assert_true(keyspace_delete(seen->ks, test_key_set(&key, 0, 7), 0));
}

static void
delete_and_create(struct seen *seen)
{
    struct test_key key;
    struct bloom *bloom = test_bloom(LARGE);
    struct entry *entry;

    delete_it(seen);
    assert_int_equal(
        keyspace_insert(seen->ks, test_key_set(&key, 0, 7), bloom, 999, &entry),
        OK);
}

static void
flush_all(struct seen *seen)
{
    gate_raise(seen->ks->gate, 0);
    keyspace_flush_all(seen->ks);
    gate_lower(seen->ks->gate, 0);
}

static void
flush_db(struct seen *seen)
{
    gate_raise(seen->ks->gate, 0);
    keyspace_flush_db(seen->ks, 0);
    gate_lower(seen->ks->gate, 0);
}

static void
rename_it(struct seen *seen)
{
    struct test_key from;
    struct test_key to;
    const struct key *key = test_key_set(&from, 0, 7);
    struct entry *entry = keyspace_find(seen->ks, key, 0);

    assert_int_equal(
        keyspace_rename(seen->ks, key, entry, test_key_set(&to, 0, 8)), OK);
    keyspace_walk_again(seen->ks, &to.key);
}

static struct seen *
walk_with(struct keyspace *ks, struct walk *walk,
          void (*meanwhile)(struct seen *seen))
{
    struct seen *seen = seen_new(ks);
    const struct walk_sink sink = sink_of(seen);

    put(ks, 0, 7, LARGE);
    seen->meanwhile = meanwhile;
    begin(walk, ks, 1);
    assert_int_equal(walk_run(walk, 0, &sink), 0);
    return seen;
}

TEST(walk_tells_of_a_filter_that_goes_between_two_pieces)
{
    static void (*const ways[])(struct seen *) = { delete_it, flush_all,
                                                   flush_db, rename_it,
                                                   delete_and_create };

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct keyspace *ks = test_keyspace(1);
        struct walk *walk = walk_try_new(ks);
        struct seen *seen = walk_with(ks, walk, ways[i]);

        assert_int_equal(seen->items[7], 1);
        assert_int_equal(seen->gone[7], 1);
        end(walk, ks);
        walk_free(walk);
        seen_free(seen);
        keyspace_free(ks);
    }
}

static void
mark(struct keyspace *ks, unsigned n)
{
    struct test_key key;

    keyspace_walk_again(ks, test_key_set(&key, 0, n));
}

/* Each for itself, whichever is first. */
TEST(two_walks_come_back_to_what_was_marked)
{
    struct keyspace *ks = test_keyspace(1);
    struct walk *walks[2] = { walk_try_new(ks), walk_try_new(ks) };
    struct seen *seen[2] = { seen_new(ks), seen_new(ks) };
    uint64_t bytes = 0;

    put(ks, 0, 7, 100);
    put(ks, 0, 8, 100);
    begin(walks[0], ks, 1);
    mark(ks, 8); /* of no interest to the other one */
    begin(walks[1], ks, 1);
    assert_int_not_equal(walk_thread(walks[0]), walk_thread(walks[1]));
    assert_false(walk_has_again(walks[1]));
    for (int i = 0; i < 2; i++) {
        const struct walk_sink sink = sink_of(seen[i]);

        assert_int_equal(walk_run(walks[i], 0, &sink), 0);
    }
    mark(ks, 7);
    for (int i = 0; i < 2; i++) {
        const struct walk_sink sink = sink_of(seen[i]);

        assert_true(walk_has_again(walks[i]));
        assert_int_equal(walk_run_again(walks[i], 0, &sink, &bytes), 0);
        assert_false(walk_has_again(walks[i]));
        assert_int_equal(seen[i]->items[7], 2);
    }
    end(walks[0], ks);
    mark(ks, 7);
    assert_false(walk_has_again(walks[0]));
    assert_true(walk_has_again(walks[1]));
    begin(walks[0], ks, 1); /* beside the one that goes on */
    for (int i = 1; i >= 0; i--) {
        const struct walk_sink sink = sink_of(seen[i]);

        assert_int_equal(walk_run_again(walks[i], 0, &sink, &bytes), 0);
    }
    assert_int_equal(seen[0]->items[7], 2);
    assert_int_equal(seen[1]->items[7], 3);
    for (int i = 0; i < 2; i++) {
        end(walks[i], ks);
        walk_free(walks[i]);
        seen_free(seen[i]);
    }
    keyspace_free(ks);
}

TEST(walk_comes_back_to_what_was_marked)
{
    struct keyspace *ks = test_keyspace(1);
    struct walk *walk = walk_try_new(ks);
    struct seen *seen = walk_with(ks, walk, rename_it);
    const struct walk_sink sink = sink_of(seen);
    unsigned before = seen->items[8];
    uint64_t bytes = 0;

    assert_true(walk_has_again(walk));
    assert_int_equal(walk_run_again(walk, 0, &sink, &bytes), 0);
    assert_false(walk_has_again(walk));
    assert_int_equal(seen->items[8], before + 1);
    assert_int_equal(bytes, seen->form_bytes);
    assert_int_equal(seen->form.len, seen->form_bytes);
    assert_int_equal(walk_run_again(walk, 0, &sink, &bytes), 0);
    assert_int_equal(bytes, 0);
    assert_int_equal(walk_figures(walk).rounds, 2);
    end(walk, ks);
    walk_free(walk);
    seen_free(seen);
    keyspace_free(ks);
}

TEST(walk_names_slots_and_epochs_of_the_begin)
{
    struct keyspace *ks = test_keyspace(1);
    struct walk *walk = walk_try_new(ks);
    struct seen *seen = seen_new(ks);
    const struct walk_sink sink = sink_of(seen);

    flush_all(seen); /* before the begin: counts for nothing */
    begin(walk, ks, 1);
    gate_raise(ks->gate, 0);
    keyspace_swap_db(ks, 0, 1);
    keyspace_flush_db(ks, 0); /* of nothing; the slot of 1 */
    keyspace_flush_all(ks);
    gate_lower(ks->gate, 0);
    put(ks, 0, 1, 10);
    put(ks, 1, 2, 10);
    put(ks, 2, 3, 10);
    assert_int_equal(walk_run(walk, 0, &sink), 0);
    end(walk, ks);
    assert_int_equal(seen->db[1], 1);
    assert_int_equal(seen->epoch[1], 2);
    assert_int_equal(seen->db[2], 0);
    assert_int_equal(seen->epoch[2], 1);
    assert_int_equal(seen->db[3], 2);
    assert_int_equal(seen->epoch[3], 1);
    walk_free(walk);
    seen_free(seen);
    keyspace_free(ks);
}

/* Walks through a part of some keys; returns how many of them it copied. */
static unsigned
count_part(struct keyspace *ks, const struct walk_part *part)
{
    struct walk *walk = walk_try_new(ks);
    struct seen *seen = seen_new(ks);
    const struct walk_sink sink = sink_of(seen);
    unsigned count = 0;
    uint64_t bytes;

    gate_raise(ks->gate, 0);
    walk_begin(walk, 1, part);
    keyspace_swap_db(ks, 0, 1); /* the walk goes by the numbers of its begin */
    for (unsigned i = 0; i < KEYS; i++) {
        struct test_key key;

        keyspace_walk_again(ks, test_key_set(&key, (i % 3) ^ (i % 3 < 2), i));
    }
    gate_lower(ks->gate, 0);
    assert_int_equal(walk_run(walk, 0, &sink), 0);
    assert_int_equal(walk_run_again(walk, 0, &sink, &bytes), 0);
    gate_raise(ks->gate, 0);
    keyspace_swap_db(ks, 0, 1);
    gate_lower(ks->gate, 0);
    end(walk, ks);
    for (unsigned i = 0; i < KEYS; i++) {
        struct test_key key;
        struct slice name = test_key_set(&key, 0, i)->name;

        assert_true(seen->items[i] == 0 || seen->items[i] == 2);
        if (seen->items[i] > 0) {
            assert_true(walk_part_has_name(part, name));
            assert_true(part->of == WALK_PART_SLOTS || part->db == i % 3);
        }
        count += seen->items[i] / 2;
    }
    walk_free(walk);
    seen_free(seen);
    return count;
}

TEST(walk_of_a_part_copies_and_comes_back_to_no_more)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    unsigned in_slots = 0;

    for (unsigned i = 0; i < KEYS; i++) {
        put(ks, i % 3, i, 10);
    }
    for (uint32_t db = 0; db < 4; db++) {
        assert_int_equal(db < 3 ? KEYS / 3 : 0,
                         count_part(ks, &(struct walk_part){ .of = WALK_PART_DB,
                                                             .db = db }));
    }
    for (unsigned i = 0; i < 3; i++) {
        struct slice name = test_key_set(&key, 0, i)->name;
        struct slot_set slots = { { 0 } };

        slot_set_add(&slots, hash_slot_of(name));
        in_slots += count_part(
            ks, &(struct walk_part){ .of = WALK_PART_SLOTS, .slots = &slots });
        assert_int_equal(
            1,
            count_part(ks, &(struct walk_part){
                               .of = WALK_PART_KEY, .db = i, .name = name }));
        assert_int_equal(
            0, count_part(ks, &(struct walk_part){ .of = WALK_PART_KEY,
                                                   .db = i + 1,
                                                   .name = name }));
    }
    assert_true(in_slots >= 3 && in_slots < 30);
    keyspace_free(ks);
}

TEST(walk_marks_nothing_while_there_is_none)
{
    struct keyspace *ks = test_keyspace(1);
    struct walk *walk = walk_try_new(ks);
    struct test_key key;

    put(ks, 0, 1, 10);
    keyspace_walk_again(ks, test_key_set(&key, 0, 1));
    assert_false(walk_has_again(walk));
    begin(walk, ks, 1);
    keyspace_walk_again(ks, test_key_set(&key, 0, 1));
    assert_true(walk_has_again(walk));
    end(walk, ks);
    assert_false(walk_has_again(walk));
    walk_free(walk);
    keyspace_free(ks);
}

TEST(walk_ends_with_the_error_of_its_sink)
{
    struct keyspace *ks = test_keyspace(1);
    struct walk *walk = walk_try_new(ks);
    struct seen *seen = seen_new(ks);
    const struct walk_sink sink = sink_of(seen);

    put(ks, 0, 1, 10);
    seen->error = ENOSPC;
    begin(walk, ks, 1);
    assert_int_equal(walk_run(walk, 0, &sink), ENOSPC);
    seen->error = 0;
    atomic_store(&seen->stop, true);
    assert_int_equal(walk_run(walk, 0, &sink), ECANCELED);
    end(walk, ks);
    walk_free(walk);
    seen_free(seen);
    keyspace_free(ks);
}

TEST(walk_survives_every_allocation_failure)
{
    struct keyspace *ks = test_keyspace(1);
    bool fired = true;

    put(ks, 0, 1, 10);
    for (unsigned nth = 1; fired; nth++) {
        struct seen *seen = seen_new(ks);
        const struct walk_sink sink = sink_of(seen);
        struct walk *walk;
        int error = 0;

        buf_append(&seen->form, "", 1);
        (void)buf_reserve(&seen->form, 4096);
        mem_fail_at(nth);
        walk = walk_try_new(ks);
        if (walk != NULL) {
            begin(walk, ks, 1);
            error = walk_run(walk, 0, &sink);
            end(walk, ks);
        }
        fired = mem_fail_clear();
        assert_true(!fired || walk == NULL || error == ENOMEM);
        walk_free(walk);
        seen_free(seen);
    }
    keyspace_free(ks);
}

/* ---- beside a loop ------------------------------------------------------- */

struct beside {
    struct keyspace *ks;
    struct walk *walk;
    struct seen *seen;
    atomic_bool done;
    int error;
};

static void *
run_beside(void *arg)
{
    struct beside *beside = arg;
    const struct walk_sink sink = sink_of(beside->seen);

    beside->error = walk_run(beside->walk, keyspace_threads(beside->ks), &sink);
    atomic_store(&beside->done, true);
    metric_thread_exit();
    return NULL;
}

/* What asks first whether there are other threads must hear of a walk, too. */
TEST(one_loop_takes_locks_while_a_walk_may_enter)
{
    struct keyspace *ks = test_keyspace(1);

    assert_false(keyspace_is_shared(ks));
    keyspace_share(ks, true);
    assert_true(keyspace_is_shared(ks));
    assert_true(gate_try_enter(ks->gate, 0));
    assert_true(gate_try_enter(ks->gate, 1));
    gate_leave(ks->gate, 1);
    gate_leave(ks->gate, 0);
    keyspace_share(ks, false);
    assert_false(keyspace_is_shared(ks));
    keyspace_free(ks);
}

/* One loop creates and removes keys under its locks. Those that stay are all
 * seen. */
TEST(walk_runs_beside_a_loop)
{
    struct beside beside = { .ks = test_keyspace(1) };
    struct keyspace *ks = beside.ks;
    uint64_t random = random_of(3);
    pthread_t thread;

    beside.walk = walk_try_new(ks);
    beside.seen = seen_new(ks);
    for (unsigned i = 0; i < KEYS; i += 2) {
        put(ks, 0, i, i % 64 == 0 ? 20000 : 10);
    }
    keyspace_share(ks, true);
    begin(beside.walk, ks, 1);
    assert_int_equal(pthread_create(&thread, NULL, run_beside, &beside), 0);
    while (!atomic_load(&beside.done)) {
        struct test_key key;
        const struct key *k =
            test_key_set(&key, 0, 2 * test_random_below(&random, KEYS / 2) + 1);
        unsigned stripe = keyspace_stripe_of(k->hash);

        gate_enter(ks->gate, 0);
        keyspace_lock(ks, 0, stripe, true);
        if (!keyspace_delete(ks, k, 0)) {
            (void)test_put(ks, k);
        }
        keyspace_unlock(ks, 0, stripe);
        gate_leave(ks->gate, 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    end(beside.walk, ks);
    keyspace_share(ks, false);
    assert_int_equal(beside.error, 0);
    for (unsigned i = 0; i < KEYS; i += 2) {
        assert_true(beside.seen->items[i] >= 1);
    }
    walk_free(beside.walk);
    seen_free(beside.seen);
    keyspace_free(ks);
}
