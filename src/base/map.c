/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/linear.h computes the bucket of a name. Only the array of buckets moves
 * as a whole, which realloc does by remapping if it is large.
 */
#include "base/map.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/linear.h"
#include "base/mem.h"

enum { BUCKETS_MIN = 4 };

struct map_node {
    struct map_node *next;
    void *value;
    uint64_t hash;
    size_t len;
    char name[];
};

/* Returns the pointer to this name's node, or the end of its chain. */
static struct map_node **
place_of_name(const struct map *map, struct slice name, uint64_t hash)
{
    struct map_node **at = &map->buckets[linear_bucket(map->used, hash)];

    while (*at != NULL &&
           ((*at)->hash != hash ||
            !slice_equal(name, (struct slice){ (*at)->name, (*at)->len }))) {
        at = &(*at)->next;
    }
    return at;
}

/* ---- growing and shrinking ----------------------------------------------- */

static bool
resize(struct map *map, size_t capacity)
{
    size_t bytes;
    struct map_node **buckets;

    if (!mem_multiply(capacity, sizeof(struct map_node *), &bytes)) {
        return false;
    }
    buckets = mem_try_realloc((void *)map->buckets, bytes);
    if (buckets == NULL) {
        return false;
    }
    map->buckets = buckets;
    map->capacity = capacity;
    return true;
}

/* Without memory for another bucket, the chains only become longer. */
static void
grow_buckets(struct map *map)
{
    uint64_t bit;
    struct map_node **stay;
    struct map_node **leave;

    if (map->count <= map->used ||
        (map->used == map->capacity && !resize(map, 2 * map->capacity))) {
        return;
    }
    bit = linear_bit(map->used);
    stay = &map->buckets[linear_parent(map->used)];
    leave = &map->buckets[map->used];
    while (*stay != NULL) {
        struct map_node *node = *stay;

        if ((node->hash & bit) != 0) {
            *stay = node->next;
            *leave = node;
            leave = &node->next;
        } else {
            stay = &node->next;
        }
    }
    *leave = NULL;
    map->used++;
}

static void
shrink(struct map *map)
{
    size_t last = map->used - 1;
    struct map_node **to;

    if (map->count == 0) {
        map_free(map);
        return;
    }
    if (map->used <= BUCKETS_MIN || map->used < 2 * map->count) {
        return;
    }
    to = &map->buckets[linear_parent(last)];
    while (*to != NULL) {
        to = &(*to)->next;
    }
    *to = map->buckets[last];
    map->used = last;
    if (map->used <= map->capacity / 4) {
        (void)resize(map, map->capacity / 2);
    }
}

/* ---- the calls ----------------------------------------------------------- */

void *
map_find(const struct map *map, struct slice name)
{
    struct map_node *node =
        map->count > 0 ? *place_of_name(map, name, hash_name(name)) : NULL;

    return node != NULL ? node->value : NULL;
}

static bool
begin_buckets(struct map *map)
{
    if (map->buckets == NULL) {
        if (!resize(map, BUCKETS_MIN)) {
            return false;
        }
        memset((void *)map->buckets, 0,
               BUCKETS_MIN * sizeof(struct map_node *));
        map->used = BUCKETS_MIN;
    }
    return true;
}

bool
map_put(struct map *map, struct slice name, void *value)
{
    uint64_t hash = hash_name(name);
    struct map_node **at;
    struct map_node *node;

    CHECK(value != NULL);
    if (!begin_buckets(map)) {
        return false;
    }
    at = place_of_name(map, name, hash);
    if (*at != NULL) {
        (*at)->value = value;
        return true;
    }
    node = mem_try_alloc(map_node_bytes(name));
    if (node == NULL) {
        shrink(map); /* frees the buckets if the map is empty */
        return false;
    }
    *node = (struct map_node){ NULL, value, hash, name.len };
    if (name.len > 0) {
        memcpy(node->name, name.data, name.len);
    }
    *at = node;
    map->count++;
    grow_buckets(map);
    return true;
}

void *
map_remove(struct map *map, struct slice name)
{
    struct map_node **at;
    struct map_node *node;
    void *value;

    if (map->count == 0) {
        return NULL;
    }
    at = place_of_name(map, name, hash_name(name));
    node = *at;
    if (node == NULL) {
        return NULL;
    }
    value = node->value;
    *at = node->next;
    mem_free(node);
    map->count--;
    shrink(map);
    return value;
}

bool
map_each(const struct map *map, map_visit_fn visit, void *ctx)
{
    for (size_t i = 0; i < map->used; i++) {
        const struct map_node *node = map->buckets[i];

        for (; node != NULL; node = node->next) {
            if (!visit(ctx, (struct slice){ node->name, node->len },
                       node->value)) {
                return false;
            }
        }
    }
    return true;
}

/* Skips names that were visited before their bucket was merged into this one.
 */
uint64_t
map_scan(const struct map *map, uint64_t cursor, map_visit_fn visit, void *ctx)
{
    uint64_t from = linear_reverse(cursor);
    const struct map_node *node;

    if (map->count == 0) {
        return 0;
    }
    node = map->buckets[linear_bucket(map->used, cursor)];
    for (; node != NULL; node = node->next) {
        if (linear_reverse(node->hash) >= from &&
            !visit(ctx, (struct slice){ node->name, node->len }, node->value)) {
            return 0;
        }
    }
    return linear_next(map->used, cursor);
}

void *
map_random(const struct map *map, uint64_t random, struct slice *ret_name)
{
    const struct map_node *node;
    size_t at;
    size_t length = 1;

    if (map->count == 0) {
        return NULL;
    }
    at = (size_t)(random % map->used);
    while (map->buckets[at] == NULL) {
        at = at + 1 < map->used ? at + 1 : 0;
    }
    for (node = map->buckets[at]; node->next != NULL; node = node->next) {
        length++;
    }
    node = map->buckets[at];
    for (size_t skip = (size_t)(random / map->used % length); skip > 0;
         skip--) {
        node = node->next;
    }
    *ret_name = (struct slice){ node->name, node->len };
    return node->value;
}

size_t
map_node_bytes(struct slice name)
{
    return sizeof(struct map_node) + name.len;
}

void
map_free(struct map *map)
{
    for (size_t i = 0; i < map->used; i++) {
        struct map_node *node = map->buckets[i];

        while (node != NULL) {
            struct map_node *next = node->next;

            mem_free(node);
            node = next;
        }
    }
    mem_free((void *)map->buckets);
    *map = (struct map){ NULL, 0, 0, 0 };
}
