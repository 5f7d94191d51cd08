/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots on their way in: in pieces of any size, cut off, damaged, given up,
 * and without memory. A reader that is to be slow waits for its memory.
 */
#include "snapshot_help.h"

#include "base/machine.h"
#include "snapshot/snapshot_format.h"
#include "snapshot/transfer.h"

#include <pthread.h>
#include <sched.h>

enum { QUEUE_BYTES = 1 << 16, REASON_BYTES = 256, MOST_BYTES = 64 << 20 };

/* Loop 0, as far as the transfer knows it. */
struct receiver {
    struct transfer *transfer;
    struct keyspace *present;
    struct bloom_env env, inner;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    unsigned pokes;
    bool held;        /* allocations in env wait */
    unsigned fail_at; /* the nth that asks gets none; 0: never */
    bool failed;
};

static void
on_poke(void *ctx)
{
    struct receiver *receiver = ctx;

    pthread_mutex_lock(&receiver->mutex);
    receiver->pokes++;
    pthread_cond_broadcast(&receiver->changed);
    pthread_mutex_unlock(&receiver->mutex);
}

/* As a machine with little memory says it. */
static bool
may_have(struct receiver *receiver, size_t bytes)
{
    bool may;

    pthread_mutex_lock(&receiver->mutex);
    while (receiver->held) {
        pthread_cond_wait(&receiver->changed, &receiver->mutex);
    }
    may = receiver->fail_at != 1 && bytes <= MOST_BYTES;
    receiver->fail_at -= receiver->fail_at > 0;
    receiver->failed = receiver->failed || !may;
    pthread_mutex_unlock(&receiver->mutex);
    return may;
}

static void *
env_alloc(void *ctx, size_t bytes)
{
    struct receiver *receiver = ctx;
    const struct bloom_env *inner = &receiver->inner;

    return may_have(receiver, bytes) ? inner->alloc(inner->ctx, bytes) : NULL;
}

static void *
env_alloc_lines(void *ctx, size_t bytes)
{
    struct receiver *receiver = ctx;
    const struct bloom_env *inner = &receiver->inner;

    return may_have(receiver, bytes) ? inner->alloc_lines(inner->ctx, bytes)
                                     : NULL;
}

static void
hold(struct receiver *receiver, bool held)
{
    pthread_mutex_lock(&receiver->mutex);
    receiver->held = held;
    pthread_cond_broadcast(&receiver->changed);
    pthread_mutex_unlock(&receiver->mutex);
}

static struct transfer_options
options_of(struct receiver *receiver)
{
    return (struct transfer_options){
        .keyspace = { .threads = 1, .databases = 16 },
        .present = receiver->present,
        .env = &receiver->env,
        .queue_bytes = QUEUE_BYTES,
        .poke = on_poke,
        .ctx = receiver,
    };
}

static void
init_receiver(struct receiver *receiver)
{
    *receiver =
        (struct receiver){ .inner = test_env(), .present = test_keyspace(1) };
    receiver->env = receiver->inner;
    receiver->env.alloc = env_alloc;
    receiver->env.alloc_lines = env_alloc_lines;
    receiver->env.ctx = receiver;
    assert_int_equal(0, pthread_mutex_init(&receiver->mutex, NULL));
    assert_int_equal(0, pthread_cond_init(&receiver->changed, NULL));
}

static void
begin(struct receiver *receiver)
{
    const struct transfer_options options = options_of(receiver);

    receiver->pokes = 0;
    receiver->failed = false;
    receiver->transfer = transfer_new(&options);
    assert_non_null(receiver->transfer);
}

static void
end(struct receiver *receiver)
{
    transfer_free(receiver->transfer);
    receiver->transfer = NULL;
    keyspace_wait_freed(receiver->present);
}

static void
fini_receiver(struct receiver *receiver)
{
    transfer_free(receiver->transfer);
    keyspace_free(receiver->present);
    pthread_cond_destroy(&receiver->changed);
    pthread_mutex_destroy(&receiver->mutex);
    assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
    assert_int_equal(0, metric_sum(METRIC_BF_MEMORY));
    assert_int_equal(0, metric_sum(METRIC_LAZYFREE_PENDING_BYTES));
}

/* Until there is room, or the thread has ended. */
static void
wait_for_room(struct receiver *receiver)
{
    pthread_mutex_lock(&receiver->mutex);
    while (receiver->pokes == 0) {
        pthread_cond_wait(&receiver->changed, &receiver->mutex);
    }
    receiver->pokes = 0;
    pthread_mutex_unlock(&receiver->mutex);
}

static void
put_all(struct receiver *receiver, struct bytes content, uint64_t *random,
        size_t piece_max)
{
    size_t at = 0;

    while (at < content.len) {
        size_t left = content.len - at;
        size_t len = 1 + (size_t)test_random_below(random, piece_max);

        len = len < left ? len : left;
        if (!transfer_put(receiver->transfer,
                          (struct slice){ (char *)content.data + at, len })) {
            while (!transfer_has_room(receiver->transfer)) {
                wait_for_room(receiver);
            }
        }
        at += len;
    }
}

static enum transfer_state
wait_for_end(struct receiver *receiver, char *ret_reason)
{
    enum transfer_state state;

    ret_reason[0] = '\0';
    while ((state = transfer_poll(receiver->transfer, ret_reason,
                                  REASON_BYTES)) == TRANSFER_RUNS) {
        wait_for_room(receiver);
    }
    return state;
}

static void
put_whole(struct receiver *receiver, struct bytes content)
{
    uint64_t random = test_seed() + 7;

    put_all(receiver, content, &random, content.len + 1);
    transfer_finish(receiver->transfer);
}

/* A failure with these words in its reason. */
static void
assert_fails(struct receiver *receiver, const char *words)
{
    char reason[REASON_BYTES];

    assert_int_equal(TRANSFER_FAILED, wait_for_end(receiver, reason));
    if (strstr(reason, words) == NULL) {
        print_error("\"%s\" instead of \"%s\"\n", reason, words);
        fail();
    }
    assert_int_equal('.', reason[strlen(reason) - 1]);
    assert_true(transfer_has_room(receiver->transfer));
    end(receiver);
}

static struct bytes
mixed_snapshot(void)
{
    struct keyspace *ks = mixed_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);

    keyspace_free(ks);
    return content;
}

/* ---- what is whole ------------------------------------------------------- */

TEST(a_snapshot_loads_whatever_its_pieces)
{
    static const size_t pieces[] = { 1, 100, 5000, 300000, 10000000 };
    struct keyspace *ks = mixed_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);
    uint64_t random = test_seed() + 1;
    struct receiver receiver;

    init_receiver(&receiver);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct snapshot_stamp stamp, wanted = test_stamp();
        struct keyspace *loaded;
        char reason[REASON_BYTES];

        begin(&receiver);
        put_all(&receiver, content, &random, pieces[i]);
        assert_int_equal(TRANSFER_RUNS,
                         transfer_poll(receiver.transfer, reason, 1));
        transfer_finish(receiver.transfer);
        assert_int_equal(TRANSFER_LOADED, wait_for_end(&receiver, reason));
        loaded = transfer_take(receiver.transfer, &stamp);
        end(&receiver);
        assert_same_keyspaces(ks, loaded);
        wanted.keys = MIXED;
        wanted.begins = wanted.position;
        assert_string_equal(wanted.history, stamp.history);
        assert_int_equal(wanted.version, stamp.version);
        assert_int_equal(wanted.position, stamp.position);
        assert_int_equal(wanted.begins, stamp.begins);
        assert_int_equal(wanted.sequence, stamp.sequence);
        assert_int_equal(wanted.created_ms, stamp.created_ms);
        assert_int_equal(wanted.keys, stamp.keys);
        keyspace_free(loaded);
    }
    keyspace_free(ks);
    mem_free(content.data);
    fini_receiver(&receiver);
}

TEST(an_empty_snapshot_loads)
{
    struct keyspace *ks = test_keyspace(1);
    struct bytes content = snapshot_of_keyspace(ks);
    struct snapshot_stamp stamp;
    struct receiver receiver;
    struct keyspace *loaded;
    char reason[REASON_BYTES];

    init_receiver(&receiver);
    begin(&receiver);
    put_whole(&receiver, content);
    assert_int_equal(TRANSFER_LOADED, wait_for_end(&receiver, reason));
    loaded = transfer_take(receiver.transfer, &stamp);
    assert_int_equal(0, count_all(loaded));
    keyspace_free(loaded);
    keyspace_free(ks);
    mem_free(content.data);
    fini_receiver(&receiver);
}

static struct bytes
content_of(struct keyspace *ks, const struct filter_spec *spec)
{
    struct bytes content;

    put_spec(ks, spec);
    content = snapshot_of_keyspace(ks);
    keyspace_free(ks);
    return content;
}

/* ---- the queue ----------------------------------------------------------- */

/* The thread waits for the memory of its first filter; so everything behind
 * that stays in the queue. */
TEST(the_queue_says_when_it_has_enough_and_when_there_is_room)
{
    const struct filter_spec spec = {
        "full", 0, 0, 1, PARAMS(150000, 0.01, 0.5, 2), 150000
    };
    struct bytes content = content_of(test_keyspace(1), &spec);
    struct slice left = { (char *)content.data, content.len };
    size_t used;
    struct receiver receiver;
    char reason[REASON_BYTES];
    bool room = true;

    init_receiver(&receiver);
    hold(&receiver, true);
    begin(&receiver);
    used = mem_used();
    while (room && left.len > 0) {
        struct slice piece = { left.data, left.len < 1000 ? left.len : 1000 };

        room = transfer_put(receiver.transfer, piece);
        left.data += piece.len;
        left.len -= piece.len;
    }
    assert_false(room);
    assert_false(transfer_has_room(receiver.transfer));
    /* The bytes that the thread has read, and one block of the queue. */
    assert_in_range(content.len - left.len, QUEUE_BYTES,
                    QUEUE_BYTES + RECORDS_BYTES_MAX);
    assert_true(mem_used() < used + (4U << 20));
    assert_int_equal(0, receiver.pokes);
    hold(&receiver, false);
    wait_for_room(&receiver);
    assert_true(transfer_has_room(receiver.transfer));
    (void)transfer_put(receiver.transfer, left); /* more than it wants */
    transfer_finish(receiver.transfer);
    assert_int_equal(TRANSFER_LOADED, wait_for_end(&receiver, reason));
    mem_free(content.data);
    fini_receiver(&receiver);
}

/* ---- what is not --------------------------------------------------------- */

TEST(a_stream_that_ends_early_fails)
{
    struct bytes content = mixed_snapshot();
    uint64_t random = test_seed() + 2;
    struct bytes part = content;
    struct receiver receiver;

    init_receiver(&receiver);
    for (unsigned round = 0; round < 60 * test_rounds(); round++) {
        uint64_t used = mem_used();

        part.len = round < 2 ? round * (content.len - 1)
                             : test_random_below(&random, content.len);
        begin(&receiver);
        put_whole(&receiver, part);
        assert_fails(&receiver, "The stream ends before the snapshot does.");
        assert_in_range(mem_used(), used - 60000, used + 60000); /* a set */
    }
    mem_free(content.data);
    fini_receiver(&receiver);
}

TEST(bytes_behind_the_end_fail)
{
    struct bytes content = mixed_snapshot();
    struct receiver receiver;
    struct slice more = slice_lit("*");

    init_receiver(&receiver);
    begin(&receiver);
    (void)transfer_put(receiver.transfer,
                       (struct slice){ (char *)content.data, content.len });
    (void)transfer_put(receiver.transfer, more);
    assert_fails(&receiver, "Something follows the end");
    mem_free(content.data);
    fini_receiver(&receiver);
}

TEST(any_bit_that_is_wrong_fails)
{
    struct bytes content = mixed_snapshot();
    uint64_t random = test_seed() + 3;
    struct receiver receiver;

    init_receiver(&receiver);
    for (unsigned round = 0; round < 60 * test_rounds(); round++) {
        size_t at = round < 30 ? test_random_below(&random, 1000)
                               : test_random_below(&random, content.len);
        uint8_t bit = (uint8_t)(1U << test_random_below(&random, 8));

        content.data[at] ^= bit;
        begin(&receiver);
        put_whole(&receiver, content);
        assert_fails(&receiver, "damaged at offset ");
        content.data[at] ^= bit;
    }
    mem_free(content.data);
    fini_receiver(&receiver);
}

/* Bytes that come after that are forgotten. */
TEST(what_is_no_snapshot_fails_at_once)
{
    static char garbage[3 * QUEUE_BYTES] = "-ERR no such command";
    struct receiver receiver;
    char reason[REASON_BYTES];
    uint64_t used;

    init_receiver(&receiver);
    begin(&receiver);
    (void)transfer_put(receiver.transfer,
                       (struct slice){ garbage, sizeof(garbage) });
    assert_int_equal(TRANSFER_FAILED, wait_for_end(&receiver, reason));
    used = mem_used();
    for (unsigned i = 0; i < 100; i++) {
        assert_true(transfer_put(receiver.transfer,
                                 (struct slice){ garbage, sizeof(garbage) }));
    }
    assert_int_equal(used, mem_used());
    assert_fails(&receiver, "This is no snapshot");
    fini_receiver(&receiver);
}

TEST(a_newer_snapshot_fails_with_that_reason)
{
    struct bytes content = mixed_snapshot();
    struct receiver receiver;

    init_receiver(&receiver);
    put_u16(content.data + HEADER_AT_VERSION, SNAPSHOT_VERSION + 1);
    put_u64(content.data + HEADER_AT_HASH,
            XXH3_64bits(content.data, HEADER_AT_HASH));
    begin(&receiver);
    put_whole(&receiver, content);
    assert_fails(&receiver, "A newer server wrote it.");
    mem_free(content.data);
    fini_receiver(&receiver);
}

TEST(more_databases_than_there_are_here_fail)
{
    struct bytes content = mixed_snapshot();
    struct receiver receiver;
    struct transfer_options options;

    init_receiver(&receiver);
    options = options_of(&receiver);
    options.keyspace.databases = 15;
    receiver.transfer = transfer_new(&options);
    put_whole(&receiver, content);
    assert_fails(&receiver,
                 "it has 16 databases, but the option databases is 15.");
    mem_free(content.data);
    fini_receiver(&receiver);
}

/* ---- giving up ----------------------------------------------------------- */

/* While it waits for bytes, for memory, or runs; and when all is loaded. */
TEST(it_may_be_given_up_at_any_moment)
{
    struct bytes content = mixed_snapshot();
    uint64_t random = test_seed() + 4;
    struct bytes part = content;
    struct receiver receiver;
    bool loaded = false;

    init_receiver(&receiver);
    for (unsigned round = 0; round < 100 * test_rounds(); round++) {
        char reason[REASON_BYTES];

        part.len = round % 4 == 0
                       ? content.len
                       : (size_t)test_random_below(&random, content.len);
        begin(&receiver);
        put_all(&receiver, part, &random, 50000);
        if (round % 8 == 0) {
            transfer_finish(receiver.transfer);
            loaded = wait_for_end(&receiver, reason) == TRANSFER_LOADED;
        } else if (round % 2 == 0) {
            for (uint64_t i = test_random_below(&random, 1000); i > 0; i--) {
                sched_yield();
            }
        }
        assert_int_equal(round % 8 == 0, loaded);
        loaded = false;
        end(&receiver);
    }
    mem_free(content.data);
    fini_receiver(&receiver);
}

/* Without a keyspace in use it frees by itself. */
TEST(what_is_given_up_is_freed_without_another_keyspace_too)
{
    struct bytes content = mixed_snapshot();
    struct receiver receiver;
    char reason[REASON_BYTES];

    init_receiver(&receiver);
    for (unsigned round = 0; round < 2; round++) {
        struct transfer_options options = options_of(&receiver);

        options.present = NULL;
        receiver.transfer = transfer_new(&options);
        (void)transfer_put(
            receiver.transfer,
            (struct slice){ (char *)content.data, content.len - round });
        transfer_finish(receiver.transfer);
        assert_int_equal(round == 0 ? TRANSFER_LOADED : TRANSFER_FAILED,
                         wait_for_end(&receiver, reason));
        end(&receiver);
        assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
    }
    mem_free(content.data);
    fini_receiver(&receiver);
}

/* ---- memory -------------------------------------------------------------- */

TEST(every_allocation_of_a_filter_may_fail)
{
    struct bytes content = mixed_snapshot();
    struct receiver receiver;
    bool failed = true;

    init_receiver(&receiver);
    for (unsigned nth = 1; failed; nth++) {
        char reason[REASON_BYTES];
        enum transfer_state ended;

        receiver.fail_at = nth;
        begin(&receiver);
        put_whole(&receiver, content);
        ended = wait_for_end(&receiver, reason);
        failed = receiver.failed;
        assert_int_equal(failed ? TRANSFER_FAILED : TRANSFER_LOADED, ended);
        assert_true(!failed || strstr(reason, "There is no memory") != NULL);
        end(&receiver);
    }
    receiver.fail_at = 0;
    mem_free(content.data);
    fini_receiver(&receiver);
}

TEST(every_allocation_of_the_queue_may_fail)
{
    struct keyspace *ks = test_keyspace(1);
    const struct bloom_params params = PARAMS(1000000, 0.01, 0.5, 2);
    struct key key = key_of(slice_lit("large"), 0);
    struct bytes content;
    struct receiver receiver;
    struct transfer_options options;
    bool failed = true;

    put_filter(ks, &key, make_filter(&params, 1), 1, 0); /* some blocks */
    content = snapshot_of_keyspace(ks);
    init_receiver(&receiver);
    options = options_of(&receiver);
    mem_fail_at(1);
    assert_null(transfer_new(&options));
    assert_true(mem_fail_clear());
    for (unsigned nth = 1; failed; nth++) {
        char reason[REASON_BYTES];
        enum transfer_state ended;

        begin(&receiver);
        mem_fail_at(nth);
        put_whole(&receiver, content);
        failed = mem_fail_clear();
        ended = wait_for_end(&receiver, reason);
        assert_int_equal(failed ? TRANSFER_FAILED : TRANSFER_LOADED, ended);
        assert_true(!failed || strstr(reason, "There is no memory") != NULL);
        end(&receiver);
    }
    keyspace_free(ks);
    mem_free(content.data);
    fini_receiver(&receiver);
}

/* A mapping that is never touched. */
static void *
map_lines(void *ctx, size_t bytes)
{
    void *lines = mmap(NULL, bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    (void)ctx;
    assert_ptr_not_equal(MAP_FAILED, lines);
    return lines;
}

static void
unmap_lines(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    assert_int_equal(0, munmap(ptr, bytes));
}

/* A header, and the front of a large filter whose lines never come. */
static struct bytes
promise_of(struct bytes content, uint64_t capacity)
{
    const struct bloom_params params = { .struct_size = sizeof(params),
                                         .capacity = capacity,
                                         .error_rate = 0.01,
                                         .tightening = 0.5 };
    struct bloom_env env = test_env();
    struct bytes promise = { mem_zalloc(1000), HEADER_BYTES };
    uint8_t *section = promise.data + HEADER_BYTES;
    uint8_t *record = section + SECTION_HEAD_BYTES;
    struct bloom *bloom = NULL;
    size_t bytes;

    env.alloc_lines = map_lines;
    env.free_lines = unmap_lines;
    assert_int_equal(BLOOM_OK, bloom_new(&params, &env, &bloom));
    memcpy(promise.data, content.data, HEADER_BYTES);
    bytes = RECORD_HEAD_BYTES +
            codec_put_head(bloom, 1, record + RECORD_HEAD_BYTES);
    put_u64(record + RECORD_AT_COPIED, test_stamp().position);
    put_u64(record + RECORD_AT_FORM_BYTES,
            codec_dump_bytes(bloom) - CODEC_CHECKSUM_BYTES);
    memcpy(section, SNAPSHOT_SECTION_MAGIC, SECTION_AT_TYPE);
    put_u16(section + SECTION_AT_TYPE, SECTION_LARGE);
    put_u64(section + SECTION_AT_BYTES, bytes);
    put_u64(
        record + bytes,
        XXH3_64bits_withSeed(
            record, bytes,
            section_seed(section, get_u64(content.data + HEADER_AT_FILE_KEY))));
    promise.len += SECTION_FRAME_BYTES + bytes;
    bloom_free(bloom, &env);
    return promise;
}

/* The memory for the lines of a filter is asked for at once, and env refuses
 * more than the machine has. */
TEST(a_filter_that_only_promises_is_refused_or_costs_nothing)
{
    struct bytes content = mixed_snapshot();
    struct receiver receiver;

    init_receiver(&receiver);
    for (uint64_t capacity = 1000000; capacity <= 1000000000; capacity *= 10) {
        struct bytes promise = promise_of(content, capacity);
        uint64_t resident = machine_resident_bytes();
        bool fits = capacity * 5 / 4 < MOST_BYTES;

        begin(&receiver);
        put_whole(&receiver, promise);
        assert_fails(&receiver, fits ? "The stream ends before"
                                     : "There is no memory for");
        assert_true(machine_resident_bytes() < resident + (8U << 20));
        mem_free(promise.data);
    }
    mem_free(content.data);
    fini_receiver(&receiver);
}
