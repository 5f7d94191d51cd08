/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What others may want to hear of what a command does: events of keys for
 * pub/sub, invalidations for clients that cache, lines for MONITOR. Handlers
 * say what they changed (observe_change), dispatch says what was read and run.
 * While nobody looks, all of it is one test of service->observed.
 */
#pragma once

#include "engine/request.h"

/* What service->observed is made of: two flags, and two numbers of clients, in
 * one word so that they come and go without a lock. */
#define OBSERVED_EVENTS   ((uint64_t)1 << 0) /* notify-keyspace-events */
#define OBSERVED_PAUSE    ((uint64_t)1 << 1) /* commands go one by one then */
#define OBSERVED_TRACKING ((uint64_t)0xffffff << 8)
#define OBSERVED_MONITOR  ((uint64_t)0xffffff << 32) /* likewise */

static inline uint64_t
observed_by(const struct service *service)
{
    return atomic_load_explicit(&service->observed, memory_order_relaxed);
}

static inline bool
observe_is_on(const struct request *req)
{
    return __builtin_expect(observed_by(req->service) != 0, 0) &&
           !req->worker->alone;
}

/* One of the flags. Any thread. */
void observe_flag(struct service *service, uint64_t flag, bool on);

/* A client begins or ends to track, or to monitor. Any thread. */
void observe_count(struct service *service, uint64_t which, bool comes);

/* A handler has changed a key, made it or removed it: who caches it is told,
 * and who wants events of this class (conf.h) hears "event" of it. NULL: no
 * event. Once for each key, in the order of the changes. Without dirty, too:
 * in valkey-bloom's eyes to open a filter for writing is to change it. */
void observe_change_told(struct request *req, const struct key *key,
                         enum conf_event event_class, const char *event);
static inline void
observe_change(struct request *req, const struct key *key,
               enum conf_event event_class, const char *event)
{
    if (observe_is_on(req)) {
        observe_change_told(req, key, event_class, event);
    }
}

/* An event alone: nothing changed for who caches the key. */
void observe_event(struct request *req, const struct key *key,
                   enum conf_event event_class, const char *event);

/* A key's time was over, and it is removed: under its stripe. */
void observe_expired(struct worker *worker, const struct key *key);

/* The same, or removed for want of memory, outside of any command: it is
 * closed at once. */
void observe_removed_alone(struct worker *worker, const struct key *key,
                           enum conf_event event_class, const char *event);

/* A database, or all of them, were emptied or exchanged. */
void observe_flush(struct request *req);

/* All data was exchanged outside of any command: it is closed at once. Under
 * the raised gate, by the loop of this worker. */
void observe_flush_alone(struct worker *worker);

/* A command that reads keys has run, and its client may cache what it read.
 * Under the locks. */
void observe_read_told(struct request *req);
static inline void
observe_read(struct request *req)
{
    if (__builtin_expect(req->session->receiver.tracker != NULL, 0)) {
        observe_read_told(req);
    }
}

/* A command of a client ends: CLIENT CACHING was for the one before. */
void observe_command_ends(struct request *req);

/* Shows a command that ran to MONITOR. */
void observe_ran_told(struct request *req);
static inline void
observe_ran(struct request *req)
{
    if ((observed_by(req->service) & OBSERVED_MONITOR) != 0) {
        observe_ran_told(req);
    }
}

/* Hands over what was gathered, under the locks of what changed; and then, with
 * no lock in hand, wakes who is to read it. Nothing to do most of the time. */
void observe_close_told(struct worker *worker);
static inline void
observe_close(struct worker *worker)
{
    if (__builtin_expect(worker->notices.count > 0 || worker->notices.lost,
                         0)) {
        observe_close_told(worker);
    }
}
void observe_wake_told(struct worker *worker);
static inline void
observe_wake(struct worker *worker)
{
    if (__builtin_expect(worker->notices.to_wake != 0, 0) &&
        !worker->holds_gate) {
        observe_wake_told(worker);
    }
}

/* What each loop does with its inbox. ctx: its worker. */
extern const struct inbox_reader observe_reader;

/* The end of a client, or RESET: it hears nothing any more. */
void observe_leave(struct worker *worker, struct session *session);
