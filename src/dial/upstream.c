/* SPDX-License-Identifier: BSD-3-Clause */
#include "dial/upstream.h"

#include "base/run_clock.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "net/link_dial.h"
#include "net/registry.h"
#include "repl/replica.h"
#include "tls/tls_context.h"

enum { UNSENT_MAX = 64 << 10 /* a server that reads no acknowledgements */ };

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
upstream_dial(struct upstream *up, uint64_t number, const char *host,
              unsigned port, uint64_t timeout_ms)
{
    const struct loop0 *loop0 = up->loop0;

    up->number = number;
    up->id = registry_draw_id(loop0->service->registry);
    up->link =
        link_dial(loop0->loop, host, port, (unsigned)timeout_ms, &hooks, up);
    if (up->uses_tls) {
        link_secure(up->link, tls_new_dial(loop0->service->tls, host));
    }
}

bool
upstream_send(struct upstream *up, uint64_t number, struct slice bytes)
{
    return up->link != NULL && number == up->number &&
           link_unsent(up->link) < UNSENT_MAX && link_send(up->link, bytes);
}

void
upstream_close(struct upstream *up, uint64_t number)
{
    if (up->link != NULL && number == up->number) {
        link_close(up->link);
        up->link = NULL;
    }
}

void
upstream_pause(struct upstream *up, uint64_t number, bool paused)
{
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
