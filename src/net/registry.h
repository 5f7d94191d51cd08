/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All open connections of all loops, in the order of their ids, under one leaf
 * lock: CLIENT LIST and KILL read it and ask no loop. A connection is in it
 * from before its first command until before its descriptor closes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct registry;

struct registry *registry_new(void);
void registry_free(struct registry *registry);

/* Connections are counted in two groups: those of maxclients, and those on the
 * places beyond it that the operator keeps for himself (listener.h). */
enum registry_place { PLACE_COMMON, PLACE_RESERVED };
enum { REGISTRY_PLACES = PLACE_RESERVED + 1 };

/* Counts a connection that is about to be opened, unless `max` of this group
 * are counted already; registry_release takes it back. */
bool registry_reserve(struct registry *registry, enum registry_place place,
                      uint64_t max);
void registry_release(struct registry *registry, enum registry_place place);

/* Draws the next id (from 1) and adds the connection. */
void registry_add(struct registry *registry, struct conn *conn);

/* An id for something that is shown among them and is none of them. */
uint64_t registry_draw_id(struct registry *registry);
void registry_remove(struct registry *registry, struct conn *conn);

/* The same lock, for changing texts that visitors read. */
void registry_lock(struct registry *registry);
void registry_unlock(struct registry *registry);

/* Calls visit, under the lock, for at most `max` connections with an id above
 * after_id; visit must not block or call the registry. Returns the id of the
 * last one visited, 0 when none is left. */
typedef void (*registry_visit_fn)(void *ctx, struct conn *conn);
uint64_t registry_visit(struct registry *registry, uint64_t after_id,
                        unsigned max, registry_visit_fn visit, void *ctx);

/* The same for the one with this id; false if there is none. */
bool registry_visit_one(struct registry *registry, uint64_t id,
                        registry_visit_fn visit, void *ctx);
