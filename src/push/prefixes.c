/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A map from prefixes to lists of followers, and the number of prefixes of each
 * length: one look-up for each length finds all prefixes of a name.
 */
#include "push/prefixes.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

enum { LIST_MIN = 4 };

struct prefix_length {
    size_t length, count;
};

struct followers {
    size_t count, capacity;
    void **follower;
};

void
prefixes_init(struct prefixes *prefixes)
{
    memset(prefixes, 0, sizeof(*prefixes));
    CHECK(pthread_mutex_init(&prefixes->mutex, NULL) == 0);
}

void
prefixes_fini(struct prefixes *prefixes)
{
    CHECK(prefixes->followers.count == 0 && prefixes->length_count == 0);
    map_free(&prefixes->followers);
    mem_free(prefixes->lengths);
    pthread_mutex_destroy(&prefixes->mutex);
}

/* ---- lengths ------------------------------------------------------------- */

/* Returns the index of a length, or where to insert it. */
static size_t
length_place(const struct prefixes *prefixes, size_t length)
{
    size_t at = 0;

    while (at < prefixes->length_count &&
           prefixes->lengths[at].length < length) {
        at++;
    }
    return at;
}

static bool
length_add(struct prefixes *prefixes, size_t length)
{
    size_t at = length_place(prefixes, length);
    struct prefix_length *lengths = prefixes->lengths;

    if (at < prefixes->length_count && lengths[at].length == length) {
        lengths[at].count++;
        return true;
    }
    if (prefixes->length_count == prefixes->length_capacity) {
        size_t capacity = prefixes->length_capacity + LIST_MIN;

        lengths = mem_try_realloc(lengths, capacity * sizeof(*lengths));
        if (lengths == NULL) {
            return false;
        }
        prefixes->lengths = lengths;
        prefixes->length_capacity = capacity;
    }
    memmove(&lengths[at + 1], &lengths[at],
            (prefixes->length_count - at) * sizeof(*lengths));
    lengths[at] = (struct prefix_length){ length, 1 };
    prefixes->length_count++;
    return true;
}

static void
length_remove(struct prefixes *prefixes, size_t length)
{
    size_t at = length_place(prefixes, length);
    struct prefix_length *lengths = prefixes->lengths;

    CHECK(at < prefixes->length_count && lengths[at].length == length);
    if (--lengths[at].count == 0) {
        prefixes->length_count--;
        memmove(&lengths[at], &lengths[at + 1],
                (prefixes->length_count - at) * sizeof(*lengths));
    }
}

/* ---- followers ----------------------------------------------------------- */

static bool
list_add(struct followers *list, void *follower)
{
    size_t capacity = list->capacity > 0 ? list->capacity * 2 : LIST_MIN;
    void **grown;

    if (list->count == list->capacity) {
        grown =
            mem_try_realloc((void *)list->follower, capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        list->follower = grown;
        list->capacity = capacity;
    }
    list->follower[list->count++] = follower;
    return true;
}

/* Removes the follower at this place. Those that the walk has visited stay in
 * front of the others. */
static void
list_take(struct followers *list, size_t at, struct prefixes_walk *walk)
{
    if (walk->list == list && at < walk->visited) {
        list->follower[at] = list->follower[--walk->visited];
        at = walk->visited;
    }
    list->follower[at] = list->follower[--list->count];
}

static void
list_free(struct followers *list)
{
    if (list != NULL) {
        mem_free((void *)list->follower);
        mem_free(list);
    }
}

/* Adds a prefix with its first follower. The caller holds the lock. */
static bool
add_prefix(struct prefixes *prefixes, struct slice prefix, void *follower)
{
    struct followers *list = mem_try_zalloc(sizeof(*list));

    if (list == NULL || !list_add(list, follower)) {
        goto fail;
    }
    if (!length_add(prefixes, prefix.len)) {
        goto fail;
    }
    if (!map_put(&prefixes->followers, prefix, list)) {
        length_remove(prefixes, prefix.len);
        goto fail;
    }
    return true;

fail:
    list_free(list);
    return false;
}

bool
prefixes_add(struct prefixes *prefixes, struct slice prefix, void *follower)
{
    struct followers *list;
    bool added;

    pthread_mutex_lock(&prefixes->mutex);
    list = map_find(&prefixes->followers, prefix);
    added = list != NULL ? list_add(list, follower)
                         : add_prefix(prefixes, prefix, follower);
    atomic_store(&prefixes->count, prefixes->followers.count);
    pthread_mutex_unlock(&prefixes->mutex);
    return added;
}

void
prefixes_remove(struct prefixes *prefixes, struct slice prefix, void *follower)
{
    struct followers *list;
    size_t at = 0;

    pthread_mutex_lock(&prefixes->mutex);
    list = map_find(&prefixes->followers, prefix);
    CHECK(list != NULL && list->count > 0);
    while (list->follower[at] != follower) {
        at++;
        CHECK(at < list->count);
    }
    list_take(list, at, &prefixes->walk);
    if (list->count == 0) {
        (void)map_remove(&prefixes->followers, prefix);
        length_remove(prefixes, prefix.len);
        list_free(list);
        prefixes->walk.list =
            prefixes->walk.list == list ? NULL : prefixes->walk.list;
    }
    atomic_store(&prefixes->count, prefixes->followers.count);
    pthread_mutex_unlock(&prefixes->mutex);
}

/* Visits followers that the walk has not visited yet. False: no time left. */
static bool
walk_on(struct prefixes_walk *walk, prefixes_visit_fn visit, void *ctx,
        uint64_t until_ns)
{
    enum { AT_ONCE = 32 };

    while (walk->list != NULL && walk->visited < walk->list->count) {
        visit(ctx, walk->list->follower[walk->visited++]);
        if (walk->visited % AT_ONCE == 0 && clock_mono_ns() >= until_ns) {
            walk->goes_on = true;
            return false;
        }
    }
    return true;
}

bool
prefixes_each(struct prefixes *prefixes, struct slice name,
              prefixes_visit_fn visit, void *ctx, uint64_t until_ns)
{
    struct prefixes_walk *walk = &prefixes->walk;
    bool goes_on = walk->goes_on;

    if (goes_on && !walk_on(walk, visit, ctx, until_ns)) {
        return false;
    }
    for (size_t i = 0;
         i < prefixes->length_count && prefixes->lengths[i].length <= name.len;
         i++) {
        struct slice prefix = { name.data, prefixes->lengths[i].length };

        if (goes_on && prefix.len <= walk->length) {
            continue;
        }
        *walk = (struct prefixes_walk){
            .length = prefix.len, .list = map_find(&prefixes->followers, prefix)
        };
        if (!walk_on(walk, visit, ctx, until_ns)) {
            return false;
        }
    }
    *walk = (struct prefixes_walk){ 0 };
    return true;
}

/* ---- any thread ---------------------------------------------------------- */

bool
prefixes_match(struct prefixes *prefixes, struct slice name)
{
    bool found = false;

    if (atomic_load_explicit(&prefixes->count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&prefixes->mutex);
    for (size_t i = 0; !found && i < prefixes->length_count &&
                       prefixes->lengths[i].length <= name.len;
         i++) {
        struct slice prefix = { name.data, prefixes->lengths[i].length };

        found = map_find(&prefixes->followers, prefix) != NULL;
    }
    pthread_mutex_unlock(&prefixes->mutex);
    return found;
}

bool
prefixes_have(struct prefixes *prefixes, struct slice prefix)
{
    bool found;

    pthread_mutex_lock(&prefixes->mutex);
    found = map_find(&prefixes->followers, prefix) != NULL;
    pthread_mutex_unlock(&prefixes->mutex);
    return found;
}

struct counting {
    struct prefixes **others;
    size_t count, found;
};

static bool
count_one(void *ctx, struct slice prefix, void *value)
{
    struct counting *counting = ctx;
    bool seen = false;

    (void)value;
    for (size_t i = 0; !seen && i < counting->count; i++) {
        seen = prefixes_have(counting->others[i], prefix);
    }
    counting->found += !seen;
    return true;
}

size_t
prefixes_count_new(struct prefixes *prefixes, struct prefixes *others[],
                   size_t count)
{
    struct counting counting = { others, count, 0 };

    pthread_mutex_lock(&prefixes->mutex);
    (void)map_each(&prefixes->followers, count_one, &counting);
    pthread_mutex_unlock(&prefixes->mutex);
    return counting.found;
}
