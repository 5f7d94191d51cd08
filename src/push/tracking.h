/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT TRACKING, for caches in clients. In the default mode a client gets one
 * invalidation when a key that it has read changes (readership.h). In BCAST
 * mode it gets one for every change of a name with one of its prefixes
 * (prefixes.h). Invalidations can be redirected to another client (targets.h).
 *
 * A read is remembered under the shared lock of the key's stripe, and a change
 * posts its invalidations under the exclusive lock. So either the change came
 * before the read, or the reader gets an invalidation.
 */
#pragma once

#include "push/notice.h"
#include "push/receiver.h"

#include <stddef.h>

struct tracking;

/* The options tracking-table-max-keys and tracking-table-max-bytes: beyond
 * them, some keys count as changed. 0: no limit. */
struct tracking_limits {
    const _Atomic uint64_t *keys, *bytes;
};

struct tracking *tracking_new(unsigned loops,
                              const struct tracking_limits *limits);
void tracking_free(struct tracking *tracking);

/* What CLIENT TRACKING ON asked for. */
struct tracking_options {
    bool bcast, optin, optout, noloop;
    uint64_t redirect;      /* the target's id; 0: the client itself */
    unsigned redirect_loop; /* loop of the target */
    const struct slice *prefixes;
    size_t prefix_count;
};

/* ---- on the receiver's loop ---------------------------------------------- */

/* Turns tracking on, or changes its options; adds the prefixes to the existing
 * ones. The caller has checked that the options are compatible. False: no
 * memory, nothing changed. */
bool tracking_on(struct tracking *tracking, struct receiver *receiver,
                 const struct tracking_options *options);
/* Turns tracking off. The keys that the client has read stay remembered, in
 * case it turns tracking on again. */
void tracking_off(struct tracking *tracking, struct receiver *receiver);

/* Ends the tracking of a client, at its end or for RESET, and forgets its keys.
 */
void tracking_leave(struct tracking *tracking, struct receiver *receiver);

/* Returns the options in force, with sorted prefixes; NULL: off. Borrowed until
 * tracking_on or tracking_off. */
const struct tracking_options *tracking_get(const struct receiver *receiver);

/* Returns the bytes of all prefixes and of the list of them, for limits. */
size_t tracking_prefix_bytes(const struct tracking_options *options);

/* Estimates the memory of this client's tracking: its prefixes and the keys
 * that it has read, as if it shared no key with others. */
size_t tracking_memory(const struct receiver *receiver);

/* Forgets a client as a target of redirected invalidations, when it ends or is
 * reset. */
void tracking_forget_target(struct tracking *tracking,
                            struct receiver *receiver);

/* Bits of receiver->tracks, for CLIENT LIST. */
enum { TRACKS = 1, TRACKS_BROKEN = 2, TRACKS_BCAST = 4 };

/* CLIENT CACHING: whether the reads of the next command (in MULTI: of the next
 * transaction) are remembered. Dispatch sets it back to the default. */
enum tracking_caching { CACHING_DEFAULT, CACHING_YES, CACHING_NO };
void tracking_set_caching(struct receiver *receiver,
                          enum tracking_caching caching);
enum tracking_caching tracking_caching(const struct receiver *receiver);

/* Returns whether the reads of this client must be remembered now. */
bool tracking_wants(const struct receiver *receiver);

/* Remembers that this client has read a key. Call it under the lock of the
 * key's stripe. */
void tracking_remember(struct tracking *tracking,
                       const struct receiver *receiver, struct slice name,
                       uint64_t hash, struct notice_list *list);

/* The loop that delivers notices. */
struct tracking_place {
    unsigned loop;
    struct notice_list *list; /* for notices to other loops */
    /* Finds the client with an id; NULL: it is not on this loop. */
    struct receiver *(*find)(void *ctx, uint64_t id);
    void *ctx;
};

/* Pushes an invalidation to one client, or, if `to` is 0, to all clients in
 * BCAST mode that follow a prefix of the name. NOTICE_INVALIDATE_ALL goes to
 * all clients that track. If the target is on another loop, posts a notice to
 * that loop. Returns false when until_ns has passed; the next call with the
 * same notice continues. */
bool tracking_deliver(struct tracking *tracking,
                      const struct tracking_place *place,
                      const struct notice *notice, uint64_t to,
                      uint64_t until_ns);

/* Closes the connections of all clients of this loop that track or are targets,
 * after an invalidation was lost. */
void tracking_cut(struct tracking *tracking,
                  const struct tracking_place *place);

/* ---- any thread, under the key's stripe or the raised gate --------------- */

/* Posts the invalidations for a change of a key. from: the client that changed
 * it; 0: none (it expired). */
void tracking_invalidate(struct tracking *tracking, uint64_t from,
                         struct slice name, uint64_t hash,
                         struct notice_list *list);
void tracking_invalidate_all(struct tracking *tracking,
                             struct notice_list *list);

/* For INFO: tracking_total_keys, _items (readers, summed over all keys),
 * _prefixes. */
struct tracking_sums {
    uint64_t keys, items, prefixes;
};
struct tracking_sums tracking_sum(struct tracking *tracking);

/* Frees keys forgotten by flushes, and readers that have left, a piece at a
 * time. Returns whether there is more. Call it from one thread only. */
bool tracking_sweep(struct tracking *tracking);
