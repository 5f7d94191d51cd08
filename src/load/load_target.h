/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server that is filled with filters, and what is known about its keys: a
 * key is ours if the tool brought it, spared if it was there before and
 * --existing skip leaves it alone, lost if the server refused a part of it.
 * Commands are pipelined, so a refusal is noticed some commands later.
 */
#pragma once

#include "base/map.h"
#include "load/load_link.h"
#include "tools/rdb.h"

enum { LOAD_DATABASES_MAX = 1024 };

/* How much later a time to live ends that is put off: never. */
#define LOAD_LATER_MS (UINT64_C(1) << 61)

enum load_key {
    LOAD_KEY_UNKNOWN,
    LOAD_KEY_OURS,
    LOAD_KEY_SPARED,
    LOAD_KEY_LOST
};

struct load_target {
    struct load *load;
    struct load_link link;
    struct load_link side; /* for questions about keys; fd -1: not open */
    uint64_t bulk_max;     /* bytes of an argument that the server takes */
    uint64_t db;           /* database that `link` has selected */
    uint64_t side_db;
    struct buf awaited; /* what each awaited reply answers */
    size_t awaited_at;
    struct map keys[LOAD_DATABASES_MAX];
    struct map in_pieces[LOAD_DATABASES_MAX]; /* keys by BF.LOADCHUNK */
    unsigned round; /* number of the full copy; see load_target_delete_old */
    bool stopped;
    uint64_t hold_ms; /* times to live that end in so long are put off;
                         0: none (load_ttl.h) */
    bool held;        /* one was put off */

    uint64_t restored, spared, expired, refused; /* counts of filters */
    uint64_t full;     /* commands on filters that are full, as at the source */
    uint64_t left_out; /* filters in databases that --db leaves out */
    uint64_t complaints;
};

/* Connects. False: the reason was printed. */
bool load_target_open(struct load *load, struct load_target *ret_target);
void load_target_close(struct load_target *target);

enum load_key load_target_key(const struct load_target *target, uint64_t db,
                              struct slice key);
bool load_target_forget(struct load_target *target, uint64_t db,
                        struct slice key);

/* The functions below return false if the tool must stop; the reason was
 * printed. */

/* Restores a filter as --existing says. The payload is VALUE, then FOOTER. */
bool load_target_restore(struct load_target *target, uint64_t db,
                         struct slice key, uint64_t expires_at_ms,
                         struct slice value, struct slice footer);

/* Returns the time to live that the server gets instead of this one: a later
 * one if it ends in the next hold_ms, or has ended; else the same. 0 stands for
 * none. */
uint64_t load_target_put_off(struct load_target *target, uint64_t at_ms);

/* Restores a filter that an RDB holds, unless it has expired and times to live
 * are not put off, or --db leaves its database out. For struct rdb_visitor: ctx
 * is the target. */
bool load_target_on_filter(void *ctx, const struct rdb_filter *filter);

/* Prepares for a command that may create the key: asks whether the server has
 * it, unless this is known. With --existing replace it deletes the key instead.
 * *ret_go says whether the command may be sent. It may not if --db leaves the
 * database out. */
bool load_target_claim(struct load_target *target, uint64_t db,
                       struct slice key, bool *ret_go);

/* Does the same for a key to which RENAME will bring a filter: with --existing
 * replace, the former filter stays until then. */
bool load_target_claim_name(struct load_target *target, uint64_t db,
                            struct slice key, bool *ret_go);

/* Passes a command on. Its reply is checked; messages name `key`. */
bool load_target_command(struct load_target *target, uint64_t db,
                         struct slice key, const struct slice *words,
                         size_t count);

/* load_target_make() restores a filter that a command made, from its dump
 * without its end. load_target_add() adds items to a filter. */
bool load_target_make(struct load_target *target, uint64_t db, struct slice key,
                      const struct buf *value);
bool load_target_add(struct load_target *target, uint64_t db, struct slice key,
                     const struct slice *items, size_t count);

/* load_target_note_piece() notes a filter that comes in pieces. At the end,
 * load_target_check_pieces() asks whether the server has all pieces of these
 * filters; it names the incomplete ones, with status 3. */
bool load_target_note_piece(struct load_target *target, uint64_t db,
                            struct slice key);
bool load_target_check_pieces(struct load_target *target);

/* Takes the replies that have arrived; waits while too many are awaited. */
bool load_target_push(struct load_target *target);

/* Waits for all replies. */
bool load_target_drain(struct load_target *target);

/* load_target_begin_round() begins a full copy. At its end,
 * load_target_delete_old() deletes the keys of earlier copies that this one did
 * not bring. */
void load_target_begin_round(struct load_target *target);
bool load_target_delete_old(struct load_target *target);

/* Prints what became of the filters. */
void load_target_report(const struct load_target *target);

/* Prints a refusal about a key, unless many were printed. */
__attribute__((format(printf, 4, 5))) void
load_target_refuse(struct load_target *target, uint64_t db, struct slice key,
                   const char *format, ...);
