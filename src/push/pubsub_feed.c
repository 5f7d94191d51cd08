/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A record, in a notice and in what a loop gathers:
 *
 *   0   1  enum feed_kind
 *   1   8  the number, little-endian
 *   9   4  the length of the pairs, little-endian
 *  13   -  the pairs
 *
 * An answer is a notice of its own, with its five numbers. Records of one kind
 * and time are merged. With an answer, its client gets the gathered records,
 * and other clients get them later. Adds can still be merged into the last one,
 * since that client then gets the rest. A record without pairs cannot.
 */
#include "push/pubsub_feed.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/little.h"
#include "base/num.h"
#include "net/loop.h"
#include "net/push.h"
#include "proto/reply.h"
#include "push/pubsub_slot.h"

#include <string.h>

enum {
    NUMBER_AT = 1,
    LENGTH_AT = 9,
    PAIRS_AT = 13,
    ANSWER_NUMBERS = 5,
    ANSWER_BYTES = ANSWER_NUMBERS * 8,
    MERGED_BYTES = 1 << 20,   /* of pairs in one frame, of several records */
    GATHERED_BYTES = 4 << 20, /* of one filter: more is due at once */
    STEPS_AT_ONCE = 16        /* clients between two looks at the clock */
};

/* Subscribers get at most one part in RESTS + 1 of a loop's time. */
enum { RESTS = 3 };

/* ---- names --------------------------------------------------------------- */

void
pubsub_feed_name(struct buf *ret_name, const struct feed_key *key)
{
    uint8_t db[FEED_DB_BYTES];

    put_u32(db, key->db);
    buf_append(ret_name, db, sizeof(db));
    buf_append_slice(ret_name, key->name);
}

struct slice
pubsub_feed_key(struct slice name)
{
    CHECK(name.len >= FEED_DB_BYTES);
    return (struct slice){ name.data + FEED_DB_BYTES,
                           name.len - FEED_DB_BYTES };
}

uint32_t
pubsub_feed_db(struct slice name)
{
    CHECK(name.len >= FEED_DB_BYTES);
    return get_u32((const uint8_t *)name.data);
}

bool
pubsub_feeds(const struct pubsub *pubsub, uint64_t hash)
{
    return atomic_load_explicit(&pubsub->feeds[hash % FEED_PLACES],
                                memory_order_relaxed) > 0;
}

/* ---- records ------------------------------------------------------------- */

static void
put_record(struct buf *to, const struct feed_change *change)
{
    uint8_t head[PAIRS_AT];

    CHECK(change->pairs.len <= UINT32_MAX);
    head[0] = (uint8_t)change->kind;
    put_u64(head + NUMBER_AT, change->number);
    put_u32(head + LENGTH_AT, (uint32_t)change->pairs.len);
    buf_append(to, head, sizeof(head));
    buf_append_slice(to, change->pairs);
}

/* Reads the record at *at, and moves *at behind it. */
static struct feed_change
take_record(struct slice records, size_t *at)
{
    const uint8_t *head = (const uint8_t *)records.data + *at;
    struct feed_change record;

    CHECK(records.len - *at >= PAIRS_AT);
    record.kind = (enum feed_kind)head[0];
    record.number = get_u64(head + NUMBER_AT);
    record.pairs = (struct slice){ records.data + *at + PAIRS_AT,
                                   get_u32(head + LENGTH_AT) };
    *at += PAIRS_AT + record.pairs.len;
    CHECK(*at <= records.len);
    return record;
}

/* ---- telling, on any thread ---------------------------------------------- */

static void
post(struct pubsub *pubsub, enum notice_kind kind, struct slice topic,
     struct slice record, struct notice_list *list)
{
    struct notice *notice = NULL;

    for (unsigned i = 0; i < pubsub->loops; i++) {
        struct slot *slot = &pubsub->slots[i];
        bool wanted = false;

        if (atomic_load(&slot->size) > 0) {
            uv_mutex_lock(&slot->mutex);
            wanted =
                kind == NOTICE_FILTERS
                    ? slot->topics[PUBSUB_FILTER].count > 0
                    : map_find(&slot->topics[PUBSUB_FILTER], topic) != NULL;
            uv_mutex_unlock(&slot->mutex);
        }
        if (!wanted) {
            continue;
        }
        if (notice == NULL && record.data != NULL) {
            notice = notice_new(kind, 0, topic, record);
        }
        notice_list_add(list, notice, i, 0);
    }
    notice_unref(notice);
}

void
pubsub_feed(struct pubsub *pubsub, const struct feed_key *key,
            const struct feed_change *change, struct notice_list *list)
{
    struct buf topic = { 0 };
    struct buf record = { 0 };

    pubsub_feed_name(&topic, key);
    put_record(&record, change);
    if (topic.failed) { /* without its name, its subscribers cannot be found */
        for (unsigned i = 0; i < pubsub->loops; i++) {
            notice_list_add(list, NULL, i, 0);
        }
    } else {
        post(pubsub, NOTICE_FILTER, buf_slice(&topic),
             record.failed ? (struct slice){ NULL, 0 } : buf_slice(&record),
             list);
    }
    buf_free(&topic);
    buf_free(&record);
}

void
pubsub_feed_all(struct pubsub *pubsub, uint32_t db, enum feed_kind kind,
                struct notice_list *list)
{
    const struct feed_change change = { .kind = kind };
    uint8_t number[FEED_DB_BYTES];
    struct buf record = { 0 };

    put_u32(number, db);
    put_record(&record, &change);
    post(pubsub, NOTICE_FILTERS,
         (struct slice){ (const char *)number, sizeof(number) },
         record.failed ? (struct slice){ NULL, 0 } : buf_slice(&record), list);
    buf_free(&record);
}

void
pubsub_feed_answer(const struct receiver *receiver, const struct feed_key *key,
                   const struct feed_answer *answer, struct notice_list *list)
{
    uint8_t numbers[ANSWER_BYTES];
    struct notice *notice = NULL;
    struct buf topic = { 0 };

    put_u64(numbers, answer->missing);
    put_u64(numbers + 8, answer->incarnation);
    put_u64(numbers + 16, answer->items);
    put_u64(numbers + 24, answer->layers);
    put_u64(numbers + 32, answer->at_ms);
    pubsub_feed_name(&topic, key);
    if (!topic.failed) {
        notice =
            notice_new(NOTICE_FILTER_ANSWER, 0, buf_slice(&topic),
                       (struct slice){ (const char *)numbers, ANSWER_BYTES });
    }
    notice_list_add(list, notice, receiver->loop, receiver->id);
    notice_unref(notice);
    buf_free(&topic);
}

/* ---- gathering, on the loop ---------------------------------------------- */

/* Cuts all subscribers, since records were lost. */
static void
cut_all(const struct topic *topic)
{
    for (struct subscription *sub = topic->first; sub != NULL;
         sub = sub->next) {
        sub->sent = 0;
        receiver_cut(sub->receiver);
    }
}

/* Puts the topic into the list of those that have something to send. */
static void
list_gathered(struct feeding *feeding, struct gathered *gathered,
              uint64_t gather_ns)
{
    if (gathered->at != NULL) {
        return;
    }
    if (feeding->first == NULL) {
        uint64_t due_ns = clock_mono_ns() + gather_ns;

        feeding->due_ns =
            due_ns > feeding->rests_until_ns ? due_ns : feeding->rests_until_ns;
    }
    gathered->next = NULL;
    gathered->at = feeding->end;
    *feeding->end = gathered;
    feeding->end = &gathered->next;
}

/* Returns whether pairs may be appended to the last record. */
static bool
ends_with_pairs(const struct gathered *gathered)
{
    return gathered->last != SIZE_MAX &&
           (enum feed_kind)gathered->records.data[gathered->last] == FEED_ADD;
}

/* Merges a record into the last one. False: they cannot be merged. */
static bool
merge(struct gathered *gathered, const struct feed_change *record)
{
    struct slice records = buf_slice(&gathered->records);
    size_t at = gathered->last;
    uint8_t *head;
    struct feed_change last;

    if (at == SIZE_MAX) {
        return false;
    }
    head = (uint8_t *)gathered->records.data + at;
    last = take_record(records, &at);
    if (last.kind != record->kind || last.kind == FEED_DELETED) {
        if (last.kind == record->kind) {
            put_u64(head + NUMBER_AT, last.number + record->number);
        }
        return last.kind == record->kind;
    }
    if (last.kind != FEED_ADD) {
        return true; /* once is enough */
    }
    if (last.number != record->number ||
        last.pairs.len + record->pairs.len > MERGED_BYTES) {
        return false;
    }
    put_u32(head + LENGTH_AT, (uint32_t)(last.pairs.len + record->pairs.len));
    buf_append_slice(&gathered->records, record->pairs);
    return true;
}

static void
gather(struct feeding *feeding, struct topic *topic, struct slice bytes,
       uint64_t gather_ns)
{
    struct gathered *gathered = topic->gathered;
    size_t at = 0;
    struct feed_change record = take_record(bytes, &at);

    list_gathered(feeding, gathered, gather_ns);
    if (!merge(gathered, &record)) {
        gathered->last = gathered->records.len;
        buf_append_slice(&gathered->records, bytes);
    }
    if (gathered->records.failed) {
        cut_all(topic);
        buf_reset(&gathered->records, 0);
        gathered->last = SIZE_MAX;
    }
    if (gathered->records.len > GATHERED_BYTES) {
        feeding->due_ns = 0;
    }
}

struct gathering {
    struct feeding *feeding;
    const struct notice *notice;
    uint64_t gather_ns;
};

static void
gather_for(const struct gathering *gathering, struct topic *topic)
{
    const struct notice *notice = gathering->notice;

    gather(gathering->feeding, topic, notice->payload, gathering->gather_ns);
    if (topic->gathered->hold_until < notice->hold_until) {
        topic->gathered->hold_until = notice->hold_until;
    }
}

static bool
gather_in_db(void *ctx, struct slice name, void *value)
{
    const struct gathering *gathering = ctx;
    uint32_t db = pubsub_feed_db(gathering->notice->channel);

    if (db == FEED_ALL_DBS || db == pubsub_feed_db(name)) {
        gather_for(gathering, value);
    }
    return true;
}

void
pubsub_feed_gather(struct pubsub *pubsub, unsigned loop,
                   const struct notice *notice, uint64_t gather_ns)
{
    struct slot *slot = &pubsub->slots[loop];
    struct gathering gathering = { &slot->feeding, notice, gather_ns };
    struct topic *topic;

    CHECK(!slot->feeding.begun);
    if (notice->kind == NOTICE_FILTERS) {
        (void)map_each(&slot->topics[PUBSUB_FILTER], gather_in_db, &gathering);
        return;
    }
    topic = map_find(&slot->topics[PUBSUB_FILTER], notice->channel);
    if (topic != NULL) {
        gather_for(&gathering, topic);
    }
}

/* ---- frames -------------------------------------------------------------- */

static void
put_number(struct reply *reply, uint64_t number)
{
    char text[NUM_U64_MAX];

    reply_bulk(reply, (struct slice){ text, num_format_u64(number, text) });
}

static void
begin_frame(struct reply *reply, struct slice topic, unsigned words,
            const char *word)
{
    reply_header(reply, reply->resp == 2 ? '*' : '>', words);
    reply_bulk_text(reply, "bf.message");
    reply_bulk(reply, pubsub_feed_key(topic));
    reply_bulk_text(reply, word);
}

static void
put_frame(struct reply *reply, struct slice topic,
          const struct feed_change *record)
{
    switch (record->kind) {
    case FEED_ADD:
        begin_frame(reply, topic, record->number > 0 ? 5 : 4, "add");
        reply_bulk(reply, record->pairs);
        if (record->number > 0) {
            put_number(reply, record->number);
        }
        break;
    case FEED_DELETED:
        begin_frame(reply, topic, 4, "deleted");
        put_number(reply, record->number);
        break;
    case FEED_GONE:
        begin_frame(reply, topic, 3, "gone");
        break;
    case FEED_NOTHING:
    case FEED_CHANGED:
        begin_frame(reply, topic, 3, "changed");
        break;
    }
}

/* Writes the frames of all records from FROM on, which may be inside the pairs
 * of one. */
static void
put_frames(struct buf *to, unsigned resp, const struct topic *topic,
           size_t from)
{
    struct slice records = buf_slice(&topic->gathered->records);
    struct slice name = { topic->name, topic->len };
    struct reply reply = { to, resp };
    size_t at = 0;

    while (at < records.len) {
        size_t begins = at;
        struct feed_change record = take_record(records, &at);

        if (at <= from) {
            continue;
        }
        if (begins < from) { /* the client has the pairs before */
            record.pairs = (struct slice){ records.data + from, at - from };
        }
        put_frame(&reply, name, &record);
    }
}

static void
put_answer(struct buf *to, unsigned resp, const struct notice *notice)
{
    const uint8_t *numbers = (const uint8_t *)notice->payload.data;
    bool missing = get_u64(numbers) != 0;
    struct reply reply = { to, resp };

    CHECK(notice->payload.len == ANSWER_BYTES);
    begin_frame(&reply, notice->channel, missing ? 5 : 8, "is");
    reply_bulk_text(&reply, "1");
    if (missing) {
        reply_bulk_text(&reply, "missing");
        return;
    }
    for (size_t i = 1; i < ANSWER_NUMBERS; i++) {
        put_number(&reply, get_u64(numbers + i * 8));
    }
}

void
pubsub_feed_reply(struct pubsub *pubsub, struct receiver *receiver,
                  const struct notice *notice)
{
    struct map *own = receiver->subscriptions != NULL
                          ? &receiver->subscriptions->own[PUBSUB_FILTER]
                          : NULL;
    struct subscription *sub =
        own != NULL ? map_find(own, notice->channel) : NULL;
    struct buf bytes = { 0 };
    struct gathered *gathered;

    if (sub == NULL) {
        return; /* the client has unsubscribed */
    }
    gathered = sub->topic->gathered;
    CHECK(!pubsub->slots[receiver->loop].feeding.begun);
    put_frames(&bytes, *receiver->resp, sub->topic, sub->sent);
    put_answer(&bytes, *receiver->resp, notice);
    sub->sent = gathered->records.len;
    if (!ends_with_pairs(gathered)) {
        gathered->last = SIZE_MAX;
    }
    receiver_push(receiver, &bytes,
                  gathered->hold_until > notice->hold_until
                      ? gathered->hold_until
                      : notice->hold_until);
    buf_free(&bytes);
}

/* ---- sending ------------------------------------------------------------- */

/* Sends a subscriber what it has not got yet. `shared` keeps the frames of all
 * records, in each protocol, once a subscriber has needed them. */
static void
send_one(struct subscription *sub, struct buf *shared)
{
    const struct gathered *gathered = sub->topic->gathered;
    unsigned resp = *sub->receiver->resp;
    struct buf rest = { 0 };
    struct buf *bytes = sub->sent == 0 ? &shared[resp - 2] : &rest;

    if (bytes->len == 0 && !bytes->failed) {
        put_frames(bytes, resp, sub->topic, sub->sent);
    }
    sub->sent = 0;
    receiver_push(sub->receiver, bytes, gathered->hold_until);
    buf_free(&rest);
}

/* Sends on to the subscribers of the first topic. False: no time left. */
static bool
send_on(struct feeding *feeding, uint64_t until_ns)
{
    struct buf shared[2] = { { 0 }, { 0 } };
    unsigned steps = 0;
    bool late = false;

    while (feeding->next != NULL && !late) {
        struct subscription *sub = feeding->next;

        feeding->next = sub->next;
        send_one(sub, shared);
        late = ++steps % STEPS_AT_ONCE == 0 && clock_mono_ns() >= until_ns;
    }
    buf_free(&shared[0]);
    buf_free(&shared[1]);
    return feeding->next == NULL;
}

static void
empty_first(struct feeding *feeding)
{
    struct gathered *gathered = feeding->first;

    feeding->begun = false;
    feeding->first = gathered->next;
    if (gathered->next != NULL) {
        gathered->next->at = &feeding->first;
    } else {
        feeding->end = &feeding->first;
    }
    gathered->at = NULL;
    gathered->last = SIZE_MAX;
    gathered->hold_until = 0;
    buf_reset(&gathered->records, FEED_KEPT_BYTES);
}

/* Sends all that was gathered. False: no time left. */
static bool
send_all(struct feeding *feeding, struct loop *loop, uint64_t until_ns)
{
    while (feeding->first != NULL) {
        if (!feeding->begun) {
            feeding->begun = true;
            feeding->next = feeding->first->topic->first;
        }
        if (!send_on(feeding, until_ns)) {
            return false;
        }
        empty_first(feeding);
        if (clock_mono_ns() >= until_ns) {
            break;
        }
    }
    return push_flush(loop, until_ns) && feeding->first == NULL;
}

uint64_t
pubsub_feed_send(struct pubsub *pubsub, struct loop *loop, uint64_t until_ns)
{
    struct feeding *feeding = &pubsub->slots[loop->index].feeding;
    uint64_t now_ns;
    uint64_t cpu_ns;

    if (feeding->first == NULL && !feeding->sending) {
        return 0;
    }
    now_ns = clock_mono_ns();
    if (!feeding->sending && now_ns < feeding->due_ns) {
        return feeding->due_ns;
    }
    cpu_ns = clock_thread_cpu_ns(); /* waiting for a core is not counted */
    feeding->sending = !send_all(feeding, loop, until_ns);
    feeding->took_ns += clock_thread_cpu_ns() - cpu_ns;
    if (feeding->sending) {
        return now_ns;
    }
    feeding->rests_until_ns = clock_mono_ns() + RESTS * feeding->took_ns;
    feeding->took_ns = 0;
    return 0;
}
