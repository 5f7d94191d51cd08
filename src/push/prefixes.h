/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The prefixes of one loop (CLIENT TRACKING BCAST) and their followers: the
 * trackers that want invalidations of all names with a prefix. The loop changes
 * them and walks the followers. Other threads only ask whether a prefix has
 * followers. The lock is a leaf.
 */
#pragma once

#include "base/map.h"

#include <pthread.h>

struct prefix_length; /* prefixes.c */
struct followers;

/* A walk over the followers of a name that will continue later; all zero: there
 * is none. */
struct prefixes_walk {
    bool goes_on;
    size_t length;          /* length of the prefix that it has reached */
    struct followers *list; /* followers of that prefix; NULL: all were
                               visited */
    size_t visited;         /* how many of the list it has visited */
};

struct prefixes {
    pthread_mutex_t mutex;
    struct map followers;          /* prefix -> struct followers */
    struct prefix_length *lengths; /* of all prefixes, shortest first */
    size_t length_count, length_capacity;
    _Atomic size_t count; /* number of different prefixes */
    struct prefixes_walk walk;
};

void prefixes_init(struct prefixes *prefixes);

/* Frees it. All followers must have been removed. */
void prefixes_fini(struct prefixes *prefixes);

/* Adds a follower, which must not follow this prefix yet. False: no memory,
 * nothing changed. */
bool prefixes_add(struct prefixes *prefixes, struct slice prefix,
                  void *follower);
void prefixes_remove(struct prefixes *prefixes, struct slice prefix,
                     void *follower);

/* Calls visit for each follower of each prefix of a name. visit must not add or
 * remove followers. Returns false when until_ns has passed; the next call with
 * the same name continues. Followers may be added and removed between the
 * calls. */
typedef void (*prefixes_visit_fn)(void *ctx, void *follower);
bool prefixes_each(struct prefixes *prefixes, struct slice name,
                   prefixes_visit_fn visit, void *ctx, uint64_t until_ns);

/* ---- any thread ---------------------------------------------------------- */

/* Return whether a prefix of this name has followers, and whether this prefix
 * has some. */
bool prefixes_match(struct prefixes *prefixes, struct slice name);
bool prefixes_have(struct prefixes *prefixes, struct slice prefix);

/* Counts the prefixes that none of `others` has. */
size_t prefixes_count_new(struct prefixes *prefixes, struct prefixes *others[],
                          size_t count);
