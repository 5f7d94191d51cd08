/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects commands with pub/sub, tracking and MONITOR.
 */
#include "engine/observe.h"

#include "access/redact.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/client.h"
#include "engine/txn.h"
#include "journal/journal.h"
#include "net/conn.h"
#include "push/monitor.h"
#include "push/pubsub_deliver.h"
#include "push/pubsub_publish.h"
#include "push/tracking.h"

#include <stdio.h>

void
observe_flag(struct service *service, uint64_t flag, bool on)
{
    if (on) {
        (void)atomic_fetch_or(&service->observed, flag);
    } else {
        (void)atomic_fetch_and(&service->observed, ~flag);
    }
}

void
observe_count(struct service *service, uint64_t which, bool comes)
{
    /* One client counts as the lowest bit of the mask. */
    uint64_t one = which & (~which + 1);

    (void)atomic_fetch_add(&service->observed, comes ? one : 0 - one);
}

/* ---- what happened to keys ----------------------------------------------- */

static uint64_t
client_id(const struct worker *worker)
{
    return worker->session != NULL ? worker->session->id : 0;
}

/* Publishes one of the two messages of an event to `__prefix@db__:<tail>`. */
static void
publish_event(struct worker *worker, const char *prefix, uint32_t db,
              struct slice tail, struct slice payload)
{
    struct buf channel = { 0 };

    buf_printf(&channel, "__%s@%u__:", prefix, db);
    buf_append_slice(&channel, tail);
    if (channel.failed) {
        for (unsigned i = 0; i < worker->service->threads; i++) {
            notice_list_add(&worker->notices, NULL, i, 0);
        }
    } else {
        pubsub_publish_event(worker->service->pubsub, client_id(worker),
                             buf_slice(&channel), payload, &worker->notices);
    }
    buf_free(&channel);
}

static void
tell_event(struct worker *worker, const struct key *key,
           enum conf_event event_class, const char *event)
{
    uint32_t wanted = worker->service->conf->notify_keyspace_events;

    if (event == NULL || (wanted & (uint32_t)event_class) == 0) {
        return;
    }
    if ((wanted & CONF_EVENT_KEYSPACE) != 0) {
        publish_event(worker, "keyspace", key->db, key->name, slice_of(event));
    }
    if ((wanted & CONF_EVENT_KEYEVENT) != 0) {
        publish_event(worker, "keyevent", key->db, slice_of(event), key->name);
    }
}

static void
tell_feed(struct worker *worker, const struct key *key,
          const struct feed_change *change)
{
    struct pubsub *pubsub = worker->service->pubsub;
    const struct feed_key feed_key = { key->db, key->name, key->hash };

    if (change->kind != FEED_NOTHING && pubsub_feeds(pubsub, key->hash)) {
        pubsub_feed(pubsub, &feed_key, change, &worker->notices);
    }
}

/* A change, as it is reported to clients that cache the key and to subscribers
 * of events. */
struct told {
    uint64_t from;
    enum conf_event event_class;
    const char *event;
};

static void
tell_change(struct worker *worker, const struct key *key, enum feed_kind feed,
            const struct told *told)
{
    uint64_t observed = observed_by(worker->service);

    if ((observed & OBSERVED_FILTERS) != 0) {
        tell_feed(worker, key, &(struct feed_change){ .kind = feed });
    }
    if ((observed & OBSERVED_TRACKING) != 0) {
        tracking_invalidate(worker->service->tracking, told->from, key->name,
                            key->hash, &worker->notices);
    }
    if ((observed & OBSERVED_EVENTS) != 0) {
        tell_event(worker, key, told->event_class, told->event);
    }
}

void
observe_change_slow(struct request *req, const struct key *key,
                    enum feed_kind feed, enum conf_event event_class,
                    const char *event)
{
    const struct told told = { req->session->id, event_class, event };

    tell_change(req->worker, key, feed, &told);
}

bool
observe_feeds_slow(const struct request *req, const struct key *key)
{
    return !req->worker->alone && pubsub_feeds(req->service->pubsub, key->hash);
}

void
observe_feed(struct request *req, const struct key *key,
             const struct feed_change *change)
{
    if (observe_feeds(req, key)) {
        tell_feed(req->worker, key, change);
    }
}

void
observe_event(struct request *req, const struct key *key,
              enum conf_event event_class, const char *event)
{
    if ((observed_by(req->service) & OBSERVED_EVENTS) != 0 &&
        !req->worker->alone) {
        tell_event(req->worker, key, event_class, event);
    }
}

void
observe_expired(struct worker *worker, const struct key *key)
{
    static const struct told told = { 0, CONF_EVENT_EXPIRED, "expired" };

    if (observed_by(worker->service) != 0 && !worker->alone) {
        tell_change(worker, key, FEED_GONE, &told);
    }
}

/* The notices wait for the journal's present end, which includes the effect of
 * the removal. */
void
observe_removed_alone(struct worker *worker, const struct key *key,
                      enum conf_event event_class, const char *event)
{
    const struct journal *journal = worker->service->journal;
    const struct told told = { 0, event_class, event };

    if (observed_by(worker->service) == 0) {
        return;
    }
    tell_change(worker, key, FEED_GONE, &told);
    notice_list_close(&worker->notices, worker->service->inboxes,
                      journal != NULL ? journal_position(journal) : 0);
}

static void
tell_flush(struct worker *worker, uint32_t db, enum feed_kind feed)
{
    const struct service *service = worker->service;
    uint64_t observed = observed_by(service);

    if ((observed & OBSERVED_FILTERS) != 0) {
        pubsub_feed_all(service->pubsub, db, feed, &worker->notices);
    }
    if ((observed & OBSERVED_TRACKING) != 0) {
        tracking_invalidate_all(service->tracking, &worker->notices);
    }
}

void
observe_flush(struct request *req, uint32_t db, enum feed_kind feed)
{
    if (observe_any(req)) {
        tell_flush(req->worker, db, feed);
    }
}

void
observe_flush_alone(struct worker *worker)
{
    struct service *service = worker->service;
    const struct journal *journal = service->journal;

    tell_flush(worker, FEED_ALL_DBS, FEED_CHANGED);
    notice_list_close(&worker->notices, service->inboxes,
                      journal != NULL ? journal_position(journal) : 0);
}

/* ---- what was read and run ----------------------------------------------- */

static void
remember_key(void *ctx, size_t position)
{
    const struct request *req = ctx;
    struct slice name = req->argv[position];

    tracking_remember(req->service->tracking, &req->session->receiver, name,
                      request_key(req, position).hash, &req->worker->notices);
}

void
observe_read_slow(struct request *req)
{
    if ((req->command->flags & CMD_READONLY) != 0 &&
        req->command->lock == LOCK_KEYS &&
        tracking_wants(&req->session->receiver)) {
        command_each_key(req->command, req->argc, remember_key, req);
    }
}

/* As in Redis, CLIENT CACHING is valid for the next command other than CLIENT;
 * in MULTI it is valid until EXEC. */
void
observe_command_ends(struct request *req)
{
    struct receiver *receiver = &req->session->receiver;

    if (receiver->tracker != NULL && !txn_is_open(req->session) &&
        (req->command == NULL ||
         strncmp(req->command->name, "client|", strlen("client|")) != 0)) {
        tracking_set_caching(receiver, CACHING_DEFAULT);
    }
}

/* Returns the words of a command without its passwords, in an array that the
 * caller frees, or NULL without memory. */
static struct slice *
redacted(const struct request *req)
{
    struct slice *words = mem_try_alloc(req->argc * sizeof(*words));

    for (size_t i = 0; words != NULL && i < req->argc; i++) {
        words[i] = redact_word(req->command, req->argv, req->argc, i);
    }
    return words;
}

/* Writes the peer's address as MONITOR shows it: a socket file has no port. */
static void
describe_peer(const struct conn *conn, char *ret_text)
{
    static const char prefix[] = "unix:";
    char *colon;

    if (conn == NULL) {
        ret_text[0] = '\0';
    } else if (!conn->is_unix) {
        conn_peer_address(conn, ret_text);
    } else {
        memcpy(ret_text, prefix, sizeof(prefix));
        conn_peer_address(conn, ret_text + sizeof(prefix) - 1);
        colon = strrchr(ret_text, ':');
        *colon = '\0';
    }
}

/* Writes where a command comes from. A command of the log comes from the
 * primary. */
static void
describe_source(const struct request *req, char *ret_text, size_t size)
{
    const struct role *role = &req->service->role;

    if (!req->obey) {
        describe_peer(req->session->conn, ret_text);
    } else if (strchr(role->host, ':') != NULL) {
        (void)snprintf(ret_text, size, "[%s]:%u", role->host, role->port);
    } else {
        (void)snprintf(ret_text, size, "%s:%u", role->host, role->port);
    }
}

void
observe_ran_slow(struct request *req)
{
    char address[CONN_ADDRESS_MAX + ROLE_HOST_MAX];
    struct monitor_line line = { .wall_us = clock_wall_us(),
                                 .db = req->session->db,
                                 .address = address,
                                 .argv = req->argv,
                                 .argc = req->argc };
    struct slice *words = NULL;

    if (req->worker->alone ||
        (req->command->flags & (CMD_SKIP_MONITOR | CMD_ADMIN)) != 0) {
        return;
    }
    if (redact_wants(req->command)) {
        words = redacted(req);
        line.argv = words;
        line.argc = words != NULL ? req->argc : 0;
    }
    describe_source(req, address, sizeof(address));
    monitor_feed(req->service->monitor, &line, &req->worker->notices);
    mem_free(words);
}

/* ---- handing over -------------------------------------------------------- */

void
observe_close_slow(struct worker *worker)
{
    notice_list_close(&worker->notices, worker->service->inboxes, worker->hold);
}

void
observe_wake_slow(struct worker *worker)
{
    notice_list_wake(&worker->notices, worker->service->inboxes);
}

/* Finds a client of this loop by its id. */
static struct receiver *
find_receiver(void *ctx, uint64_t id)
{
    const struct worker *worker = ctx;
    struct conn *conn = conn_find(worker->loop, id);

    return conn != NULL ? &client_of(conn)->session.receiver : NULL;
}

static struct tracking_place
tracking_place(struct worker *worker)
{
    return (struct tracking_place){ .loop = worker->index,
                                    .list = &worker->notices,
                                    .find = find_receiver,
                                    .ctx = worker };
}

/* Delivers an invalidation, and hands redirected ones over to other loops. */
static bool
deliver_invalidation(struct worker *worker, const struct notice *notice,
                     uint64_t to, uint64_t until_ns)
{
    struct tracking_place place = tracking_place(worker);
    bool done = tracking_deliver(worker->service->tracking, &place, notice, to,
                                 until_ns);

    if (worker->notices.count > 0 || worker->notices.lost != 0) {
        notice_list_close(&worker->notices, worker->service->inboxes,
                          notice->hold_until);
        observe_wake(worker);
    }
    return done;
}

static uint64_t
send_gathered(void *ctx, uint64_t until_ns)
{
    struct worker *worker = ctx;

    return pubsub_feed_send(worker->service->pubsub, worker->loop, until_ns);
}

static void
deliver_of_filters(struct worker *worker, const struct notice *notice,
                   uint64_t to)
{
    const struct service *service = worker->service;
    struct receiver *receiver;

    if (notice->kind != NOTICE_FILTER_ANSWER) {
        pubsub_feed_gather(service->pubsub, worker->index, notice,
                           atomic_load_explicit(&service->feed_gather_ns,
                                                memory_order_relaxed));
        return;
    }
    receiver = find_receiver(worker, to);
    if (receiver != NULL) {
        pubsub_feed_reply(service->pubsub, receiver, notice);
    }
}

static bool
deliver(void *ctx, const struct notice *notice, uint64_t to, uint64_t until_ns)
{
    struct worker *worker = ctx;
    const struct service *service = worker->service;

    switch (notice->kind) {
    case NOTICE_MESSAGE:
    case NOTICE_SHARD_MESSAGE:
        return pubsub_deliver(service->pubsub, worker->index, notice, to,
                              until_ns);
    case NOTICE_INVALIDATE:
    case NOTICE_INVALIDATE_ALL:
    case NOTICE_REDIRECTED:
    case NOTICE_REDIRECT_BROKEN:
        return deliver_invalidation(worker, notice, to, until_ns);
    case NOTICE_MONITOR:
        monitor_deliver(service->monitor, worker->index, notice);
        break;
    case NOTICE_FILTER:
    case NOTICE_FILTERS:
    case NOTICE_FILTER_ANSWER:
        deliver_of_filters(worker, notice, to);
        break;
    }
    return true;
}

static void
lost(void *ctx)
{
    struct worker *worker = ctx;
    const struct service *service = worker->service;
    struct tracking_place place = tracking_place(worker);

    pubsub_deliver_lost(service->pubsub, worker->index);
    tracking_cut(service->tracking, &place);
    monitor_cut(service->monitor, worker->index);
}

const struct inbox_reader observe_reader = { .deliver = deliver,
                                             .send = send_gathered,
                                             .lost = lost };

void
observe_leave(struct worker *worker, struct session *session)
{
    struct service *service = worker->service;
    struct receiver *receiver = &session->receiver;

    if (receiver->subscriptions != NULL) {
        pubsub_leave(service->pubsub, receiver);
    }
    if (receiver->tracker != NULL) {
        observe_count(service, OBSERVED_TRACKING, false);
    }
    if (receiver->reader != NULL) {
        tracking_leave(service->tracking, receiver);
    }
    if (receiver->is_target) {
        tracking_forget_target(service->tracking, receiver);
    }
    if (receiver->monitors) {
        monitor_leave(service->monitor, receiver);
        observe_count(service, OBSERVED_MONITOR, false);
    }
    session_hears(session);
}
