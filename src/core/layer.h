/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One layer of a filter: a fixed number of items at a fixed rate. bloom.c owns
 * it, counts its items and selects the layer for an item; a layer only tests
 * and sets bits. Any number of readers or one writer at a time.
 *
 * Kinds (enum bloom_kind) differ in how bits are found, behind struct
 * layer_ops. The foreign ones are in core/foreign.h, the deletable one in
 * core/collision.h. Native layers are striped:
 *
 *   lines   [ stripe 0: line 0 .. line_count-1 ][ stripe 1 ... ] ...
 *   line    8 words of 64 bits, one cache line
 *
 *   for stripe s = 0, 1, ...: line mulhi64(high, line_count) of the stripe,
 *   bit (low >> (16 + 6 i)) & 63 of word i = 0..7; then high and low are both
 *   multiplied by 0x9E3779B97F4A7C15. Without the multiplication two items that
 *   share a line in every stripe would share every bit too, and the error rate
 *   of small layers would be several times too high.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/line.h"
#include "core/sizing.h"

#define BLOOM_KINDS 5 /* values of enum bloom_kind */

/* The operations by kind. Only layer_select_cpu() and layer_select_shared()
 * write them, before threads start. */
extern struct layer_ops layer_ops[BLOOM_KINDS];

/* Does what bloom_select_cpu() does. */
const char *layer_select_cpu(bool force_portable);

/* Does the same for a process whose threads look up items while one thread
 * adds: adds set bits by atomic stores, so that a lookup finds each bit that
 * was set before it. A caller that adds or frees a layer must itself make that
 * safe for the readers. */
const char *layer_select_shared(void);

/* Computes the bytes of the lines of a layer, which are whole lines. False if
 * they exceed INT64_MAX. */
bool layer_geometry_bytes(uint32_t kind, struct geometry geometry,
                          uint64_t *ret_bytes);

/* Makes an empty layer. Without memory returns false, and there is nothing to
 * undo. The geometry's bytes must not exceed INT64_MAX. */
bool layer_init(struct layer *layer, enum bloom_kind kind, uint64_t capacity,
                struct geometry geometry, const struct bloom_env *env);
void layer_fini(struct layer *layer, const struct bloom_env *env);

static inline const struct layer_ops *
layer_ops_of(const struct layer *layer)
{
    return &layer_ops[layer->kind];
}

static inline bool
layer_contains(const struct layer *layer, struct bloom_hash hash)
{
    return layer_ops_of(layer)->contains(layer, hash);
}

static inline bool
layer_add(struct layer *layer, struct bloom_hash hash)
{
    return layer_ops_of(layer)->add(layer, hash);
}

static inline void
layer_prefetch(const struct layer *layer, struct bloom_hash hash,
               uint32_t stripes)
{
    layer_ops_of(layer)->prefetch(layer, hash, stripes);
}

static inline uint64_t
layer_bytes(const struct layer *layer)
{
    return layer_ops_of(layer)->bytes(layer);
}
