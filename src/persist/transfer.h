/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A snapshot on its way in: bytes that come from another server are read, as
 * hostile as a file is, by a thread of its own into a keyspace of its own,
 * while the present data is served. Loop 0 makes it, feeds it and asks for the
 * result; the thread only touches what is its own and the queue between the
 * two (one mutex, a leaf).
 */
#pragma once

#include "keyspace/keyspace.h"
#include "keyspace/make.h"
#include "persist/snapshot.h"

struct transfer;

struct transfer_options {
    struct keyspace_options keyspace; /* as the one in use, no hooks */
    /* The one in use: frees in the background what was loaded and is not
     * wanted (keyspace_discard). NULL: the thread, or transfer_free, does. */
    struct keyspace *present;
    const struct bloom_env *env; /* without limits but the machine's */
    size_t queue_bytes;          /* put says "enough" from here on */
    /* Room came free, or the thread has ended. Its thread; takes nothing that
     * loop 0 could hold while it calls anything here. */
    void (*poke)(void *ctx);
    void *ctx;
};

/* NULL: no memory, or no thread. */
struct transfer *transfer_new(const struct transfer_options *options);

/* Cancels one that runs; the thread stops at the next key or piece of lines,
 * so this takes milliseconds. What is loaded and not taken is freed: without
 * `present` that may take as long as the loading. NULL is fine. */
void transfer_free(struct transfer *transfer);

/* Takes a copy of all the bytes; of one that has failed, forgets them. False:
 * that is enough for now, the source should pause until poke was called and
 * transfer_has_room says so. Not after transfer_finish. */
bool transfer_put(struct transfer *transfer, struct slice bytes);
bool transfer_has_room(struct transfer *transfer);

/* The source has no more: only now the snapshot can be complete. */
void transfer_finish(struct transfer *transfer);

/* ret_reason: one English sentence, of one that has failed. */
enum transfer_state { TRANSFER_RUNS, TRANSFER_LOADED, TRANSFER_FAILED };
enum transfer_state transfer_poll(struct transfer *transfer, char *ret_reason,
                                  size_t reason_size);

/* Of one that is loaded, once: the keyspace is the caller's now. */
struct keyspace *transfer_take(struct transfer *transfer,
                               struct snapshot_stamp *ret_stamp);

/* Bytes and keys read so far. */
const struct snapshot_progress *
transfer_progress(const struct transfer *transfer);
