/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who wants to hear of which beginnings of names. Changed by one thread, which
 * also walks the followers; any other may ask whether there are some. A leaf
 * lock.
 */
#pragma once

#include "base/map.h"

#include <pthread.h>

struct prefix_length; /* prefixes.c */

struct prefixes {
    pthread_mutex_t mutex;
    struct map followers;          /* of each prefix */
    struct prefix_length *lengths; /* of all prefixes, shortest first */
    size_t length_count, length_capacity;
    _Atomic size_t count; /* of different prefixes */
};

void prefixes_init(struct prefixes *prefixes);

/* When nobody follows any more. */
void prefixes_fini(struct prefixes *prefixes);

/* False without memory: nothing changed. Each follower once for a prefix. */
bool prefixes_add(struct prefixes *prefixes, struct slice prefix,
                  void *follower);
void prefixes_remove(struct prefixes *prefixes, struct slice prefix,
                     void *follower);

/* Calls visit for each follower of each prefix that the name begins with.
 * visit must not change them. */
typedef void (*prefixes_visit_fn)(void *ctx, void *follower);
void prefixes_each(const struct prefixes *prefixes, struct slice name,
                   prefixes_visit_fn visit, void *ctx);

/* ---- any thread ---------------------------------------------------------- */

/* Whether somebody follows a prefix of this name, or just this prefix. */
bool prefixes_match(struct prefixes *prefixes, struct slice name);
bool prefixes_have(struct prefixes *prefixes, struct slice prefix);

/* How many different ones there are that `others`, so many of them, do not
 * have. */
size_t prefixes_count_new(struct prefixes *prefixes, struct prefixes *others[],
                          size_t count);
