/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All open connections of all loops, in the order of their ids, under one leaf
 * lock, so that CLIENT LIST and KILL need not ask the loops. A connection is
 * registered from before its first command until before its descriptor closes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct registry;

struct registry *registry_new(void);
void registry_free(struct registry *registry);

/* Embedded in a connection. Only the registry uses it, under its lock. */
struct registered {
    uint64_t id;
    struct conn *conn;
    struct registered *next, *prev; /* in the order of ids */
    struct registered *same;        /* the next one in its chain */
};

/* Connections are counted in two groups: those within maxclients, and those on
 * the places beyond it that are reserved for the operator (listener.h). */
enum registry_place { PLACE_COMMON, PLACE_RESERVED };
enum { REGISTRY_PLACES = PLACE_RESERVED + 1 };

/* Counts a connection that is about to be opened. Returns false if `max` of
 * this group are counted already. registry_release subtracts it again. */
bool registry_reserve(struct registry *registry, enum registry_place place,
                      uint64_t max);
void registry_release(struct registry *registry, enum registry_place place);

/* Gives ENTRY the next id (from 1) and adds CONN, which embeds it. */
void registry_add(struct registry *registry, struct registered *entry,
                  struct conn *conn);
void registry_remove(struct registry *registry, struct registered *entry);

/* Draws an id for a row of CLIENT LIST that is no connection. */
uint64_t registry_draw_id(struct registry *registry);

/* Take and release the registry's lock, to change texts that visitors read. */
void registry_lock(struct registry *registry);
void registry_unlock(struct registry *registry);

/* Calls visit, under the lock, for at most `max` connections with an id above
 * after_id; visit must not block or call the registry. Returns the id of the
 * last visited connection; 0 if there are no more. */
typedef void (*registry_visit_fn)(void *ctx, struct conn *conn);
uint64_t registry_visit(struct registry *registry, uint64_t after_id,
                        unsigned max, registry_visit_fn visit, void *ctx);

/* Calls visit, under the lock, for the connection with this id. Returns false
 * if there is none. */
bool registry_visit_one(struct registry *registry, uint64_t id,
                        registry_visit_fn visit, void *ctx);
