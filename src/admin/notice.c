/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An inbox is two arrays: who posts fills one under its lock, the loop takes it
 * whole and delivers from the other, a turn's worth at a time. What waits is
 * counted until it is delivered.
 */
#include "admin/notice.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/mailbox.h"
#include "net/push.h"

#include <string.h>

enum {
    POSTS_FIRST = 16,
    POSTS_KEEP = 1024,       /* of an array that is empty */
    LOOK_AT_CLOCK_EVERY = 16 /* deliveries */
};

static const uint64_t TURN_NS = 2000000;

/* ---- notices ------------------------------------------------------------- */

static size_t
notice_bytes(const struct notice *notice)
{
    return sizeof(*notice) + notice->channel.len + notice->payload.len;
}

static struct slice
keep(char *to, struct slice bytes)
{
    if (bytes.len > 0) {
        memcpy(to, bytes.data, bytes.len);
    }
    return (struct slice){ to, bytes.len };
}

struct notice *
notice_new(enum notice_kind kind, uint64_t from, struct slice channel,
           struct slice payload)
{
    struct notice *notice =
        mem_try_alloc(sizeof(*notice) + channel.len + payload.len);

    if (notice != NULL) {
        atomic_init(&notice->references, 1);
        notice->kind = kind;
        notice->hold_until = 0;
        notice->from = from;
        notice->channel = keep(notice->bytes, channel);
        notice->payload = keep(notice->bytes + channel.len, payload);
    }
    return notice;
}

struct notice *
notice_ref(struct notice *notice)
{
    (void)atomic_fetch_add_explicit(&notice->references, 1,
                                    memory_order_relaxed);
    return notice;
}

void
notice_unref(struct notice *notice)
{
    uint32_t before;

    if (notice == NULL) {
        return;
    }
    before =
        atomic_fetch_sub_explicit(&notice->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1) {
        mem_free(notice);
    }
}

/* ---- arrays of posts ----------------------------------------------------- */

static bool
make_room(struct notice_post **posts, uint32_t count, uint32_t *capacity)
{
    uint32_t wanted = *capacity > 0 ? *capacity * 2 : POSTS_FIRST;
    struct notice_post *grown;

    if (count < *capacity) {
        return true;
    }
    if (wanted <= *capacity) {
        return false; /* 2^31 of them */
    }
    grown = mem_try_realloc(*posts, wanted * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    *posts = grown;
    *capacity = wanted;
    return true;
}

static void
drop_large(struct notice_post **posts, uint32_t *capacity)
{
    if (*capacity > POSTS_KEEP) {
        mem_free(*posts);
        *posts = NULL;
        *capacity = 0;
    }
}

static void
unref_all(const struct notice_post *posts, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < count; i++) {
        notice_unref(posts[i].notice);
    }
}

/* ---- inboxes ------------------------------------------------------------- */

struct inbox {
    uv_mutex_t mutex;
    struct notice_post *queue; /* guarded by mutex */
    uint32_t count, capacity;
    uint64_t bytes; /* of what is queued, or taken and not delivered */
    bool lost;
    bool crowded; /* counted in all->crowded */
    struct inboxes *all;
    struct notice_post *drain; /* the loop's alone */
    uint32_t drain_at, drain_count, drain_capacity;
    struct mailbox *mailbox;
    struct inbox_reader reader;
};

struct inboxes {
    const _Atomic uint64_t *limit_bytes;
    _Atomic unsigned crowded; /* how many are */
    unsigned loops;
    struct inbox inbox[];
};

static uint64_t
post_bytes(const struct notice_post *post)
{
    return sizeof(*post) + notice_bytes(post->notice);
}

/* After a change of what waits, under the lock. */
static void
count_crowd(struct inbox *inbox)
{
    uint64_t limit = atomic_load(inbox->all->limit_bytes);

    if (!inbox->crowded && inbox->bytes > limit / 2) {
        inbox->crowded = true;
        (void)atomic_fetch_add(&inbox->all->crowded, 1);
    } else if (inbox->crowded && inbox->bytes <= limit / 4) {
        inbox->crowded = false;
        (void)atomic_fetch_sub(&inbox->all->crowded, 1);
    }
}

bool
inboxes_are_crowded(const struct inboxes *inboxes)
{
    return inboxes != NULL &&
           atomic_load_explicit(&inboxes->crowded, memory_order_relaxed) > 0;
}

/* Drops all that waits, and says so. */
static void
lose_all(struct inbox *inbox)
{
    unref_all(inbox->drain, inbox->drain_at, inbox->drain_count);
    inbox->drain_at = 0;
    inbox->drain_count = 0;
    uv_mutex_lock(&inbox->mutex);
    unref_all(inbox->queue, 0, inbox->count);
    inbox->count = 0;
    inbox->bytes = 0;
    inbox->lost = false;
    count_crowd(inbox);
    uv_mutex_unlock(&inbox->mutex);
    inbox->reader.lost(inbox->reader.ctx);
}

/* Takes the queue if what was taken before is delivered. Returns whether
 * something was lost. */
static bool
take(struct inbox *inbox)
{
    bool lost;

    uv_mutex_lock(&inbox->mutex);
    lost = inbox->lost;
    if (!lost && inbox->drain_at == inbox->drain_count) {
        struct notice_post *empty = inbox->drain;
        uint32_t capacity = inbox->drain_capacity;

        inbox->drain = inbox->queue;
        inbox->drain_at = 0;
        inbox->drain_count = inbox->count;
        inbox->drain_capacity = inbox->capacity;
        inbox->queue = empty;
        inbox->count = 0;
        inbox->capacity = capacity;
    }
    uv_mutex_unlock(&inbox->mutex);
    return lost;
}

/* Returns whether more waits: of what was taken, or behind it. */
static bool
deliver(struct inbox *inbox)
{
    uint64_t ends_ns = clock_mono_ns() + TURN_NS;
    uint64_t bytes = 0;
    unsigned done = 0;
    bool more;

    while (inbox->drain_at < inbox->drain_count) {
        const struct notice_post *post = &inbox->drain[inbox->drain_at];

        if (!inbox->reader.deliver(inbox->reader.ctx, post->notice, post->to,
                                   ends_ns)) {
            break;
        }
        inbox->drain_at++;
        bytes += post_bytes(post);
        notice_unref(post->notice);
        if (++done % LOOK_AT_CLOCK_EVERY == 0 && clock_mono_ns() >= ends_ns) {
            break;
        }
    }
    uv_mutex_lock(&inbox->mutex);
    inbox->bytes -= bytes;
    count_crowd(inbox);
    more = inbox->count > 0 || inbox->lost;
    uv_mutex_unlock(&inbox->mutex);
    return more || inbox->drain_at < inbox->drain_count;
}

/* On the loop, after a poke. */
static void
on_poke(void *ctx)
{
    struct inbox *inbox = ctx;
    bool more;

    if (take(inbox)) {
        lose_all(inbox);
        return;
    }
    more = deliver(inbox);
    push_flush(inbox->mailbox->loop);
    if (inbox->drain_at == inbox->drain_count) {
        inbox->drain_at = 0;
        inbox->drain_count = 0;
        drop_large(&inbox->drain, &inbox->drain_capacity);
    }
    if (more) {
        mailbox_poke(inbox->mailbox); /* others have their turn first */
    }
}

struct inboxes *
inboxes_new(unsigned loops, const _Atomic uint64_t *limit_bytes)
{
    struct inboxes *inboxes =
        mem_zalloc(sizeof(*inboxes) + loops * sizeof(inboxes->inbox[0]));

    inboxes->limit_bytes = limit_bytes;
    inboxes->loops = loops;
    for (unsigned i = 0; i < loops; i++) {
        CHECK(uv_mutex_init(&inboxes->inbox[i].mutex) == 0);
        inboxes->inbox[i].all = inboxes;
    }
    return inboxes;
}

void
inboxes_free(struct inboxes *inboxes)
{
    for (unsigned i = 0; inboxes != NULL && i < inboxes->loops; i++) {
        struct inbox *inbox = &inboxes->inbox[i];

        unref_all(inbox->queue, 0, inbox->count);
        unref_all(inbox->drain, inbox->drain_at, inbox->drain_count);
        mem_free(inbox->queue);
        mem_free(inbox->drain);
        uv_mutex_destroy(&inbox->mutex);
    }
    mem_free(inboxes);
}

void
inboxes_attach(struct inboxes *inboxes, unsigned loop, struct mailbox *mailbox,
               const struct inbox_reader *reader)
{
    struct inbox *inbox = &inboxes->inbox[loop];

    CHECK(loop < inboxes->loops);
    inbox->mailbox = mailbox;
    inbox->reader = *reader;
    mailbox_on_poke(mailbox, on_poke, inbox);
}

/* ---- a worker's list ----------------------------------------------------- */

static uint64_t
bit_of(unsigned loop)
{
    return (uint64_t)1 << (loop % 64);
}

void
notice_list_add(struct notice_list *list, struct notice *notice, unsigned loop,
                uint64_t to)
{
    if (notice == NULL ||
        !make_room(&list->posts, list->count, &list->capacity)) {
        list->lost |= bit_of(loop);
        return;
    }
    list->posts[list->count++] = (struct notice_post){
        .notice = notice_ref(notice), .to = to, .loop = loop
    };
    list->gets |= bit_of(loop);
}

/* Puts one post into an inbox, whose lock is held; takes over its reference. */
static void
post_one(struct inbox *inbox, const struct notice_post *post, uint64_t limit)
{
    /* One that is longer than all the room costs nobody else his place. */
    if (inbox->lost || inbox->bytes >= limit ||
        !make_room(&inbox->queue, inbox->count, &inbox->capacity)) {
        inbox->lost = true;
        metric_add(METRIC_NOTICES_LOST, 1);
        notice_unref(post->notice);
        return;
    }
    inbox->bytes += post_bytes(post);
    inbox->queue[inbox->count++] = *post;
}

/* Hands this loop what the list has for it. */
static void
close_for(struct notice_list *list, struct inboxes *inboxes, unsigned loop)
{
    uint64_t limit = atomic_load(inboxes->limit_bytes);
    struct inbox *inbox = &inboxes->inbox[loop];

    uv_mutex_lock(&inbox->mutex);
    if ((list->lost & bit_of(loop)) != 0) {
        inbox->lost = true;
        metric_add(METRIC_NOTICES_LOST, 1);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->posts[i].loop == loop) {
            post_one(inbox, &list->posts[i], limit);
        }
    }
    count_crowd(inbox);
    uv_mutex_unlock(&inbox->mutex);
}

void
notice_list_close(struct notice_list *list, struct inboxes *inboxes,
                  uint64_t hold_until)
{
    uint64_t concerns = list->gets | list->lost;

    for (uint32_t i = 0; i < list->count; i++) {
        list->posts[i].notice->hold_until = hold_until;
    }
    for (unsigned i = 0; i < inboxes->loops; i++) {
        if ((concerns & bit_of(i)) != 0) {
            close_for(list, inboxes, i);
        }
    }
    list->owed |= concerns;
    list->gets = 0;
    list->lost = 0;
    list->count = 0;
    drop_large(&list->posts, &list->capacity);
}

void
notice_list_wake(struct notice_list *list, struct inboxes *inboxes)
{
    for (unsigned i = 0; i < inboxes->loops; i++) {
        if ((list->owed & bit_of(i)) != 0) {
            mailbox_poke(inboxes->inbox[i].mailbox);
        }
    }
    list->owed = 0;
}

void
notice_list_fini(struct notice_list *list)
{
    unref_all(list->posts, 0, list->count);
    mem_free(list->posts);
    *list = (struct notice_list){ 0 };
}
