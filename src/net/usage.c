/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The largest are found by a walk over the registry, a piece at a time, so that
 * its lock is held shortly. What a condemned connection takes is counted as
 * gone, since its loop may need a moment.
 */
#include "net/usage.h"

#include "base/log.h"
#include "base/metrics.h"
#include "net/conn.h"
#include "net/hold.h"
#include "net/outbox.h"
#include "net/registry.h"

enum { PIECE_CONNS = 128, LARGEST = 16 };

bool
usage_is_above(struct usage *usage)
{
    uint64_t limit = atomic_load_explicit(&usage->limit, memory_order_relaxed);
    uint64_t condemned = atomic_load(&usage->condemned);

    return limit > 0 && atomic_load(&usage->total) > limit + condemned;
}

void
usage_count(struct conn *conn)
{
    struct usage *usage = conn->loop->env->usage;
    uint64_t before =
        atomic_load_explicit(&conn->usage_bytes, memory_order_relaxed);
    uint64_t bytes;

    if (usage == NULL || conn->closing) {
        return;
    }
    bytes = conn->owned_bytes + conn->kept.capacity +
            stream_memory_bytes(&conn->input) + outbox_memory_bytes(conn) +
            hold_memory_bytes(conn);
    if (bytes == before) {
        return;
    }
    atomic_store_explicit(&conn->usage_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add(&usage->total, bytes - before); /* may wrap, and back */
    if (bytes > before && usage_is_above(usage)) {
        conn->loop->above = true;
    }
}

void
usage_set_owned(struct conn *conn, uint64_t bytes)
{
    if (bytes != conn->owned_bytes) {
        conn->owned_bytes = bytes;
        usage_count(conn);
    }
}

void
usage_set_exempt(struct conn *conn, bool exempt)
{
    atomic_store_explicit(&conn->exempt, exempt, memory_order_relaxed);
}

void
usage_leave(struct conn *conn)
{
    struct usage *usage = conn->loop->env->usage;

    if (usage != NULL) {
        atomic_fetch_sub(&usage->total, conn->usage_bytes);
        atomic_fetch_sub(&usage->condemned, conn->condemned_bytes);
    }
    conn->usage_bytes = 0;
    conn->condemned_bytes = 0;
}

/* ---- the largest --------------------------------------------------------- */

struct large {
    struct usage *usage;
    struct loop *loop;
    uint64_t id, bytes;
};

/* In descending order. */
struct largest {
    struct large of[LARGEST];
    size_t count;
};

static bool
may_go(const struct conn *conn)
{
    return !conn->is_reserved && conn->condemned_bytes == 0 &&
           !atomic_load_explicit(&conn->exempt, memory_order_relaxed);
}

static void
consider(void *ctx, struct conn *conn)
{
    struct largest *largest = ctx;
    uint64_t bytes =
        atomic_load_explicit(&conn->usage_bytes, memory_order_relaxed);
    size_t at = largest->count;

    if (bytes == 0 || !may_go(conn) ||
        (at == LARGEST && bytes <= largest->of[at - 1].bytes)) {
        return;
    }
    at = at < LARGEST ? largest->count++ : at - 1;
    for (; at > 0 && largest->of[at - 1].bytes < bytes; at--) {
        largest->of[at] = largest->of[at - 1];
    }
    largest->of[at] =
        (struct large){ conn->loop->env->usage, conn->loop, conn->id, bytes };
}

/* Under the registry's lock, which a connection leaves before its end. */
static void
condemn(void *ctx, struct conn *conn)
{
    struct large *large = ctx;

    large->bytes = atomic_load(&conn->usage_bytes);
    conn->condemned_bytes = large->bytes;
    atomic_fetch_add(&large->usage->condemned, large->bytes);
}

static void
cut(struct registry *registry, struct large *large)
{
    if (!registry_visit_one(registry, large->id, condemn, large)) {
        return; /* it has gone meanwhile */
    }
    metric_add(METRIC_EVICTED_CLIENTS, 1);
    log_repeated(LOG_WARN, "net.usage",
                 "cut, clients take more than maxmemory-clients",
                 "id=%llu bytes=%llu", (unsigned long long)large->id,
                 (unsigned long long)large->bytes);
    /* If the mailbox is full, its loop finds it at the next second. */
    (void)conn_kill(large->loop, large->id);
}

void
usage_shed(struct loop *loop)
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
            cut(registry, &largest.of[i]);
        }
        if (largest.count == 0) {
            break;
        }
    }
    atomic_store(&usage->choosing, false);
}
