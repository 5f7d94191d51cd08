/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash map from names (any bytes) to pointers, which stay the caller's. It
 * grows and shrinks by one bucket at a time (base/linear.h), so that no call
 * takes long, however large the map is. An empty map has no memory. One thread
 * at a time.
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
    size_t count;          /* names */
    size_t used, capacity; /* buckets */
};

/* Returns the value, or NULL. */
void *map_find(const struct map *map, struct slice name);

/* Sets the value of a name, which is copied if it is new. The value is not
 * NULL. False without memory: nothing has changed. */
bool map_put(struct map *map, struct slice name, void *value);

/* Returns the value that was there, or NULL. */
void *map_remove(struct map *map, struct slice name);

/* Visits all names, in no order; visit must not change the map. Stops and
 * returns false when visit returns false. */
typedef bool (*map_visit_fn)(void *ctx, struct slice name, void *value);
bool map_each(const struct map *map, map_visit_fn visit, void *ctx);

/* Visits some names and returns the cursor for the next call. The cursor 0
 * begins a scan; a returned 0 says that it is complete. The map may change
 * between calls: a name that exists from the first call to the last is visited
 * once, others at most once while they exist. */
uint64_t map_scan(const struct map *map, uint64_t cursor, map_visit_fn visit,
                  void *ctx);

/* Returns the value of a random name, and the name, borrowed until it is
 * removed; NULL if the map is empty. */
void *map_random(const struct map *map, uint64_t random,
                 struct slice *ret_name);

/* Returns the bytes that one name takes in a map, for limits of memory. */
size_t map_node_bytes(struct slice name);

/* Empties the map; the values are not freed. */
void map_free(struct map *map);
