/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Client-side caching: which client has read which key and is to hear when it
 * changes (the default mode), or wants to hear of every change to names with
 * some prefix (BCAST). The table of keys is sharded by the hash of the name,
 * each shard under a leaf lock; a client's own state belongs to its loop.
 *
 * A read is remembered while the key's stripe is held, and a change looks
 * while it holds the stripe alone: so a change either comes before the read or
 * is heard of.
 */
#pragma once

#include "admin/notice.h"
#include "admin/receiver.h"

#include <stddef.h>

struct tracking;

/* How many keys are remembered (tracking-table-max-keys), and in how many bytes
 * (tracking-table-max-bytes); beyond it, some are forgotten and their readers
 * told that they changed. 0: no limit. */
struct tracking_limits {
    const _Atomic uint64_t *keys, *bytes;
};

struct tracking *tracking_new(unsigned loops,
                              const struct tracking_limits *limits);
void tracking_free(struct tracking *tracking);

/* What CLIENT TRACKING ON asked for. */
struct tracking_options {
    bool bcast, optin, optout, noloop;
    uint64_t redirect;      /* 0: to itself */
    unsigned redirect_loop; /* that client's */
    const struct slice *prefixes;
    size_t prefix_count;
};

/* ---- on the receiver's loop ---------------------------------------------- */

/* Turns it on, or changes what is on; prefixes are added to those that are
 * there. The caller has checked that the options fit each other. False without
 * memory: nothing changed. */
bool tracking_on(struct tracking *tracking, struct receiver *receiver,
                 const struct tracking_options *options);
/* What it has read is not forgotten: it hears of it if it comes back. */
void tracking_off(struct tracking *tracking, struct receiver *receiver);

/* The end of a client, or RESET: off, and forgotten. */
void tracking_leave(struct tracking *tracking, struct receiver *receiver);

/* What is in force, prefixes in the order of their bytes; NULL if it is off.
 * Borrowed until tracking_on or off. */
const struct tracking_options *tracking_get(const struct receiver *receiver);

/* The bytes of all prefixes, and of the client's lists of them, for limits. */
size_t tracking_prefix_bytes(const struct tracking_options *options);

/* The memory that this client's tracking takes: its prefixes, and the keys that
 * it has read, as if nobody else had and their names were of usual length. */
size_t tracking_memory(const struct receiver *receiver);

/* Somebody's invalidations may be sent to this client, which ends, or is as
 * new. */
void tracking_forget_target(struct tracking *tracking,
                            struct receiver *receiver);

/* Bits of receiver->tracks, for CLIENT LIST. */
enum { TRACKS = 1, TRACKS_BROKEN = 2, TRACKS_BCAST = 4 };

/* CLIENT CACHING: the next command (in MULTI: the next transaction) is, or is
 * not, to be remembered. The dispatcher ends it. */
enum tracking_caching { CACHING_DEFAULT, CACHING_YES, CACHING_NO };
void tracking_set_caching(struct receiver *receiver,
                          enum tracking_caching caching);
enum tracking_caching tracking_caching(const struct receiver *receiver);

/* Whether what this client reads now is to be remembered. */
bool tracking_wants(const struct receiver *receiver);

/* Remembers that this client has read a key. Under the key's stripe. */
void tracking_remember(struct tracking *tracking,
                       const struct receiver *receiver, struct slice name,
                       uint64_t hash, struct notice_list *list);

/* Where something is delivered: on which loop, what it still has to tell other
 * loops, and how it finds the client with some id (NULL: not on this loop). */
struct tracking_place {
    unsigned loop;
    struct notice_list *list;
    struct receiver *(*find)(void *ctx, uint64_t id);
    void *ctx;
};

/* Pushes an invalidation: to one client, or (to: 0) to those in BCAST mode who
 * want it, or all in case of NOTICE_INVALIDATE_ALL; and passes on what goes to
 * a client of another loop, with hold_until as it was. */
void tracking_deliver(struct tracking *tracking,
                      const struct tracking_place *place,
                      const struct notice *notice, uint64_t to);

/* Cuts everybody of this loop who tracks, or hears for somebody who does: some
 * invalidation was lost. */
void tracking_cut(struct tracking *tracking,
                  const struct tracking_place *place);

/* ---- any thread, under the key's stripe or the raised gate --------------- */

/* A key changed: from is the client that did it, 0 for nobody (its time was
 * over). */
void tracking_invalidate(struct tracking *tracking, uint64_t from,
                         struct slice name, uint64_t hash,
                         struct notice_list *list);
void tracking_invalidate_all(struct tracking *tracking,
                             struct notice_list *list);

/* For INFO: tracking_total_keys, _items (clients over all keys), _prefixes. */
struct tracking_sums {
    uint64_t keys, items, prefixes;
};
struct tracking_sums tracking_sum(struct tracking *tracking);

/* Frees what flushes and clients that have gone left behind, a piece at a time;
 * true if there is more. From one thread. */
bool tracking_sweep(struct tracking *tracking);
