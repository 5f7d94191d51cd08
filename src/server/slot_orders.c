/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/slot_orders.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "keyspace/key_hash.h"
#include "server/pull.h"
#include "server/replication_state.h"
#include "server/server_state.h"
#include "server/sidecar_mode.h"
#include "server/slot_drop.h"

#include <inttypes.h>
#include <stdio.h>

enum { ORDERS_MAX = 64 };

struct order {
    struct order *next;
    enum { ORDER_PULL, ORDER_LET_GO, ORDER_FINISH } what;
    struct slot_set slots;
    char history[HISTORY_ID_CHARS + 1]; /* of FINISH */
    uint64_t position;
    char host[ROLE_HOST_MAX];
    unsigned port;
};

struct slot_orders {
    struct replication *r;
    pthread_mutex_t mutex;       /* guards what follows */
    struct order *first, **last; /* an order stays until it is carried out */
    size_t count;                /* of orders */
    struct pull_progress pulls[PULLS_MAX];
    size_t pull_count;
    struct slot_set dropped;
    uint64_t deleted;
    uint64_t done, failed;     /* pulls that were ordered here */
    uint64_t finish_ns;        /* when the last FINISH came */
    uint64_t cutover_us;       /* from there to the end of its pull */
    char why[STATUS_TEXT_MAX]; /* the last one failed */
};

/* ---- any thread ---------------------------------------------------------- */

/* Adds an order. False: there are too many. */
static bool
add(struct slot_orders *orders, const struct order *order)
{
    struct order *copy = mem_try_alloc(sizeof(*copy));
    bool added = false;

    if (copy == NULL) {
        return false;
    }
    *copy = *order;
    copy->next = NULL;
    pthread_mutex_lock(&orders->mutex);
    if (orders->count < ORDERS_MAX) {
        *orders->last = copy;
        orders->last = &copy->next;
        orders->count++;
        added = true;
    }
    pthread_mutex_unlock(&orders->mutex);
    if (!added) {
        mem_free(copy);
    } else {
        (void)uv_async_send(&orders->r->poke);
    }
    return added;
}

/* Returns whether a pull or an order to pull has one of the slots, and how many
 * there are that copy ahead. */
static bool
is_pulled(struct slot_orders *orders, const struct slot_set *slots,
          size_t *ret_ahead)
{
    bool found = false;
    size_t ahead = 0;

    pthread_mutex_lock(&orders->mutex);
    for (size_t i = 0; i < orders->pull_count; i++) {
        found = found || slot_set_intersects(&orders->pulls[i].slots, slots);
        ahead += orders->pulls[i].ahead;
    }
    for (const struct order *order = orders->first; order != NULL;
         order = order->next) {
        if (order->what == ORDER_PULL) {
            found = found || slot_set_intersects(&order->slots, slots);
            ahead++;
        }
    }
    pthread_mutex_unlock(&orders->mutex);
    *ret_ahead = ahead;
    return found;
}

static struct slot_orders *
orders_of(void *ctx)
{
    const struct server *server = ctx;

    return server->replication->orders;
}

static bool
prepare(void *ctx, const struct slot_set *slots, struct slice host,
        unsigned port, char *ret_reason, size_t size)
{
    struct slot_orders *orders = orders_of(ctx);
    struct order order = { .what = ORDER_PULL, .slots = *slots, .port = port };
    size_t ahead;

    if (orders->r->server->service.role.replica) {
        (void)snprintf(ret_reason, size,
                       "this server is a replica: ask its primary");
        return false;
    }
    if (is_pulled(orders, slots, &ahead)) {
        (void)snprintf(ret_reason, size,
                       "some of these slots are being taken over already");
        return false;
    }
    if (ahead >= PULLS_AHEAD_MAX) {
        (void)snprintf(ret_reason, size, PULLS_AHEAD_TOO_MANY);
        return false;
    }
    CHECK(host.len < sizeof(order.host));
    memcpy(order.host, host.data, host.len);
    if (!add(orders, &order)) {
        (void)snprintf(ret_reason, size, "too many orders wait, try again");
        return false;
    }
    return true;
}

static bool
abandon(void *ctx, const struct slot_set *slots, char *ret_reason, size_t size)
{
    struct slot_orders *orders = orders_of(ctx);
    struct order order = { .what = ORDER_LET_GO, .slots = *slots };

    if (orders->r->server->service.role.replica) {
        (void)snprintf(ret_reason, size,
                       "this server is a replica: ask its primary");
        return false;
    }
    if (!add(orders, &order)) {
        (void)snprintf(ret_reason, size, "too many orders wait, try again");
        return false;
    }
    return true;
}

static bool
finish(void *ctx, const struct slot_set *slots, struct slice history,
       uint64_t position, char *ret_reason, size_t size)
{
    struct slot_orders *orders = orders_of(ctx);
    struct order order = { .what = ORDER_FINISH,
                           .slots = *slots,
                           .position = position };
    size_t ahead;

    if (!is_pulled(orders, slots, &ahead)) {
        (void)snprintf(ret_reason, size,
                       "these slots are not being taken over");
        return false;
    }
    CHECK(history.len == HISTORY_ID_CHARS);
    memcpy(order.history, history.data, history.len);
    if (!add(orders, &order)) {
        (void)snprintf(ret_reason, size, "too many orders wait, try again");
        return false;
    }
    return true;
}

static void
describe_pull(const struct pull_progress *pull, size_t number, struct buf *text)
{
    buf_printf(text, "slot_pull%zu:source=", number);
    buf_append_slice(text, slice_of(pull->host));
    buf_printf(text, ":%u,state=%s,slots=", pull->port,
               pull_state_name(pull->state));
    for (unsigned at = 0, first, last;
         slot_set_next(&pull->slots, &at, &first, &last);) {
        buf_printf(text, first == last ? "%u " : "%u-%u ", first, last);
    }
    text->len--;
    buf_printf(text,
               ",keys=%" PRIu64 ",bytes=%" PRIu64
               ",attempts=%u,claimed=%s,position=%" PRIu64 ",lag_bytes=%" PRIu64
               ",lag_ms=%" PRIu64 ",reason=\"",
               pull->keys, pull->bytes, pull->attempts,
               pull->claimed ? "yes" : "no", pull->position, pull->lag_bytes,
               pull->lag_ms);
    buf_append_slice(text, slice_of(pull->reason));
    buf_append_slice(text, slice_lit("\"\r\n"));
}

static void
describe(void *ctx, struct buf *text)
{
    struct slot_orders *orders = orders_of(ctx);
    const struct cluster *cluster = orders->r->server->service.cluster;

    if (!key_hash_has_slots()) {
        return;
    }
    pthread_mutex_lock(&orders->mutex);
    buf_printf(text, "slot_pulls:%zu\r\n", orders->pull_count);
    for (size_t i = 0; i < orders->pull_count; i++) {
        describe_pull(&orders->pulls[i], i, text);
    }
    buf_printf(text,
               "slot_pulls_done:%" PRIu64 "\r\nslot_pulls_failed:%" PRIu64
               "\r\nslot_last_cutover_us:%" PRIu64 "\r\n",
               orders->done, orders->failed, orders->cutover_us);
    buf_append_slice(text, slice_lit("slot_last_failure:"));
    buf_append_slice(text, slice_of(orders->why));
    buf_append_slice(text, slice_lit("\r\n"));
    if (cluster != NULL && cluster->view != NULL) {
        buf_printf(text, "slots_epoch_fell:%u\r\n", cluster->view->fallen);
    }
    buf_printf(text,
               "slots_being_deleted:%u\r\nslot_keys_deleted:%" PRIu64 "\r\n",
               slot_set_count(&orders->dropped), orders->deleted);
    pthread_mutex_unlock(&orders->mutex);
}

static void
show_transfers(void *ctx, struct slot_transfers *ret_transfers)
{
    struct slot_orders *orders = orders_of(ctx);
    const struct pull_progress *pull = &orders->pulls[0];

    *ret_transfers = (struct slot_transfers){ .state = "" };
    pthread_mutex_lock(&orders->mutex);
    ret_transfers->count = orders->pull_count;
    if (orders->pull_count > 0) {
        ret_transfers->state = pull_state_name(pull->state);
        (void)snprintf(ret_transfers->source, sizeof(ret_transfers->source),
                       "%s:%u", pull->host, pull->port);
        ret_transfers->slots = slot_set_count(&pull->slots);
        ret_transfers->keys = pull->keys;
        ret_transfers->bytes = pull->bytes;
        ret_transfers->lag_bytes = pull->lag_bytes;
        ret_transfers->age_ms = pull->age_ms;
    }
    pthread_mutex_unlock(&orders->mutex);
}

/* ---- loop 0 -------------------------------------------------------------- */

static void
note_failure(struct slot_orders *orders, const char *reason)
{
    pthread_mutex_lock(&orders->mutex);
    orders->failed++;
    (void)snprintf(orders->why, sizeof(orders->why), "%s", reason);
    pthread_mutex_unlock(&orders->mutex);
}

static void
on_ended(void *ctx, uint64_t id, bool good, const char *reason)
{
    struct slot_orders *orders = ctx;

    (void)id;
    if (!good) {
        note_failure(orders, reason);
    } else {
        pthread_mutex_lock(&orders->mutex);
        orders->done++;
        orders->cutover_us = (clock_mono_ns() - orders->finish_ns) / 1000;
        pthread_mutex_unlock(&orders->mutex);
    }
}

static void
pull(struct slot_orders *orders, const struct order *order)
{
    const struct pull_hooks hooks = { .ended = on_ended, .ctx = orders };
    const struct pull_source source = { &order->slots, order->host,
                                        order->port };
    char reason[STATUS_TEXT_MAX];

    if (!sidecar_mode_may_copy(orders->r->server, &order->slots, reason,
                               sizeof(reason)) ||
        pull_ahead(orders->r->server, &source, &hooks, reason,
                   sizeof(reason)) == 0) {
        note_failure(orders, reason);
        log_warn("server.slots", "did not begin to take slots over",
                 "source=%s:%u slots=%u reason=\"%s\"", order->host,
                 order->port, slot_set_count(&order->slots), reason);
    }
}

/* A copy of which any slot is let go ends as a whole, and the keys of all its
 * slots go. What the node has gained meanwhile stays. */
static void
let_go(const struct slot_orders *orders, const struct order *order)
{
    struct server *server = orders->r->server;
    struct pull_progress *list = mem_zalloc(PULLS_MAX * sizeof(*list));
    struct slot_set slots = order->slots;
    struct slot_set left;
    size_t count = pull_list(server, list, PULLS_MAX);

    for (size_t i = 0; i < count; i++) {
        if (slot_set_intersects(&list[i].slots, &order->slots) &&
            pull_abandon(server, list[i].id, &left)) {
            slot_set_unite(&slots, &left);
        }
    }
    mem_free(list);
    sidecar_mode_keep_own(server, &slots);
    pull_slots(server, &left);
    slot_set_subtract(&slots, &left);
    slot_drop_begin(server, &slots);
}

/* Ends each pull that has any of these slots at a position: for all of its
 * slots, also those that the order does not name. */
static void
finish_pulls(struct slot_orders *orders, const struct order *order)
{
    struct server *server = orders->r->server;
    struct pull_progress *list = mem_zalloc(PULLS_MAX * sizeof(*list));
    size_t count = pull_list(server, list, PULLS_MAX);

    orders->finish_ns = clock_mono_ns();
    for (size_t i = 0; i < count; i++) {
        if (!list[i].claimed &&
            slot_set_intersects(&list[i].slots, &order->slots)) {
            (void)pull_until(server, list[i].id, order->history,
                             order->position);
        }
    }
    mem_free(list);
}

static void
carry_out(struct slot_orders *orders, const struct order *order)
{
    switch (order->what) {
    case ORDER_PULL:
        pull(orders, order);
        break;
    case ORDER_LET_GO:
        let_go(orders, order);
        break;
    case ORDER_FINISH:
        finish_pulls(orders, order);
        break;
    }
}

static struct order *
first_of(struct slot_orders *orders)
{
    struct order *order;

    pthread_mutex_lock(&orders->mutex);
    order = orders->first;
    pthread_mutex_unlock(&orders->mutex);
    return order;
}

/* The mutex is locked. */
static void
publish(struct slot_orders *orders)
{
    const struct server *server = orders->r->server;

    orders->pull_count = pull_list(server, orders->pulls, PULLS_MAX);
    CHECK(orders->pull_count <= PULLS_MAX);
    slot_drop_describe(server, &orders->dropped, &orders->deleted);
}

static void
remove_first(struct slot_orders *orders)
{
    struct order *order = orders->first;

    orders->first = order->next;
    orders->count--;
    if (orders->first == NULL) {
        orders->last = &orders->first;
    }
    mem_free(order);
}

/* An order and the pull that it begins or ends change places in one step, so
 * that another loop sees always one of them. */
void
slot_orders_look(struct slot_orders *orders)
{
    const struct order *order;

    while ((order = first_of(orders)) != NULL) {
        carry_out(orders, order);
        pthread_mutex_lock(&orders->mutex);
        publish(orders);
        remove_first(orders);
        pthread_mutex_unlock(&orders->mutex);
    }
}

void
slot_orders_publish(struct slot_orders *orders)
{
    if (!key_hash_has_slots()) {
        return;
    }
    pthread_mutex_lock(&orders->mutex);
    publish(orders);
    pthread_mutex_unlock(&orders->mutex);
}

struct slot_orders *
slot_orders_new(struct replication *r)
{
    struct slot_orders *orders = mem_zalloc(sizeof(*orders));

    orders->r = r;
    orders->last = &orders->first;
    CHECK(pthread_mutex_init(&orders->mutex, NULL) == 0);
    r->server->service.slots =
        (struct slot_calls){ .prepare = prepare,
                             .abandon = abandon,
                             .finish = finish,
                             .describe = describe,
                             .transfers = show_transfers };
    return orders;
}

void
slot_orders_free(struct slot_orders *orders)
{
    if (orders == NULL) {
        return;
    }
    while (orders->first != NULL) {
        remove_first(orders);
    }
    (void)pthread_mutex_destroy(&orders->mutex);
    mem_free(orders);
}
