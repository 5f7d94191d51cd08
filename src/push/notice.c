/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An inbox has two arrays. Other threads append to `queue` under the lock. The
 * loop delivers from `drain`; when that is empty it swaps the two. The bytes of
 * a notice count against the inbox's limit until it is delivered.
 */
#include "push/notice.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/mailbox.h"
#include "net/push.h"

#include <string.h>

enum {
    POSTS_FIRST = 16,
    POSTS_KEEP = 1024,       /* an empty array above this is freed */
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
keep_bytes(char *to, struct slice bytes)
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
        notice->channel = keep_bytes(notice->bytes, channel);
        notice->payload = keep_bytes(notice->bytes + channel.len, payload);
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
reserve_post(struct notice_post **posts, uint32_t count, uint32_t *capacity)
{
    uint32_t wanted = *capacity > 0 ? *capacity * 2 : POSTS_FIRST;
    struct notice_post *grown;

    if (count < *capacity) {
        return true;
    }
    if (wanted <= *capacity) {
        return false; /* there are 2^31 posts */
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
free_if_large(struct notice_post **posts, uint32_t *capacity)
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
    uint64_t bytes; /* in both arrays, not delivered yet */
    bool lost;      /* a notice was lost, and the loop does not know yet */
    bool crowded;   /* counted in all->crowded */
    struct inboxes *all;
    struct notice_post *drain; /* the loop's alone */
    uint32_t drain_at, drain_count, drain_capacity;
    struct mailbox *mailbox;
    struct inbox_reader reader;
};

struct inboxes {
    const _Atomic uint64_t *limit_bytes;
    _Atomic unsigned crowded; /* number of crowded inboxes */
    unsigned loops;
    struct inbox inbox[];
};

static uint64_t
post_bytes(const struct notice_post *post)
{
    return sizeof(*post) + notice_bytes(post->notice);
}

/* Updates `crowded` after inbox->bytes changed. The caller holds the lock. */
static void
update_crowded(struct inbox *inbox)
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

/* Drops everything in the inbox, and lets the loop cut its clients. */
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
    update_crowded(inbox);
    uv_mutex_unlock(&inbox->mutex);
    inbox->reader.lost(inbox->reader.ctx);
}

/* Swaps queue and drain if the drain is empty. Returns whether a notice was
 * lost. */
static bool
swap_if_drained(struct inbox *inbox)
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

/* Delivers from the drain for some time. Returns whether more is left, there or
 * in the queue. */
static bool
deliver(struct inbox *inbox, uint64_t ends_ns)
{
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
    CHECK(inbox->bytes >= bytes);
    inbox->bytes -= bytes;
    update_crowded(inbox);
    more = inbox->count > 0 || inbox->lost;
    uv_mutex_unlock(&inbox->mutex);
    return more || inbox->drain_at < inbox->drain_count;
}

/* Sends what was gathered, if it is due. If not, has the loop poked at the due
 * time. Returns whether to continue sending before more is delivered. */
static bool
send_gathered(struct inbox *inbox, uint64_t ends_ns)
{
    const struct inbox_reader *reader = &inbox->reader;
    uint64_t due_ns =
        reader->send != NULL ? reader->send(reader->ctx, ends_ns) : 0;
    uint64_t now_ns;

    if (due_ns == 0) {
        return false;
    }
    now_ns = clock_mono_ns();
    if (due_ns > now_ns) {
        mailbox_poke_in(inbox->mailbox, due_ns - now_ns);
    }
    return due_ns <= now_ns;
}

/* Sends the pushes that the last turn has left, and only then delivers more
 * notices, so that few pushes wait. Returns whether there is more to do. */
static bool
work_for_a_turn(struct inbox *inbox)
{
    struct loop *loop = inbox->mailbox->loop;
    uint64_t ends_ns = clock_mono_ns() + TURN_NS;
    bool more = true;

    if (!send_gathered(inbox, ends_ns) && push_flush(loop, ends_ns)) {
        more = deliver(inbox, ends_ns);
        more = send_gathered(inbox, ends_ns) || more;
        more = !push_flush(loop, ends_ns) || more;
    }
    return more;
}

/* Called on the loop after mailbox_poke. */
static void
on_poke(void *ctx)
{
    struct inbox *inbox = ctx;
    bool more;

    if (inbox->reader.woken != NULL) {
        inbox->reader.woken(inbox->reader.ctx);
    }
    if (swap_if_drained(inbox)) {
        lose_all(inbox);
    }
    more = work_for_a_turn(inbox);
    if (inbox->drain_at == inbox->drain_count) {
        inbox->drain_at = 0;
        inbox->drain_count = 0;
        free_if_large(&inbox->drain, &inbox->drain_capacity);
    }
    if (more) {
        mailbox_poke(inbox->mailbox); /* other work of the loop comes first */
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

void
inboxes_wake(struct inboxes *inboxes)
{
    for (unsigned i = 0; i < inboxes->loops; i++) {
        mailbox_poke(inboxes->inbox[i].mailbox);
    }
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
        !reserve_post(&list->posts, list->count, &list->capacity)) {
        list->lost |= bit_of(loop);
        return;
    }
    list->posts[list->count++] = (struct notice_post){
        .notice = notice_ref(notice), .to = to, .loop = loop
    };
    list->posted |= bit_of(loop);
}

/* Moves a post with its reference into an inbox. The caller holds its lock. */
static void
post_one(struct inbox *inbox, const struct notice_post *post, uint64_t limit)
{
    /* A notice above the limit is accepted while the inbox is below the limit.
     * If it were lost, all other notices in the inbox would be lost with it. */
    if (inbox->lost || inbox->bytes >= limit ||
        !reserve_post(&inbox->queue, inbox->count, &inbox->capacity)) {
        inbox->lost = true;
        metric_add(METRIC_NOTICES_LOST, 1);
        notice_unref(post->notice);
        return;
    }
    inbox->bytes += post_bytes(post);
    inbox->queue[inbox->count++] = *post;
}

/* Moves the posts for one loop to its inbox. */
static void
move_to(struct notice_list *list, struct inboxes *inboxes, unsigned loop)
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
    update_crowded(inbox);
    uv_mutex_unlock(&inbox->mutex);
}

void
notice_list_close(struct notice_list *list, struct inboxes *inboxes,
                  uint64_t hold_until)
{
    uint64_t concerned = list->posted | list->lost;

    for (uint32_t i = 0; i < list->count; i++) {
        list->posts[i].notice->hold_until = hold_until;
    }
    for (unsigned i = 0; i < inboxes->loops; i++) {
        if ((concerned & bit_of(i)) != 0) {
            move_to(list, inboxes, i);
        }
    }
    list->to_wake |= concerned;
    list->posted = 0;
    list->lost = 0;
    list->count = 0;
    free_if_large(&list->posts, &list->capacity);
}

void
notice_list_wake(struct notice_list *list, struct inboxes *inboxes)
{
    for (unsigned i = 0; i < inboxes->loops; i++) {
        if ((list->to_wake & bit_of(i)) != 0) {
            mailbox_poke(inboxes->inbox[i].mailbox);
        }
    }
    list->to_wake = 0;
}

void
notice_list_fini(struct notice_list *list)
{
    unref_all(list->posts, 0, list->count);
    mem_free(list->posts);
    *list = (struct notice_list){ 0 };
}
