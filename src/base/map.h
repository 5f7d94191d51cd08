/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash map from names (any bytes) to pointers, which stay the caller's. It
 * grows and shrinks by one bucket at a time (linear hashing, Litwin 1980), so
 * that no single call takes long however much is in it; an empty one holds no
 * memory. Not for several threads at once.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_node;

/* All zero: empty. */
struct map {
    struct map_node **buckets;
    size_t count;          /* of names */
    size_t used, capacity; /* of buckets */
};

/* NULL if there is none. */
void *map_find(const struct map *map, struct slice name);

/* Adds or replaces; the name is copied, the value not NULL. False without
 * memory: nothing changed. */
bool map_put(struct map *map, struct slice name, void *value);

/* Returns the value that was there, or NULL. */
void *map_remove(struct map *map, struct slice name);

/* Visits all, in no order; visit must not change the map. False if visit
 * returned false, which ends it. */
typedef bool (*map_visit_fn)(void *ctx, struct slice name, void *value);
bool map_each(const struct map *map, map_visit_fn visit, void *ctx);

/* Visits some of them, and returns the cursor to go on with: 0 begins, and is
 * the end. Names may come and go between two calls: one that is there from the
 * first to the last is visited once, another at most once while it stays. */
uint64_t map_scan(const struct map *map, uint64_t cursor, map_visit_fn visit,
                  void *ctx);

/* A random one: its value, and its name, borrowed until it is removed; NULL if
 * the map is empty. */
void *map_random(const struct map *map, uint64_t random,
                 struct slice *ret_name);

/* Bytes that one name costs in a map, for limits. */
size_t map_node_bytes(struct slice name);

/* Frees what the map owns, not the values. */
void map_free(struct map *map);
