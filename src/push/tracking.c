/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each loop has a slot: its trackers by the ids of their clients, the prefixes
 * of those in BCAST mode, and its clients that are targets of redirections.
 *
 * An invalidation always goes to the tracker's own loop, which knows the
 * options. If the target is on another loop, that loop gets a
 * NOTICE_REDIRECTED. If the target is gone, the target's loop answers with a
 * NOTICE_REDIRECT_BROKEN.
 */
#include "push/tracking.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "proto/reply.h"
#include "push/prefixes.h"
#include "push/readership.h"
#include "push/roll.h"
#include "push/targets.h"

enum {
    SWEEP_BUCKETS = 4096, /* in one piece of a sweep */
    SCRATCH_KEEP = 4096
};

struct tracker {
    struct receiver *receiver;
    struct tracking_options options;
    struct slice *prefixes; /* options.prefixes; their bytes are owned */
    enum tracking_caching caching;
};

struct slot {
    _Alignas(64) struct map trackers; /* by id; the loop's alone */
    _Atomic uint64_t tracker_count;
    struct prefixes prefixes;
    struct targets targets;
    struct buf scratch; /* the loop's alone */
    struct roll roll;   /* ids of the trackers to tell about a flush */
};

struct tracking {
    unsigned loops;
    struct readership *readership;
    struct slot *slots;
    struct prefixes **all; /* prefixes of all slots */
};

struct tracking *
tracking_new(unsigned loops, const struct tracking_limits *limits)
{
    struct tracking *tracking = mem_zalloc(sizeof(*tracking));
    struct readership_limits both = { limits->keys, limits->bytes };

    tracking->loops = loops;
    tracking->readership = readership_new(&both);
    tracking->slots = mem_lines(loops * sizeof(struct slot));
    tracking->all = mem_alloc(loops * sizeof(struct prefixes *));
    for (unsigned i = 0; i < loops; i++) {
        tracking->all[i] = &tracking->slots[i].prefixes;
        prefixes_init(tracking->all[i]);
        targets_init(&tracking->slots[i].targets);
    }
    return tracking;
}

void
tracking_free(struct tracking *tracking)
{
    for (unsigned i = 0; tracking != NULL && i < tracking->loops; i++) {
        struct slot *slot = &tracking->slots[i];

        CHECK(slot->trackers.count == 0);
        map_free(&slot->trackers);
        prefixes_fini(&slot->prefixes);
        targets_fini(&slot->targets);
        buf_free(&slot->scratch);
        roll_end(&slot->roll);
    }
    if (tracking != NULL) {
        readership_free(tracking->readership);
        mem_free_lines(tracking->slots, tracking->loops * sizeof(struct slot));
        mem_free((void *)tracking->all);
        mem_free(tracking);
    }
}

static struct slice
name_of_id(const uint64_t *id)
{
    return (struct slice){ (const char *)id, sizeof(*id) };
}

/* ---- prefixes of one client ---------------------------------------------- */

static int
compare(struct slice a, struct slice b)
{
    size_t both = a.len < b.len ? a.len : b.len;
    int order = both > 0 ? memcmp(a.data, b.data, both) : 0;

    if (order != 0) {
        return order;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

size_t
tracking_prefix_bytes(const struct tracking_options *options)
{
    size_t bytes = 0;

    for (size_t i = 0; i < options->prefix_count; i++) {
        bytes += sizeof(struct slice) + map_node_bytes(options->prefixes[i]);
    }
    return bytes;
}

size_t
tracking_memory(const struct receiver *receiver)
{
    enum { KEY_BYTES = 128 }; /* what a key with a name of usual length takes */
    const struct tracker *tracker = receiver->tracker;
    size_t bytes = 0;

    if (tracker != NULL) {
        bytes = sizeof(*tracker) + tracking_prefix_bytes(&tracker->options);
    }
    return receiver->reader == NULL
               ? bytes
               : bytes + readership_keys(receiver->reader) * KEY_BYTES;
}

/* Returns the index of a prefix, or where to insert it. */
static size_t
prefix_place(const struct tracker *tracker, struct slice prefix,
             bool *ret_there)
{
    size_t at = 0;

    while (at < tracker->options.prefix_count &&
           compare(tracker->prefixes[at], prefix) < 0) {
        at++;
    }
    *ret_there = at < tracker->options.prefix_count &&
                 slice_equal(tracker->prefixes[at], prefix);
    return at;
}

static void
set_prefixes(struct tracker *tracker, struct slice *prefixes, size_t count)
{
    tracker->prefixes = prefixes;
    tracker->options.prefixes = prefixes;
    tracker->options.prefix_count = count;
}

/* Frees bytes that the slice owns, although it points to const. */
static void
free_bytes(struct slice own)
{
    void *bytes;

    memcpy(&bytes, &own.data, sizeof(bytes));
    mem_free(bytes);
}

static void
remove_prefix(struct slot *slot, struct tracker *tracker, struct slice prefix)
{
    size_t count = tracker->options.prefix_count;
    bool there;
    size_t at = prefix_place(tracker, prefix, &there);
    struct slice own = tracker->prefixes[at];

    CHECK(there);
    prefixes_remove(&slot->prefixes, own, tracker);
    memmove(&tracker->prefixes[at], &tracker->prefixes[at + 1],
            (count - at - 1) * sizeof(own));
    tracker->options.prefix_count--;
    free_bytes(own);
}

/* Adds a prefix, unless it is there already. False: no memory. */
static bool
add_prefix(struct slot *slot, struct tracker *tracker, struct slice prefix,
           bool *ret_added)
{
    size_t count = tracker->options.prefix_count;
    bool there;
    size_t at = prefix_place(tracker, prefix, &there);
    struct slice *prefixes;
    char *copy;

    *ret_added = false;
    if (there) {
        return true;
    }
    prefixes =
        mem_try_realloc(tracker->prefixes, (count + 1) * sizeof(*prefixes));
    if (prefixes == NULL) {
        return false;
    }
    set_prefixes(tracker, prefixes, count);
    copy = mem_try_alloc(prefix.len + 1);
    if (copy == NULL) {
        return false;
    }
    if (prefix.len > 0) {
        memcpy(copy, prefix.data, prefix.len);
    }
    prefix.data = copy;
    if (!prefixes_add(&slot->prefixes, prefix, tracker)) {
        mem_free(copy);
        return false;
    }
    memmove(&prefixes[at + 1], &prefixes[at], (count - at) * sizeof(prefix));
    prefixes[at] = prefix;
    tracker->options.prefix_count++;
    *ret_added = true;
    return true;
}

/* Adds all prefixes or none. No prefixes mean the empty one. */
static bool
add_prefixes(struct slot *slot, struct tracker *tracker,
             const struct tracking_options *options)
{
    struct slice empty = slice_lit("");
    bool none = options->prefix_count == 0;
    const struct slice *prefixes = none ? &empty : options->prefixes;
    size_t count = none ? 1 : options->prefix_count;
    bool *added = mem_try_zalloc(count * sizeof(*added));
    size_t done = 0;

    if (added == NULL) {
        return false;
    }
    while (done < count &&
           add_prefix(slot, tracker, prefixes[done], &added[done])) {
        done++;
    }
    for (size_t i = 0; done < count && i < done; i++) {
        if (added[i]) {
            remove_prefix(slot, tracker, prefixes[i]);
        }
    }
    mem_free(added);
    return done == count;
}

/* ---- on and off ---------------------------------------------------------- */

static struct tracker *
new_tracker(struct slot *slot, struct receiver *receiver)
{
    struct tracker *tracker;

    if (receiver->reader == NULL) {
        receiver->reader = readership_join(receiver->id, receiver->loop);
    }
    tracker =
        receiver->reader != NULL ? mem_try_zalloc(sizeof(*tracker)) : NULL;
    if (tracker == NULL) {
        return NULL;
    }
    tracker->receiver = receiver;
    if (!map_put(&slot->trackers, name_of_id(&receiver->id), tracker)) {
        mem_free(tracker);
        return NULL;
    }
    atomic_store(&slot->tracker_count, slot->trackers.count);
    return tracker;
}

static void
end_tracker(struct slot *slot, struct tracker *tracker)
{
    CHECK(tracker->options.prefix_count == 0);
    (void)map_remove(&slot->trackers, name_of_id(&tracker->receiver->id));
    atomic_store(&slot->tracker_count, slot->trackers.count);
    mem_free(tracker->prefixes);
    mem_free(tracker);
}

/* Publishes the mode and the target for CLIENT LIST. */
static void
show_mode(struct receiver *receiver, uint8_t tracks, uint64_t redirect)
{
    atomic_store_explicit(&receiver->tracks, tracks, memory_order_relaxed);
    atomic_store_explicit(&receiver->redirect, redirect, memory_order_relaxed);
}

bool
tracking_on(struct tracking *tracking, struct receiver *receiver,
            const struct tracking_options *options)
{
    struct slot *slot = &tracking->slots[receiver->loop];
    struct tracker *tracker = receiver->tracker;
    uint64_t before = tracker != NULL ? tracker->options.redirect : 0;
    unsigned before_loop = tracker != NULL ? tracker->options.redirect_loop : 0;

    CHECK(receiver->loop < tracking->loops);
    CHECK(options->redirect_loop < tracking->loops);
    if (tracker == NULL) {
        tracker = new_tracker(slot, receiver);
    }
    if (tracker == NULL) {
        return false;
    }
    if (options->redirect != 0 &&
        !targets_use(&tracking->slots[options->redirect_loop].targets,
                     options->redirect)) {
        goto end;
    }
    if (options->bcast && !add_prefixes(slot, tracker, options)) {
        goto release;
    }
    if (before != 0) {
        targets_release(&tracking->slots[before_loop].targets, before);
    }
    tracker->options.bcast = options->bcast;
    tracker->options.optin = options->optin;
    tracker->options.optout = options->optout;
    tracker->options.noloop = options->noloop;
    tracker->options.redirect = options->redirect;
    tracker->options.redirect_loop = options->redirect_loop;
    receiver->tracker = tracker;
    show_mode(receiver, TRACKS | (options->bcast ? (uint32_t)TRACKS_BCAST : 0),
              options->redirect);
    return true;

release:
    if (options->redirect != 0) {
        targets_release(&tracking->slots[options->redirect_loop].targets,
                        options->redirect);
    }
end:
    if (receiver->tracker == NULL) {
        end_tracker(slot, tracker);
    }
    return false;
}

void
tracking_off(struct tracking *tracking, struct receiver *receiver)
{
    struct slot *slot = &tracking->slots[receiver->loop];
    struct tracker *tracker = receiver->tracker;

    if (tracker == NULL) {
        return;
    }
    while (tracker->options.prefix_count > 0) {
        remove_prefix(slot, tracker,
                      tracker->prefixes[tracker->options.prefix_count - 1]);
    }
    if (tracker->options.redirect != 0) {
        targets_release(
            &tracking->slots[tracker->options.redirect_loop].targets,
            tracker->options.redirect);
    }
    receiver->tracker = NULL;
    show_mode(receiver, 0, 0);
    end_tracker(slot, tracker);
}

void
tracking_leave(struct tracking *tracking, struct receiver *receiver)
{
    tracking_off(tracking, receiver);
    readership_leave(tracking->readership, receiver->reader);
    receiver->reader = NULL;
}

void
tracking_forget_target(struct tracking *tracking, struct receiver *receiver)
{
    targets_forget(&tracking->slots[receiver->loop].targets, receiver);
}

const struct tracking_options *
tracking_get(const struct receiver *receiver)
{
    return receiver->tracker != NULL ? &receiver->tracker->options : NULL;
}

void
tracking_set_caching(struct receiver *receiver, enum tracking_caching caching)
{
    receiver->tracker->caching = caching;
}

enum tracking_caching
tracking_caching(const struct receiver *receiver)
{
    return receiver->tracker != NULL ? receiver->tracker->caching
                                     : CACHING_DEFAULT;
}

/* ---- reads and changes --------------------------------------------------- */

bool
tracking_wants(const struct receiver *receiver)
{
    const struct tracker *tracker = receiver->tracker;

    return tracker != NULL && !tracker->options.bcast &&
           (!tracker->options.optin || tracker->caching == CACHING_YES) &&
           (!tracker->options.optout || tracker->caching != CACHING_NO);
}

void
tracking_remember(struct tracking *tracking, const struct receiver *receiver,
                  struct slice name, uint64_t hash, struct notice_list *list)
{
    readership_add(tracking->readership, receiver->reader, name, hash, list);
}

void
tracking_invalidate(struct tracking *tracking, uint64_t from, struct slice name,
                    uint64_t hash, struct notice_list *list)
{
    struct invalidation invalidation = { .from = from,
                                         .name = name,
                                         .list = list };

    readership_invalidate(tracking->readership, &invalidation, hash);
    for (unsigned i = 0; i < tracking->loops; i++) {
        if (prefixes_match(&tracking->slots[i].prefixes, name)) {
            invalidation_post(&invalidation, i, 0);
        }
    }
    invalidation_fini(&invalidation);
}

void
tracking_invalidate_all(struct tracking *tracking, struct notice_list *list)
{
    struct slice nothing = { NULL, 0 };
    struct notice *notice =
        notice_new(NOTICE_INVALIDATE_ALL, 0, nothing, nothing);

    readership_clear(tracking->readership);
    for (unsigned i = 0; i < tracking->loops; i++) {
        if (atomic_load(&tracking->slots[i].tracker_count) > 0) {
            notice_list_add(list, notice, i, 0);
        }
    }
    notice_unref(notice);
}

/* ---- delivering ---------------------------------------------------------- */

struct delivery {
    struct slot *slot;
    const struct tracking_place *place;
    const struct notice *notice;
    bool all; /* a flush: all keys are invalid */
};

/* The payload of NOTICE_REDIRECTED. */
struct redirected {
    unsigned loop; /* of the tracker, whose id is the notice's `from` */
    bool all;
};

static void
push(const struct delivery *delivery, struct receiver *receiver)
{
    receiver_push(receiver, &delivery->slot->scratch,
                  delivery->notice->hold_until);
    buf_reset(&delivery->slot->scratch, SCRATCH_KEEP);
}

/* RESP2 has no pushes. So only a target that subscribes to a channel gets the
 * invalidation, as a message. */
static void
push_invalidation(const struct delivery *delivery, struct receiver *receiver,
                  bool redirected)
{
    struct reply reply = { &delivery->slot->scratch, *receiver->resp };

    if (reply.resp > 2) {
        reply_header(&reply, '>', 2);
        reply_bulk(&reply, slice_lit("invalidate"));
    } else if (redirected && receiver_subscribes(receiver)) {
        reply_array(&reply, 3);
        reply_bulk(&reply, slice_lit("message"));
        reply_bulk(&reply, slice_lit("__redis__:invalidate"));
    } else {
        return;
    }
    if (delivery->all) {
        reply_null(&reply);
    } else {
        reply_array(&reply, 1);
        reply_bulk(&reply, delivery->notice->channel);
    }
    push(delivery, receiver);
}

/* Tells the tracker that its target is gone. */
static void
push_broken(const struct delivery *delivery, struct tracker *tracker)
{
    struct receiver *receiver = tracker->receiver;
    struct reply reply = { &delivery->slot->scratch, *receiver->resp };

    (void)atomic_fetch_or(&receiver->tracks, TRACKS_BROKEN);
    if (reply.resp > 2) {
        reply_header(&reply, '>', 2);
        reply_bulk(&reply, slice_lit("tracking-redir-broken"));
        reply_int(&reply, (int64_t)tracker->options.redirect);
        push(delivery, receiver);
    }
}

/* Posts the invalidation, or the answer to it, to another loop. */
static void
post_to(const struct delivery *delivery, enum notice_kind kind, uint64_t from,
        unsigned loop, uint64_t to)
{
    struct redirected redirected = { delivery->place->loop, delivery->all };
    struct slice payload = { (const char *)&redirected, sizeof(redirected) };
    struct notice *notice =
        notice_new(kind, from, delivery->notice->channel, payload);

    notice_list_add(delivery->place->list, notice, loop, to);
    notice_unref(notice);
}

/* Pushes the invalidation to the tracker's client or its target. */
static void
invalidate(const struct delivery *delivery, struct tracker *tracker)
{
    uint64_t target_id = tracker->options.redirect;
    unsigned target_loop = tracker->options.redirect_loop;
    struct receiver *target;
    bool used;

    if (target_id == 0) {
        push_invalidation(delivery, tracker->receiver, false);
    } else if (target_loop != delivery->place->loop) {
        post_to(delivery, NOTICE_REDIRECTED, tracker->receiver->id, target_loop,
                target_id);
    } else {
        target =
            targets_get(&delivery->slot->targets, target_id,
                        delivery->place->find, delivery->place->ctx, &used);
        if (target != NULL) {
            push_invalidation(delivery, target, true);
        } else {
            push_broken(delivery, tracker);
        }
    }
}

static void
send_unless_own(void *ctx, void *follower)
{
    const struct delivery *delivery = ctx;
    struct tracker *tracker = follower;

    if (!tracker->options.noloop ||
        delivery->notice->from != tracker->receiver->id) {
        invalidate(delivery, tracker);
    }
}

static bool
cut_tracker(void *ctx, struct slice name, void *value)
{
    (void)ctx;
    (void)name;
    receiver_cut(((struct tracker *)value)->receiver);
    return true;
}

/* Invalidates for each tracker that exists at the first call. False: the time
 * is up; call it again. */
static bool
send_to_all(struct delivery *delivery, uint64_t until_ns)
{
    enum { AT_ONCE = 32 };
    struct slot *slot = delivery->slot;
    struct slice id;

    delivery->all = true;
    if (!roll_begin(&slot->roll, &slot->trackers)) {
        (void)map_each(&slot->trackers, cut_tracker, NULL);
        roll_end(&slot->roll);
    }
    for (unsigned done = 1; roll_next(&slot->roll, &id); done++) {
        struct tracker *tracker = map_find(&slot->trackers, id);

        if (tracker != NULL) {
            invalidate(delivery, tracker);
        }
        if (done % AT_ONCE == 0 && clock_mono_ns() >= until_ns) {
            return false;
        }
    }
    return true;
}

/* Pushes an invalidation to a target of this loop, for a tracker of another. */
static void
deliver_redirected(struct delivery *delivery, uint64_t to)
{
    struct redirected redirected;
    struct receiver *target;
    bool used;

    CHECK(delivery->notice->payload.len == sizeof(redirected));
    memcpy(&redirected, delivery->notice->payload.data, sizeof(redirected));
    delivery->all = redirected.all;
    target = targets_get(&delivery->slot->targets, to, delivery->place->find,
                         delivery->place->ctx, &used);
    if (target != NULL) {
        push_invalidation(delivery, target, true);
    } else if (used) {
        post_to(delivery, NOTICE_REDIRECT_BROKEN, to, redirected.loop,
                delivery->notice->from);
    }
}

bool
tracking_deliver(struct tracking *tracking, const struct tracking_place *place,
                 const struct notice *notice, uint64_t to, uint64_t until_ns)
{
    struct slot *slot = &tracking->slots[place->loop];
    struct delivery delivery = { slot, place, notice, false };
    struct tracker *tracker = map_find(&slot->trackers, name_of_id(&to));

    if (notice->kind == NOTICE_INVALIDATE_ALL) {
        return send_to_all(&delivery, until_ns);
    }
    if (notice->kind == NOTICE_REDIRECTED) {
        deliver_redirected(&delivery, to);
    } else if (notice->kind == NOTICE_REDIRECT_BROKEN) {
        if (tracker != NULL && tracker->options.redirect == notice->from) {
            push_broken(&delivery, tracker);
        }
    } else if (to == 0) {
        return prefixes_each(&slot->prefixes, notice->channel, send_unless_own,
                             &delivery, until_ns);
    } else if (tracker != NULL && !tracker->options.bcast) {
        send_unless_own(&delivery, tracker);
    }
    return true;
}

/* ---- losses -------------------------------------------------------------- */

void
tracking_cut(struct tracking *tracking, const struct tracking_place *place)
{
    struct slot *slot = &tracking->slots[place->loop];

    roll_end(&slot->roll);
    slot->prefixes.walk = (struct prefixes_walk){ 0 };
    (void)map_each(&slot->trackers, cut_tracker, NULL);
    targets_cut(&slot->targets, place->find, place->ctx);
}

/* ---- figures, housekeeping ----------------------------------------------- */

struct tracking_sums
tracking_sum(struct tracking *tracking)
{
    struct readership_sums read = readership_sum(tracking->readership);
    struct tracking_sums sums = { .keys = read.keys, .items = read.items };

    for (unsigned i = 0; i < tracking->loops; i++) {
        sums.prefixes += prefixes_count_new(tracking->all[i], tracking->all, i);
    }
    return sums;
}

bool
tracking_sweep(struct tracking *tracking)
{
    return readership_sweep(tracking->readership, SWEEP_BUCKETS);
}
