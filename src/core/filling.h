/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fills a new filter of a foreign kind with the bits of a stored one, in
 * pieces, so that a server need not stand still for a large filter. The stored
 * bytes may lie elsewhere at the next piece. Pure, any thread.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lzf.h"
#include "core/rdb.h"

/* Reads the array of the next layer, whose fields were checked before. */
typedef void (*filling_next_fn)(struct rdb_in *in, unsigned version, bool last,
                                struct rdb_string *ret_array);

struct filling {
    const uint8_t *stored; /* where the bytes were at the last piece */
    struct rdb_in in;      /* layers to come */
    filling_next_fn next;
    unsigned version; /* version of the form; `next` needs it */
    size_t head;      /* bytes of an array in front of its bits */
    uint32_t layer;   /* being filled; at the end, the number of layers */
    struct rdb_string array; /* its array; `at` is the next byte of it */
    size_t at;
    struct lzf lzf;
    uint8_t *unpacked; /* a packed array with a head; from env, or NULL */
    bool begun;        /* the array has been read */
};

/* Fills in about BYTES more bytes. The stored bytes begin at STORED. Sets
 * *ret_more to whether there are more to fill in. Fails with BLOOM_CORRUPT,
 * BLOOM_NOMEM. */
enum bloom_status filling_step(struct filling *filling, const void *stored,
                               struct bloom *bloom, const struct bloom_env *env,
                               size_t bytes, bool *ret_more);

/* Frees the memory of a filling, at its end or earlier. */
void filling_fini(struct filling *filling, const struct bloom_env *env);

/* Fills in everything, and ends the filling. On failure frees the filter. */
enum bloom_status filling_finish(struct filling *filling, const void *stored,
                                 struct bloom *bloom,
                                 const struct bloom_env *env);
