/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list in the order of ids, since ids are drawn under the same lock, and an
 * open number of chains by id: who goes on behind a client, or asks for one,
 * need not walk past ten thousand others under the lock. The chains do not
 * grow: with many more connections than chains they are still a thousandth of
 * the list.
 */
#include "net/registry.h"

#include "base/err.h"
#include "base/longest.h"
#include "base/mem.h"
#include "net/conn.h"

enum { CHAINS = 4096 };

struct registry {
    uv_mutex_t mutex;
    struct conn *first, *last;  /* guarded by mutex */
    uint64_t last_id;           /* guarded by mutex */
    struct conn *chain[CHAINS]; /* by id; guarded by mutex */
    _Atomic uint64_t taken[REGISTRY_PLACES];
};

struct registry *
registry_new(void)
{
    struct registry *registry = mem_zalloc(sizeof(*registry));

    CHECK(uv_mutex_init(&registry->mutex) == 0);
    return registry;
}

void
registry_free(struct registry *registry)
{
    if (registry != NULL) {
        CHECK(registry->first == NULL);
        uv_mutex_destroy(&registry->mutex);
        mem_free(registry);
    }
}

bool
registry_reserve(struct registry *registry, enum registry_place place,
                 uint64_t max)
{
    if (atomic_fetch_add(&registry->taken[place], 1) < max) {
        return true;
    }
    registry_release(registry, place);
    return false;
}

void
registry_release(struct registry *registry, enum registry_place place)
{
    CHECK(atomic_fetch_sub(&registry->taken[place], 1) > 0);
}

static struct conn **
chain_of(struct registry *registry, uint64_t id)
{
    return &registry->chain[id % CHAINS];
}

/* The place that points to it, or the chain's end. */
static struct conn **
link_of(struct registry *registry, uint64_t id)
{
    struct conn **link = chain_of(registry, id);

    while (*link != NULL && (*link)->id != id) {
        link = &(*link)->registry_same;
    }
    return link;
}

void
registry_add(struct registry *registry, struct conn *conn)
{
    uv_mutex_lock(&registry->mutex);
    conn->id = ++registry->last_id;
    conn->registry_next = NULL;
    conn->registry_prev = registry->last;
    if (registry->last != NULL) {
        registry->last->registry_next = conn;
    } else {
        registry->first = conn;
    }
    registry->last = conn;
    conn->registry_same = *chain_of(registry, conn->id);
    *chain_of(registry, conn->id) = conn;
    uv_mutex_unlock(&registry->mutex);
}

uint64_t
registry_draw_id(struct registry *registry)
{
    uint64_t id;

    uv_mutex_lock(&registry->mutex);
    id = ++registry->last_id;
    uv_mutex_unlock(&registry->mutex);
    return id;
}

void
registry_remove(struct registry *registry, struct conn *conn)
{
    uv_mutex_lock(&registry->mutex);
    *link_of(registry, conn->id) = conn->registry_same;
    if (conn->registry_prev != NULL) {
        conn->registry_prev->registry_next = conn->registry_next;
    } else {
        registry->first = conn->registry_next;
    }
    if (conn->registry_next != NULL) {
        conn->registry_next->registry_prev = conn->registry_prev;
    } else {
        registry->last = conn->registry_prev;
    }
    uv_mutex_unlock(&registry->mutex);
}

void
registry_lock(struct registry *registry)
{
    uv_mutex_lock(&registry->mutex);
}

void
registry_unlock(struct registry *registry)
{
    uv_mutex_unlock(&registry->mutex);
}

/* Ids are drawn in the order of the list. Only if the one to go on behind has
 * gone itself the list is walked. */
static struct conn *
first_after(struct registry *registry, uint64_t after_id)
{
    struct conn *conn = after_id > 0 ? *link_of(registry, after_id) : NULL;

    if (conn != NULL) {
        return conn->registry_next;
    }
    conn = registry->first;
    while (conn != NULL && conn->id <= after_id) {
        conn = conn->registry_next;
    }
    return conn;
}

uint64_t
registry_visit(struct registry *registry, uint64_t after_id, unsigned max,
               registry_visit_fn visit, void *ctx)
{
    struct longest_span held;
    struct conn *conn;
    uint64_t last = 0;

    uv_mutex_lock(&registry->mutex);
    held = longest_begin();
    conn = first_after(registry, after_id);
    for (unsigned i = 0; i < max && conn != NULL; i++) {
        visit(ctx, conn);
        last = conn->id;
        conn = conn->registry_next;
    }
    longest_end(LONGEST_LOCK, &held, "registry");
    uv_mutex_unlock(&registry->mutex);
    return conn != NULL ? last : 0;
}

bool
registry_visit_one(struct registry *registry, uint64_t id,
                   registry_visit_fn visit, void *ctx)
{
    struct longest_span held;
    struct conn *conn;
    bool found;

    uv_mutex_lock(&registry->mutex);
    held = longest_begin();
    conn = *link_of(registry, id);
    found = conn != NULL;
    if (found) {
        visit(ctx, conn);
    }
    longest_end(LONGEST_LOCK, &held, "registry");
    uv_mutex_unlock(&registry->mutex);
    return found;
}
