/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A snapshot that comes from another server. A thread reads it, as untrusted
 * input, into a keyspace of its own, while the present data is served. Loop 0
 * makes the transfer, feeds it and asks for the result; the thread only touches
 * its own data and the queue between the two (one mutex, a leaf).
 */
#pragma once

#include "keyspace/keyspace.h"
#include "keyspace/make.h"
#include "snapshot/snapshot_stamp.h"

struct completion;
struct transfer;
struct walk_part; /* keyspace/walk_part.h */

/* Gets all bytes that a transfer has read, in order. The transfer's thread
 * calls it. */
struct transfer_copy {
    /* Takes over `memory`, which has the bytes, and frees it with mem_free. It
     * may wait, until the transfer is cancelled. */
    void (*take)(void *ctx, void *memory, struct slice bytes);
    void (*end)(void *ctx, bool good); /* good: all read, and intact */
    void *ctx;
};

struct transfer_options {
    struct keyspace_options
        keyspace; /* as those of the keyspace in use, without hooks */
    /* The keyspace in use: its reaper frees loaded data that is not wanted
     * (keyspace_discard). NULL: the thread, or transfer_free, frees
     * it. */
    struct keyspace *present;
    const struct bloom_env *env; /* limited only by the machine's memory */
    const struct completion *completion; /* snapshot/completion.h */
    const struct walk_part *part;        /* the snapshot's keys; NULL: all */
    struct transfer_copy copy;           /* zeros: there is none */
    size_t queue_bytes; /* with as many, transfer_put returns false */
    /* Called when the queue has room again, or the thread has ended. The thread
     * calls it, without a lock that loop 0 could hold. */
    void (*poke)(void *ctx);
    void *ctx;
};

/* Starts the thread. Returns NULL without memory or without a thread. */
struct transfer *transfer_new(const struct transfer_options *options);

/* Cancels a transfer that runs; the thread stops at the next key or piece of
 * lines, so this takes milliseconds. Frees loaded data that was not taken:
 * without `present` that may take as long as the loading. NULL is fine. */
void transfer_free(struct transfer *transfer);

/* Copies the bytes into the queue; drops them after a failure. False: the
 * source should pause until poke was called and transfer_has_room is true. Do
 * not call it after transfer_finish. */
bool transfer_put(struct transfer *transfer, struct slice bytes);
bool transfer_has_room(struct transfer *transfer);

/* Says that the source has ended: only then can the snapshot be complete. */
void transfer_finish(struct transfer *transfer);

/* Returns the state. ret_reason: one English sentence, after a failure. */
enum transfer_state { TRANSFER_RUNS, TRANSFER_LOADED, TRANSFER_FAILED };
enum transfer_state transfer_poll(struct transfer *transfer, char *ret_reason,
                                  size_t reason_size);

/* Returns the keyspace of a LOADED transfer, once; the caller owns it. */
struct keyspace *transfer_take(struct transfer *transfer,
                               struct snapshot_stamp *ret_stamp);
