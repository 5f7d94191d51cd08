/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_local.h"

#include "../test.h"
#include "base/buf.h"
#include "core/ageing.h"
#include "core/filter.h"
#include "core/payload.h"
#include "core/stream.h"
#include "local/local_copy.h"
#include "proto/reply.h"
#include "proto/resp.h"

#include <stdio.h>

enum {
    STALE_MS = 100,
    ITEMS = 24,
    STEPS = 4000,
    PAST_MAX = 4096,
    QUEUE_MAX = 4096,
    HEADER_MAX = 4096
};

#define WALL_MS UINT64_C(1700000000000)

struct message {
    uint64_t at_ms;
    struct buf bytes;
};

/* Bytes on their way, in order. */
struct queue {
    struct message messages[QUEUE_MAX];
    size_t first, count;
    uint64_t last_ms;
};

struct past {
    uint64_t since_ms;
    bool present;
};

struct world {
    uint64_t random, now_ms;
    bool pings;
    enum bloom_kind kind;

    struct bloom *bloom; /* NULL: the key is missing */
    uint64_t incarnation, last_incarnation;
    uint64_t stopped_until_ms;
    bool subscribed;
    struct buf inbox; /* frames gathered */
    struct past past[ITEMS][PAST_MAX];
    size_t past_count[ITEMS];

    struct local_copy *copy;
    uint64_t link_at_ms; /* when the copy connects again; 0: it is connected */
    struct queue to_server, to_copy;
    struct sim_result result;
};

static uint64_t
roll(struct world *world, uint64_t below)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (world->random >> 11) % below;
}

/* ---- the link ------------------------------------------------------------ */

static void
queue_put(struct queue *queue, uint64_t at_ms, struct slice bytes)
{
    struct message *message;

    assert_true(queue->count < QUEUE_MAX);
    message = &queue->messages[(queue->first + queue->count++) % QUEUE_MAX];
    queue->last_ms = at_ms > queue->last_ms ? at_ms : queue->last_ms;
    *message = (struct message){ .at_ms = queue->last_ms };
    buf_append_slice(&message->bytes, bytes);
}

/* Takes what has arrived. The caller frees it. */
static bool
queue_take(struct queue *queue, uint64_t now_ms, struct buf *ret_bytes)
{
    struct message *message = &queue->messages[queue->first];

    if (queue->count == 0 || message->at_ms > now_ms) {
        return false;
    }
    *ret_bytes = message->bytes;
    queue->first = (queue->first + 1) % QUEUE_MAX;
    queue->count--;
    return true;
}

static void
queue_clear(struct queue *queue)
{
    struct buf bytes;

    while (queue_take(queue, UINT64_MAX, &bytes)) {
        buf_free(&bytes);
    }
}

static uint64_t
delay(struct world *world)
{
    static const uint8_t usual[] = { 1, 1, 2, 5, 40, 3 };
    uint64_t which = roll(world, 6);

    return which == 5 && roll(world, 20) == 0 ? 150 : usual[which];
}

/* ---- the server ---------------------------------------------------------- */

static uint64_t
wall(const struct world *world)
{
    return WALL_MS + world->now_ms;
}

static struct slice
item_of(uint64_t number, char text[16])
{
    (void)snprintf(text, 16, "item-%u", (unsigned)number);
    return slice_of(text);
}

static struct bloom_hash
hash_of(const struct bloom *bloom, uint64_t number)
{
    char text[16];
    struct slice item = item_of(number, text);

    return bloom_hash(bloom, item.data, item.len);
}

static void
tell(struct world *world, const char *const *words, size_t count,
     struct slice pairs)
{
    struct buf frame = { 0 };
    struct reply reply = { &frame, 3 };

    if (!world->subscribed) {
        return;
    }
    buf_printf(&frame, ">%zu\r\n", count + 2);
    reply_bulk_text(&reply, "bf.message");
    reply_bulk_text(&reply, "key");
    for (size_t i = 0; i < count; i++) {
        reply_bulk(&reply, words[i] != NULL ? slice_of(words[i]) : pairs);
    }
    buf_append_slice(&world->inbox, buf_slice(&frame));
    buf_free(&frame);
}

static void
tell_word(struct world *world, const char *word)
{
    tell(world, &word, 1, slice_lit(""));
}

static void
tell_add(struct world *world, struct bloom_hash hash)
{
    char ms[24];
    const char *words[] = { "add", NULL, ms };

    (void)snprintf(ms, sizeof(ms), "%llu", (unsigned long long)wall(world));
    tell(world, words, world->kind == BLOOM_AGEING ? 3 : 2,
         (struct slice){ (const char *)&hash, sizeof(hash) });
}

static void
replace(struct world *world)
{
    struct bloom_params params = {
        .struct_size = sizeof(params),
        .capacity = 2 + roll(world, 20),
        .error_rate = 0.01,
        .tightening = 0.5,
        .expansion = 1 + (uint32_t)roll(world, 2),
        .kind = (uint32_t)world->kind,
        .region = world->kind == BLOOM_DELETABLE ? 4 : 0,
        .seconds = world->kind == BLOOM_AGEING ? 1 : 0,
        .generations = world->kind == BLOOM_AGEING ? 4 : 0,
        .now_ms = world->kind == BLOOM_AGEING ? wall(world) : 0,
    };

    bloom_seed(roll(world, 1000), params.seed);
    bloom_free(world->bloom, NULL);
    assert_int_equal(bloom_new(&params, NULL, &world->bloom), BLOOM_OK);
    for (uint64_t i = 0; i < ITEMS; i++) {
        bool added;

        if (roll(world, 2) == 0) {
            assert_int_equal(bloom_add_at(world->bloom, NULL,
                                          hash_of(world->bloom, i), wall(world),
                                          &added),
                             BLOOM_OK);
        }
    }
    world->incarnation = ++world->last_incarnation;
    tell_word(world, "changed");
}

static void
add_one(struct world *world)
{
    struct bloom_hash hash;
    bool added;

    if (world->bloom == NULL) {
        replace(world);
        return;
    }
    hash = hash_of(world->bloom, roll(world, ITEMS));
    assert_int_equal(
        bloom_add_at(world->bloom, NULL, hash, wall(world), &added), BLOOM_OK);
    if (added || world->kind == BLOOM_AGEING) {
        tell_add(world, hash);
    }
}

static void
delete_one(struct world *world)
{
    const char *words[] = { "deleted", "1" };

    if (world->kind == BLOOM_DELETABLE && world->bloom != NULL &&
        bloom_delete(world->bloom, hash_of(world->bloom, roll(world, ITEMS))) ==
            1) {
        tell(world, words, 2, slice_lit(""));
    }
}

static void
change(struct world *world)
{
    static const uint16_t stops[] = { 20, 80, 300 };
    uint64_t dice = roll(world, 1000);

    if (dice < 150) {
        add_one(world);
    } else if (dice < 162) {
        replace(world);
    } else if (dice < 170 && world->bloom != NULL) {
        bloom_reset(world->bloom, NULL); /* keeps the incarnation */
        tell_word(world, "changed");
    } else if (dice < 173 && world->bloom != NULL) {
        bloom_free(world->bloom, NULL);
        world->bloom = NULL;
        tell_word(world, "gone");
    } else if (dice < 175) {
        world->stopped_until_ms = world->now_ms + stops[roll(world, 3)];
    } else if (dice < 220) {
        delete_one(world);
    }
}

/* Notes what BF.EXISTS would say from now on. */
static void
note_past(struct world *world)
{
    for (uint64_t i = 0; i < ITEMS; i++) {
        size_t *count = &world->past_count[i];
        bool present = world->bloom != NULL &&
                       bloom_contains_at(world->bloom, hash_of(world->bloom, i),
                                         wall(world));

        if (*count == 0 || world->past[i][*count - 1].present != present) {
            assert_true(*count < PAST_MAX);
            world->past[i][(*count)++] =
                (struct past){ world->now_ms, present };
        }
    }
}

/* Returns whether the server said absent at some moment of the last STALE_MS.
 * A state lasts until the next one begins, that moment included. */
static bool
was_absent(const struct world *world, uint64_t item)
{
    size_t at = world->past_count[item];
    uint64_t until_ms = world->now_ms;

    while (at-- > 0 && until_ms + STALE_MS >= world->now_ms) {
        if (!world->past[item][at].present) {
            return true;
        }
        until_ms = world->past[item][at].since_ms;
    }
    return false;
}

static void
answer(struct world *world)
{
    char incarnation[24], ms[24];
    const char *words[] = { "is", "1", incarnation, "1", "1", ms };

    world->subscribed = true;
    if (world->bloom == NULL) {
        words[2] = "missing";
    }
    (void)snprintf(incarnation, sizeof(incarnation), "%llu",
                   (unsigned long long)world->incarnation);
    (void)snprintf(ms, sizeof(ms), "%llu", (unsigned long long)wall(world));
    if (world->pings) {
        struct buf gathered = { 0 };

        buf_exchange(&gathered, &world->inbox);
        tell(world, words, world->bloom == NULL ? 3 : 6, slice_lit(""));
        queue_put(&world->to_copy, world->now_ms + delay(world),
                  buf_slice(&world->inbox));
        buf_free(&world->inbox);
        buf_exchange(&gathered, &world->inbox);
        return;
    }
    tell(world, words, world->bloom == NULL ? 3 : 6, slice_lit(""));
}

/* Answers BF.SCANDUMP key place BYTES n TURN t. */
static void
dump(struct world *world, struct slice place, struct slice most,
     struct slice turn)
{
    static uint8_t bytes[1 << 18];
    struct buf out = { 0 };
    struct reply reply = { &out, 3 };
    uint64_t at, limit, wanted;

    assert_true(slice_to_u64(place, &at) && slice_to_u64(most, &limit) &&
                slice_to_u64(turn, &wanted));
    if (world->bloom == NULL) {
        reply_error(&reply, "ERR", slice_lit("not found"));
    } else if (at == 0) {
        size_t len = payload_put_header(world->bloom, bytes);

        reply_array(&reply, 2);
        reply_int(&reply, 1);
        reply_bulk(&reply, (struct slice){ (char *)bytes, len });
    } else if (wanted != ageing_turn(world->bloom)) {
        reply_error(&reply, "TURNED", slice_lit("begin again"));
    } else {
        uint64_t left = stream_left(world->bloom, at - 1);
        size_t len = (size_t)(left < limit ? left : limit);

        assert_true(len <= sizeof(bytes));
        if (len > 0) {
            stream_read(world->bloom, at - 1, len, bytes);
        }
        reply_array(&reply, 2);
        reply_int(&reply, len > 0 ? (int64_t)(at + len) : 0);
        reply_bulk(&reply, (struct slice){ (char *)bytes, len });
    }
    queue_put(&world->to_copy, world->now_ms + delay(world), buf_slice(&out));
    buf_free(&out);
}

static void
obey(struct world *world, struct slice commands)
{
    struct slice command, words[8], rest;

    while (resp_element(&commands, &command)) {
        size_t count = 0;

        assert_true(resp_array(command, &rest));
        while (resp_element(&rest, &words[count])) {
            words[count] = resp_text(words[count]);
            count++;
        }
        if (slice_equal(words[0], slice_lit("BF.SUBSCRIBE"))) {
            assert_int_equal(count, 2);
            answer(world);
        } else {
            assert_true(slice_equal(words[0], slice_lit("BF.SCANDUMP")));
            assert_int_equal(count, 7);
            dump(world, words[2], words[4], words[6]);
        }
    }
}

static void
serve(struct world *world)
{
    struct buf bytes;

    if (world->now_ms < world->stopped_until_ms) {
        return;
    }
    change(world);
    while (queue_take(&world->to_server, world->now_ms, &bytes)) {
        obey(world, buf_slice(&bytes));
        buf_free(&bytes);
    }
    if (world->inbox.len > 0 && roll(world, 10) < 3) {
        queue_put(&world->to_copy, world->now_ms + delay(world),
                  buf_slice(&world->inbox));
        buf_free(&world->inbox);
    }
}

/* ---- the copy ------------------------------------------------------------ */

static void
cut(struct world *world)
{
    queue_clear(&world->to_server);
    queue_clear(&world->to_copy);
    buf_free(&world->inbox);
    world->subscribed = false;
    local_copy_cut(world->copy);
    world->link_at_ms = world->now_ms + 1 + roll(world, 60);
}

static void
listen_to_server(struct world *world)
{
    struct buf bytes;

    while (world->link_at_ms == 0 &&
           queue_take(&world->to_copy, world->now_ms, &bytes)) {
        struct slice rest = buf_slice(&bytes), value;
        enum local_stage before = local_copy_stage(world->copy);
        bool good = true;

        while (good && resp_element(&rest, &value)) {
            good = local_copy_take(world->copy, value, world->now_ms);
        }
        buf_free(&bytes);
        world->result.loads += before != LOCAL_LOADED &&
                               local_copy_stage(world->copy) == LOCAL_LOADED;
        if (!good) {
            cut(world);
        }
    }
}

static void
speak(struct world *world)
{
    struct buf out = { 0 };

    if (world->link_at_ms != 0 && world->now_ms >= world->link_at_ms) {
        world->link_at_ms = 0;
        local_copy_link(world->copy, world->now_ms);
    }
    (void)local_copy_say(world->copy, world->now_ms, &out);
    if (out.len > 0) {
        queue_put(&world->to_server, world->now_ms + delay(world),
                  buf_slice(&out));
    }
    buf_free(&out);
}

static void
judge(struct world *world)
{
    uint64_t number = roll(world, ITEMS);
    char text[16];
    enum local_answer said =
        local_copy_contains(world->copy, item_of(number, text), world->now_ms);

    world->result.answers++;
    world->result.unknown += said == LOCAL_UNKNOWN;
    world->result.broken += said == LOCAL_ABSENT && !was_absent(world, number);
}

struct sim_result
sim_local_run(uint64_t seed, unsigned left_out, int pings)
{
    static const enum bloom_kind kinds[] = { BLOOM_NATIVE, BLOOM_DELETABLE,
                                             BLOOM_AGEING };
    static struct world world;
    const struct local_options options = {
        .key = slice_lit("key"),
        .max_stale_ms = STALE_MS,
        .refresh_ms = 500,
        .missing_is_absent = seed % 2 == 0,
    };

    memset(&world, 0, sizeof(world));
    world.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    world.pings = pings != 0;
    world.kind = kinds[seed % 3];
    world.copy = local_copy_new(&options);
    world.link_at_ms = 1;
    local_copy_leave_out(world.copy, left_out);
    replace(&world);
    for (int step = 0; step < STEPS; step++) {
        world.now_ms += (uint64_t[]){ 0, 1, 1, 2 }[roll(&world, 4)];
        serve(&world);
        note_past(&world);
        listen_to_server(&world);
        speak(&world);
        if (world.link_at_ms == 0 && roll(&world, 700) == 0) {
            cut(&world);
        }
        judge(&world);
    }
    cut(&world);
    local_copy_free(world.copy);
    bloom_free(world.bloom, NULL);
    return world.result;
}
