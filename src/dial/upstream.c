/* SPDX-License-Identifier: BSD-3-Clause */
#include "dial/upstream.h"

#include "base/run_clock.h"
#include "dial/secrets.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "net/link_dial.h"
#include "net/registry.h"
#include "repl/replica.h"
#include "replay/complete.h"
#include "tls/tls_context.h"

#include <stdio.h>

enum {
    UNSENT_MAX = 64 << 10, /* a server that reads no acknowledgements */
    QUEUE_BYTES = 8 << 20  /* of a transfer */
};

/* ---- the link ------------------------------------------------------------ */

static void
on_opened(void *ctx, struct link *link)
{
    struct upstream *up = ctx;

    link_keepalive(link, up->keepalive_s);
    replica_opened(up->replica, up->number, run_clock_ms());
    up->moved(up->ctx);
}

static void
on_bytes(void *ctx, struct link *link, struct slice bytes, size_t *ret_used)
{
    struct upstream *up = ctx;

    (void)link;
    replica_bytes(up->replica, up->number, bytes, ret_used, run_clock_ms());
    up->moved(up->ctx);
}

static void
on_upstream_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct upstream *up = ctx;

    (void)link;
    (void)error;
    up->link = NULL;
    replica_closed(up->replica, up->number, reason, run_clock_ms());
    up->moved(up->ctx);
}

static const struct link_hooks hooks = { .opened = on_opened,
                                         .bytes = on_bytes,
                                         .closed = on_upstream_closed };

void
upstream_dial(void *ctx, uint64_t number, const char *host, unsigned port,
              uint64_t timeout_ms)
{
    struct upstream *up = ctx;
    const struct loop0 *loop0 = up->loop0;

    up->secrets_lacking = 0;
    up->number = number;
    up->id = registry_draw_id(loop0->service->registry);
    up->link =
        link_dial(loop0->loop, host, port, (unsigned)timeout_ms, &hooks, up);
    if (up->uses_tls) {
        link_secure(up->link, tls_new_dial(loop0->service->tls, host));
    }
}

bool
upstream_send(void *ctx, uint64_t number, struct slice bytes)
{
    struct upstream *up = ctx;

    return up->link != NULL && number == up->number &&
           link_unsent(up->link) < UNSENT_MAX && link_send(up->link, bytes);
}

void
upstream_close(void *ctx, uint64_t number)
{
    struct upstream *up = ctx;

    if (up->link != NULL && number == up->number) {
        link_close(up->link);
        up->link = NULL;
    }
}

void
upstream_pause(void *ctx, uint64_t number, bool paused)
{
    struct upstream *up = ctx;

    if (up->link != NULL && number == up->number) {
        link_pause(up->link, paused);
    }
}

void
upstream_kill(struct upstream *up, const char *reason)
{
    if (up->link != NULL) {
        link_close(up->link);
        up->link = NULL;
        replica_closed(up->replica, up->number, reason, run_clock_ms());
    }
}

/* ---- groups and secrets -------------------------------------------------- */

enum replica_applied
upstream_takes(struct upstream *up, const struct wire_piece *group,
               char *ret_reason, size_t reason_size)
{
    if (secrets_are_missing(group->value, ret_reason, reason_size)) {
        return REPLICA_RENEW;
    }
    if (!service_takes_logs(up->loop0->service)) {
        up->put_off = true;
        return REPLICA_LATER;
    }
    return REPLICA_APPLIED;
}

bool
upstream_wants(void *ctx, uint64_t fingerprint)
{
    struct upstream *up = ctx;
    bool wants = secrets_wants(fingerprint);

    up->secrets_lacking += wants;
    return wants;
}

enum replica_learned
upstream_learn(void *ctx, uint64_t fingerprint, const char *digits)
{
    struct upstream *up = ctx;
    enum replica_learned learned =
        secrets_learn(up->loop0->service->persist, fingerprint, digits);

    up->secrets_lacking -= learned == REPLICA_LEARNED;
    return learned;
}

/* ---- the snapshot -------------------------------------------------------- */

struct keyspace_options
upstream_keyspace(const struct upstream *up)
{
    const struct service *service = up->loop0->service;

    return (struct keyspace_options){
        .threads = service->threads,
        .databases = (unsigned)service->conf->databases,
    };
}

bool
upstream_load(struct upstream *up, const struct walk_part *part,
              const struct transfer_copy *copy, char *ret_reason,
              size_t reason_size)
{
    struct service *service = up->loop0->service;
    struct transfer_options options = { .keyspace = upstream_keyspace(up),
                                        .present = service->keyspace,
                                        .env = &service->obey_env,
                                        .completion = &complete_calls,
                                        .part = part,
                                        .copy = *copy,
                                        .queue_bytes = QUEUE_BYTES,
                                        .poke = up->poke,
                                        .ctx = up->ctx };

    upstream_drop(up);
    up->transfer = transfer_new(&options);
    if (up->transfer == NULL) {
        (void)snprintf(ret_reason, reason_size,
                       "there is no memory or no thread to load it");
    }
    return up->transfer != NULL;
}

bool
upstream_load_bytes(void *ctx, struct slice bytes)
{
    struct upstream *up = ctx;

    CHECK(up->transfer != NULL && !up->complete);
    if (transfer_put(up->transfer, bytes)) {
        return true;
    }
    up->put_off = true;
    return false;
}

void
upstream_load_end(void *ctx)
{
    struct upstream *up = ctx;

    up->complete = true;
    transfer_finish(up->transfer);
}

enum transfer_state
upstream_poll(struct upstream *up, char *ret_reason, size_t reason_size)
{
    enum transfer_state state =
        transfer_poll(up->transfer, ret_reason, reason_size);

    /* Before the last byte it is not loaded: further bytes may make it fail. */
    return state == TRANSFER_LOADED && !up->complete ? TRANSFER_RUNS : state;
}

struct keyspace *
upstream_take(struct upstream *up, struct snapshot_stamp *ret_stamp)
{
    struct keyspace *fresh = transfer_take(up->transfer, ret_stamp);

    upstream_drop(up);
    return fresh;
}

void
upstream_drop(struct upstream *up)
{
    transfer_free(up->transfer);
    up->transfer = NULL;
}

void
upstream_look(struct upstream *up)
{
    if (up->put_off &&
        (up->transfer == NULL ? service_takes_logs(up->loop0->service)
                              : transfer_has_room(up->transfer))) {
        up->put_off = false;
        replica_go_on(up->replica, run_clock_ms());
    }
}
