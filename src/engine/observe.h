/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Produces the notices that commands cause: events of keys for pub/sub,
 * invalidations for clients that cache, lines for MONITOR. Handlers report what
 * they changed (observe_change), dispatch reports what was read and run. While
 * no client wants notices, each report is one test of service->observed; the
 * functions named _slow are the rest.
 */
#pragma once

#include "engine/request.h"
#include "push/pubsub_feed.h"

/* service->observed: four flags and two counts of clients in one word, so that
 * they change without a lock. */
#define OBSERVED_EVENTS ((uint64_t)1 << 0) /* notify-keyspace-events */
#define OBSERVED_PAUSE  ((uint64_t)1 << 1) /* commands go one by one then */
/* Not an observer: sidecar mode checks the slots of each command. */
#define OBSERVED_ROUTES ((uint64_t)1 << 2)
/* Some filter has subscribers (push/pubsub_feed.h). */
#define OBSERVED_FILTERS  ((uint64_t)1 << 3)
#define OBSERVED_TRACKING ((uint64_t)0xffffff << 8)
#define OBSERVED_MONITOR  ((uint64_t)0xffffff << 32) /* a count, too */

static inline uint64_t
observed_by(const struct service *service)
{
    return atomic_load_explicit(&service->observed, memory_order_relaxed) &
           ~OBSERVED_ROUTES;
}

/* Returns whether anybody observes at all. */
static inline bool
observe_any(const struct request *req)
{
    return __builtin_expect(observed_by(req->service) != 0, 0) &&
           !req->worker->alone;
}

/* Returns whether anybody observes besides the subscribers of filters, who are
 * told only about their keys. */
static inline bool
observe_is_on(const struct request *req)
{
    return __builtin_expect(
               (observed_by(req->service) & ~OBSERVED_FILTERS) != 0, 0) &&
           !req->worker->alone;
}

/* Sets or clears one of the flags. Any thread. */
void observe_flag(struct service *service, uint64_t flag, bool on);

/* Counts a client that begins or ends to track, or to monitor. Any thread. */
void observe_count(struct service *service, uint64_t which, bool comes);

/* Reports that a handler changed, made or removed a key: clients that cache it
 * get an invalidation, and subscribers of this class of events (conf.h) get
 * `event`, unless it is NULL. Subscribers of the filter are told what the
 * change is, FEED_GONE or FEED_CHANGED; it is FEED_NOTHING if the bits stay, or
 * if observe_feed has told them. Call it once for each key, in the order of the
 * changes, even if nothing is dirty: for valkey-bloom, opening a filter for
 * writing changes it. */
void observe_change_slow(struct request *req, const struct key *key,
                         enum feed_kind feed, enum conf_event event_class,
                         const char *event);
static inline void
observe_change(struct request *req, const struct key *key, enum feed_kind feed,
               enum conf_event event_class, const char *event)
{
    if (observe_any(req)) {
        observe_change_slow(req, key, feed, event_class, event);
    }
}

/* Returns whether the key may have subscribers, so that the caller must prepare
 * a struct feed_change for them. May be true for a key without subscribers. */
bool observe_feeds_slow(const struct request *req, const struct key *key);
static inline bool
observe_feeds(const struct request *req, const struct key *key)
{
    return __builtin_expect((observed_by(req->service) & OBSERVED_FILTERS) != 0,
                            0) &&
           observe_feeds_slow(req, key);
}

/* Tells the subscribers of a filter of a change, and nobody else. */
void observe_feed(struct request *req, const struct key *key,
                  const struct feed_change *change);

/* Publishes an event without an invalidation. */
void observe_event(struct request *req, const struct key *key,
                   enum conf_event event_class, const char *event);

/* Reports the removal of an expired key. Call it under the lock of the key's
 * stripe. */
void observe_expired(struct worker *worker, const struct key *key);

/* Reports the removal of an expired or evicted key outside any command, and
 * hands the notices over at once. */
void observe_removed_alone(struct worker *worker, const struct key *key,
                           enum conf_event event_class, const char *event);

/* Reports that a database, or all databases (FEED_ALL_DBS), were emptied
 * (FEED_GONE) or exchanged (FEED_CHANGED). */
void observe_flush(struct request *req, uint32_t db, enum feed_kind feed);

/* Reports that all data was exchanged outside any command, and hands the
 * notices over at once. Under the raised gate, by the loop of this worker. */
void observe_flush_alone(struct worker *worker);

/* Remembers the keys that a command has read, if its client caches them. Call
 * it under the locks. */
void observe_read_slow(struct request *req);
static inline void
observe_read(struct request *req)
{
    if (__builtin_expect(req->session->receiver.tracker != NULL, 0)) {
        observe_read_slow(req);
    }
}

/* Ends the effect of CLIENT CACHING, which is for one command only. Call it
 * after each command. */
void observe_command_ends(struct request *req);

/* Shows a command that ran to MONITOR. */
void observe_ran_slow(struct request *req);
static inline void
observe_ran(struct request *req)
{
    if ((observed_by(req->service) & OBSERVED_MONITOR) != 0) {
        observe_ran_slow(req);
    }
}

/* observe_close hands the notices over to the inboxes of their loops, under the
 * locks of what changed, so that notices of one key keep the order of its
 * changes. observe_wake then wakes these loops, with no lock held. */
void observe_close_slow(struct worker *worker);
static inline void
observe_close(struct worker *worker)
{
    if (__builtin_expect(worker->notices.count > 0 || worker->notices.lost,
                         0)) {
        observe_close_slow(worker);
    }
}
void observe_wake_slow(struct worker *worker);
static inline void
observe_wake(struct worker *worker)
{
    if (__builtin_expect(worker->notices.to_wake != 0, 0) &&
        !worker->holds_gate) {
        observe_wake_slow(worker);
    }
}

/* How each loop delivers the notices in its inbox. ctx: its worker. */
extern const struct inbox_reader observe_reader;

/* Removes a client from all lists of receivers, at its end or for RESET. */
void observe_leave(struct worker *worker, struct session *session);
