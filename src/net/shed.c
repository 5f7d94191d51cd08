/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The largest are found by a walk over the registry, a piece at a time, so that
 * its lock is held only briefly.
 */
#include "net/shed.h"

#include "base/log.h"
#include "base/metrics.h"
#include "net/conn.h"
#include "net/registry.h"
#include "net/serve.h"
#include "net/usage.h"

enum { PIECE_CONNS = 128, LARGEST = 16 };

struct large {
    struct usage *usage;
    struct loop *loop;
    uint64_t id, bytes;
};

/* The largest connections, in descending order. */
struct largest {
    struct large of[LARGEST];
    size_t count;
};

static bool
may_cut(const struct conn *conn)
{
    return !conn->is_reserved && conn->usage.condemned_bytes == 0 &&
           !atomic_load_explicit(&conn->exempt, memory_order_relaxed);
}

static void
consider(void *ctx, struct conn *conn)
{
    struct largest *largest = ctx;
    uint64_t bytes =
        atomic_load_explicit(&conn->usage.bytes, memory_order_relaxed);
    size_t at = largest->count;

    if (bytes == 0 || !may_cut(conn) ||
        (at == LARGEST && bytes <= largest->of[at - 1].bytes)) {
        return;
    }
    at = at < LARGEST ? largest->count++ : at - 1;
    for (; at > 0 && largest->of[at - 1].bytes < bytes; at--) {
        largest->of[at] = largest->of[at - 1];
    }
    largest->of[at] = (struct large){ conn->loop->env->usage, conn->loop,
                                      conn_id(conn), bytes };
}

/* Called under the registry's lock: a connection that is still registered is
 * open. */
static void
condemn(void *ctx, struct conn *conn)
{
    struct large *large = ctx;

    large->bytes = usage_condemn(large->usage, &conn->usage);
}

static void
cut_large(struct registry *registry, struct large *large)
{
    if (!registry_visit_one(registry, large->id, condemn, large)) {
        return; /* the connection has closed meanwhile */
    }
    metric_add(METRIC_EVICTED_CLIENTS, 1);
    log_repeated(LOG_WARN, "net.usage",
                 "cut, clients take more than maxmemory-clients",
                 "id=%llu bytes=%llu", (unsigned long long)large->id,
                 (unsigned long long)large->bytes);
    /* If the mailbox is full, its loop's timeouts_check closes it. */
    (void)serve_kill(large->loop, large->id);
}

void
shed_largest(struct loop *loop)
{
    struct usage *usage = loop->env->usage;
    struct registry *registry = loop->env->registry;

    loop->above = false;
    if (usage == NULL || atomic_exchange(&usage->choosing, true)) {
        return;
    }
    while (usage_is_above(usage)) {
        struct largest largest = { .count = 0 };
        uint64_t after = 0;

        do {
            after = registry_visit(registry, after, PIECE_CONNS, consider,
                                   &largest);
        } while (after != 0);
        for (size_t i = 0; i < largest.count && usage_is_above(usage); i++) {
            cut_large(registry, &largest.of[i]);
        }
        if (largest.count == 0) {
            break;
        }
    }
    atomic_store(&usage->choosing, false);
}
