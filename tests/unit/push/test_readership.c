/* SPDX-License-Identifier: BSD-3-Clause */
#include "push/readership.h"

#include "../test.h"
#include "base/hash.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct rig {
    _Atomic uint64_t keys, bytes;
    struct readership *readership;
    struct notice_list list;
};

static void
rig_init(struct rig *rig, uint64_t keys, uint64_t bytes)
{
    struct readership_limits limits = { &rig->keys, &rig->bytes };

    memset(rig, 0, sizeof(*rig));
    rig->keys = keys;
    rig->bytes = bytes;
    rig->readership = readership_new(&limits);
}

static void
rig_fini(struct rig *rig)
{
    readership_free(rig->readership);
    notice_list_fini(&rig->list);
}

static void
reads(struct rig *rig, struct reader *reader, const char *name)
{
    readership_add(rig->readership, reader, slice_of(name),
                   hash_name(slice_of(name)), &rig->list);
}

static void
changes(struct rig *rig, const char *name)
{
    struct invalidation invalidation = { .name = slice_of(name),
                                         .list = &rig->list };

    readership_invalidate(rig->readership, &invalidation,
                          hash_name(slice_of(name)));
    invalidation_fini(&invalidation);
}

/* Reads the keys k<from> to k<end - 1>. */
static void
reads_many(struct rig *rig, struct reader *reader, int from, int end)
{
    char name[16];

    for (int i = from; i < end; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        reads(rig, reader, name);
    }
}

/* Counts the posts of an invalidation of this name to a client. */
static unsigned
told(const struct rig *rig, uint64_t id, const char *name)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < rig->list.count; i++) {
        const struct notice_post *post = &rig->list.posts[i];

        count += post->to == id && post->notice->kind == NOTICE_INVALIDATE &&
                 slice_equal(post->notice->channel, slice_of(name));
    }
    return count;
}

TEST(a_reader_gets_one_invalidation_of_a_key)
{
    struct rig rig;
    struct reader *reader;

    rig_init(&rig, 0, 0);
    reader = readership_join(7, 3);
    reads(&rig, reader, "a");
    reads(&rig, reader, "a");
    changes(&rig, "b");
    assert_int_equal(rig.list.count, 0);
    changes(&rig, "a");
    changes(&rig, "a");
    assert_int_equal(rig.list.count, 1);
    assert_int_equal(told(&rig, 7, "a"), 1);
    assert_int_equal(rig.list.posts[0].loop, 3);
    readership_leave(rig.readership, reader);
    rig_fini(&rig);
}

TEST(all_readers_of_a_key_share_one_notice)
{
    enum { READERS = 1000 };
    struct rig rig;
    struct reader *readers[READERS];
    struct readership_sums sums;

    rig_init(&rig, 0, 0);
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = readership_join(i + 1, i % 4);
        reads(&rig, readers[i], "k");
        reads(&rig, readers[i], "k");
    }
    sums = readership_sum(rig.readership);
    assert_int_equal(sums.keys, 1);
    assert_int_equal(sums.items, READERS);
    changes(&rig, "k");
    assert_int_equal(rig.list.count, READERS);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(told(&rig, i + 1, "k"), 1);
        assert_ptr_equal(rig.list.posts[i].notice, rig.list.posts[0].notice);
        readership_leave(rig.readership, readers[i]);
    }
    sums = readership_sum(rig.readership);
    assert_int_equal(sums.keys + sums.items + sums.bytes, 0);
    rig_fini(&rig);
}

TEST(a_reader_that_left_gets_nothing_and_is_swept)
{
    struct rig rig;
    struct reader *gone, *here;
    char name[16];

    rig_init(&rig, 0, 0);
    gone = readership_join(1, 0);
    here = readership_join(2, 0);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        reads(&rig, gone, name);
    }
    reads(&rig, here, "k5");
    assert_false(readership_sweep(rig.readership, 100));
    readership_leave(rig.readership, gone);
    changes(&rig, "k7");
    assert_int_equal(rig.list.count, 0);
    while (readership_sweep(rig.readership, 100)) {
        assert_true(readership_sum(rig.readership).keys > 0);
    }
    assert_int_equal(readership_sum(rig.readership).keys, 1);
    assert_int_equal(readership_sum(rig.readership).items, 1);
    changes(&rig, "k5");
    assert_int_equal(told(&rig, 2, "k5"), 1);
    readership_leave(rig.readership, here);
    rig_fini(&rig);
}

/* Clients that have left are dropped from the set of a key before it grows. */
TEST(clients_that_come_and_go_do_not_pile_up_on_a_key)
{
    struct rig rig;

    rig_init(&rig, 0, 0);
    for (uint64_t id = 1; id <= 10000; id++) {
        struct reader *reader = readership_join(id, 0);

        reads(&rig, reader, "k");
        readership_leave(rig.readership, reader);
    }
    assert_true(readership_sum(rig.readership).items < 8);
    assert_true(readership_sum(rig.readership).bytes < 1000);
    rig_fini(&rig);
}

TEST(beyond_the_number_of_keys_evicted_keys_are_invalidated)
{
    struct rig rig;
    struct reader *reader;
    char name[16];
    unsigned heard = 0;

    rig_init(&rig, 10, 0);
    reader = readership_join(1, 0);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        reads(&rig, reader, name);
        assert_true(readership_sum(rig.readership).keys <= 10);
    }
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        heard += told(&rig, 1, name);
    }
    assert_int_equal(heard, 990);
    assert_int_equal(readership_sum(rig.readership).keys, 10);
    readership_leave(rig.readership, reader);
    rig_fini(&rig);
}

TEST(a_lower_limit_is_reached_with_the_reads_that_follow)
{
    struct rig rig;
    struct reader *reader;

    rig_init(&rig, 0, 0);
    reader = readership_join(1, 0);
    reads_many(&rig, reader, 0, 100);
    rig.keys = 1;
    reads_many(&rig, reader, 100, 110);
    assert_int_equal(readership_sum(rig.readership).keys, 1);
    assert_int_equal(rig.list.count, 109);
    readership_leave(rig.readership, reader);
    rig_fini(&rig);
}

TEST(names_and_sets_stay_below_the_limit_in_bytes)
{
    enum { LIMIT = 1 << 20, READERS = 100 };
    struct rig rig;
    struct reader *readers[READERS];
    char name[5000];

    rig_init(&rig, 0, LIMIT);
    memset(name, 'x', sizeof(name));
    for (int i = 0; i < READERS; i++) {
        readers[i] = readership_join((uint64_t)i + 1, 0);
    }
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(name, 16, "k%d", i / READERS);
        name[strlen(name)] = 'x';
        name[sizeof(name) - 1] = '\0';
        reads(&rig, readers[i % READERS], name);
        assert_true(readership_sum(rig.readership).bytes <= LIMIT + 2048);
    }
    for (int i = 0; i < READERS; i++) {
        readership_leave(rig.readership, readers[i]);
    }
    rig_fini(&rig);
}

TEST(a_name_too_long_to_remember_is_invalidated_at_once)
{
    struct rig rig;
    struct reader *reader;
    static char name[80000];

    rig_init(&rig, 0, 1 << 20);
    memset(name, 'x', sizeof(name) - 1);
    reader = readership_join(1, 0);
    reads(&rig, reader, name);
    assert_int_equal(told(&rig, 1, name), 1);
    assert_int_equal(readership_sum(rig.readership).keys, 0);
    readership_leave(rig.readership, reader);
    rig_fini(&rig);
}

TEST(cleared_keys_are_not_invalidated_and_are_swept)
{
    struct rig rig;
    struct reader *reader;

    rig_init(&rig, 0, 0);
    reader = readership_join(1, 0);
    reads_many(&rig, reader, 0, 1000);
    readership_clear(rig.readership);
    assert_int_equal(readership_sum(rig.readership).keys, 0);
    assert_int_equal(readership_sum(rig.readership).items, 0);
    changes(&rig, "k1");
    assert_int_equal(rig.list.count, 0);
    reads(&rig, reader, "k2");
    assert_int_equal(readership_sum(rig.readership).keys, 1);
    while (readership_sweep(rig.readership, 64)) {
    }
    assert_int_equal(readership_sum(rig.readership).keys, 1);
    assert_true(readership_sum(rig.readership).bytes < 200);
    changes(&rig, "k2");
    assert_int_equal(told(&rig, 1, "k2"), 1);
    assert_int_equal(readership_sum(rig.readership).bytes, 0);
    readership_leave(rig.readership, reader);
    rig_fini(&rig);
}

/* A read without memory is invalidated, or the loop learns of a loss. */
TEST(a_read_without_memory_is_invalidated_at_once)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct rig rig;
        struct reader *readers[5];

        rig_init(&rig, 0, 0);
        for (uint64_t i = 0; i < 5; i++) {
            readers[i] = readership_join(i + 1, 0);
        }
        mem_fail_at(nth);
        for (int i = 0; i < 5; i++) {
            reads(&rig, readers[i], "k");
        }
        changes(&rig, "k");
        fired = mem_fail_clear();
        for (uint64_t i = 0; i < 5; i++) {
            assert_true(rig.list.lost != 0 || told(&rig, i + 1, "k") == 1);
            readership_leave(rig.readership, readers[i]);
        }
        assert_true(fired || rig.list.lost == 0);
        rig_fini(&rig);
    }
}

/* ---- against a model, and by many threads -------------------------------- */

TEST(invalidations_match_a_simple_model)
{
    enum { READERS = 20, KEYS = 30 };
    uint64_t dice = test_seed();
    struct rig rig;
    struct reader *readers[READERS] = { NULL };
    bool model[KEYS][READERS] = { { false } };
    char name[16];

    rig_init(&rig, 0, 0);
    for (unsigned step = 0; step < 20000 * test_rounds(); step++) {
        unsigned r = (unsigned)(test_random(&dice) % READERS);
        unsigned k = (unsigned)(test_random(&dice) % KEYS);
        uint64_t what = test_random(&dice) % 100;

        (void)snprintf(name, sizeof(name), "k%u", k);
        if (readers[r] == NULL) {
            readers[r] = readership_join(r + 1, r % 3);
        }
        if (what < 70) {
            reads(&rig, readers[r], name);
            model[k][r] = true;
        } else if (what < 90) {
            notice_list_fini(&rig.list);
            changes(&rig, name);
            for (unsigned i = 0; i < READERS; i++) {
                assert_int_equal(told(&rig, i + 1, name), model[k][i]);
                model[k][i] = false;
            }
        } else if (what < 98) {
            readership_leave(rig.readership, readers[r]);
            readers[r] = NULL;
            for (unsigned i = 0; i < KEYS; i++) {
                model[i][r] = false;
            }
        } else if (what < 99) {
            readership_clear(rig.readership);
            memset(model, 0, sizeof(model));
        } else {
            (void)readership_sweep(rig.readership, 100);
        }
    }
    for (unsigned i = 0; i < READERS; i++) {
        readership_leave(rig.readership, readers[i]);
    }
    rig_fini(&rig);
}

enum { CROWD = 4, CROWD_STEPS = 20000 };

struct member {
    struct readership *readership;
    uint64_t state;
    uint64_t id;
};

static void *
member_runs(void *ctx)
{
    struct member *member = ctx;
    struct notice_list list = { 0 };
    struct reader *reader = readership_join(member->id, 0);
    char name[16];

    for (int i = 0; i < CROWD_STEPS; i++) {
        struct slice key;
        uint64_t what = test_random(&member->state) % 100;

        (void)snprintf(name, sizeof(name), "k%u",
                       (unsigned)(test_random(&member->state) % 200));
        key = slice_of(name);
        if (what < 60) {
            readership_add(member->readership, reader, key, hash_name(key),
                           &list);
        } else if (what < 95) {
            struct invalidation invalidation = { .name = key, .list = &list };

            readership_invalidate(member->readership, &invalidation,
                                  hash_name(key));
            invalidation_fini(&invalidation);
        } else if (what < 97) {
            readership_leave(member->readership, reader);
            reader = readership_join(member->id, 0);
        } else if (member->id == 1) {
            (void)readership_sweep(member->readership, 300);
        }
    }
    readership_leave(member->readership, reader);
    notice_list_fini(&list);
    return NULL;
}

TEST(many_threads_read_and_change_at_once)
{
    struct rig rig;
    pthread_t threads[CROWD];
    struct member members[CROWD];
    uint64_t seed = test_seed();

    rig_init(&rig, 100, 0);
    for (unsigned i = 0; i < CROWD; i++) {
        members[i] = (struct member){ rig.readership, (seed + i) | 1, i + 1 };
        assert_int_equal(
            pthread_create(&threads[i], NULL, member_runs, &members[i]), 0);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    while (readership_sweep(rig.readership, 1000)) {
    }
    while (readership_sweep(rig.readership, 1000)) {
    }
    assert_int_equal(readership_sum(rig.readership).bytes, 0);
    rig_fini(&rig);
}
