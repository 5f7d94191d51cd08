/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list in the order of ids, which are drawn under the same lock, and a fixed
 * number of chains by id, so that a look-up need not walk past ten thousand
 * connections under the lock. It does not use base/map.h, since adding an entry
 * must never fail for lack of memory.
 */
#include "net/registry.h"

#include "base/err.h"
#include "base/longest.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <uv.h>

enum { CHAINS = 4096 };

struct registry {
    uv_mutex_t mutex;
    struct registered *first, *last;  /* guarded by mutex */
    uint64_t last_id;                 /* guarded by mutex */
    struct registered *chain[CHAINS]; /* by id; guarded by mutex */
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

static struct registered **
chain_of(struct registry *registry, uint64_t id)
{
    return &registry->chain[id % CHAINS];
}

/* Returns the pointer in its chain that points to this id, or the chain's end.
 */
static struct registered **
link_of(struct registry *registry, uint64_t id)
{
    struct registered **link = chain_of(registry, id);

    while (*link != NULL && (*link)->id != id) {
        link = &(*link)->same;
    }
    return link;
}

void
registry_add(struct registry *registry, struct registered *entry,
             struct conn *conn)
{
    uv_mutex_lock(&registry->mutex);
    entry->id = ++registry->last_id;
    entry->conn = conn;
    entry->next = NULL;
    entry->prev = registry->last;
    if (registry->last != NULL) {
        registry->last->next = entry;
    } else {
        registry->first = entry;
    }
    registry->last = entry;
    entry->same = *chain_of(registry, entry->id);
    *chain_of(registry, entry->id) = entry;
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
registry_remove(struct registry *registry, struct registered *entry)
{
    uv_mutex_lock(&registry->mutex);
    CHECK(*link_of(registry, entry->id) == entry);
    *link_of(registry, entry->id) = entry->same;
    if (entry->prev != NULL) {
        entry->prev->next = entry->next;
    } else {
        registry->first = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->prev = entry->prev;
    } else {
        registry->last = entry->prev;
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

/* Returns the first entry behind this id. Walks the list only if the entry
 * with this id has gone. */
static struct registered *
first_after(struct registry *registry, uint64_t after_id)
{
    struct registered *entry =
        after_id > 0 ? *link_of(registry, after_id) : NULL;

    if (entry != NULL) {
        return entry->next;
    }
    entry = registry->first;
    while (entry != NULL && entry->id <= after_id) {
        entry = entry->next;
    }
    return entry;
}

uint64_t
registry_visit(struct registry *registry, uint64_t after_id, unsigned max,
               registry_visit_fn visit, void *ctx)
{
    struct longest_span locked;
    struct registered *entry;
    uint64_t last = 0;

    uv_mutex_lock(&registry->mutex);
    locked = longest_begin();
    entry = first_after(registry, after_id);
    for (unsigned i = 0; i < max && entry != NULL; i++) {
        visit(ctx, entry->conn);
        last = entry->id;
        entry = entry->next;
    }
    longest_end(LONGEST_LOCK, &locked, "registry");
    uv_mutex_unlock(&registry->mutex);
    return entry != NULL ? last : 0;
}

bool
registry_visit_one(struct registry *registry, uint64_t id,
                   registry_visit_fn visit, void *ctx)
{
    struct longest_span locked;
    struct registered *entry;

    uv_mutex_lock(&registry->mutex);
    locked = longest_begin();
    entry = *link_of(registry, id);
    if (entry != NULL) {
        visit(ctx, entry->conn);
    }
    longest_end(LONGEST_LOCK, &locked, "registry");
    uv_mutex_unlock(&registry->mutex);
    return entry != NULL;
}
