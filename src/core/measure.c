/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of a few lines are read about as fast as single lines.
 */
#include "core/measure.h"

#include <math.h>

#include "base/err.h"
#include "core/foreign.h"
#include "core/plan.h"

enum { BLOCK_LINES = 16 };

/* The sums over the lines that were read in one stripe. */
struct sums {
    uint64_t lines;
    uint64_t ones;
    double products;
};

static void
add_block(const struct layer *layer, const struct line *lines, uint64_t count,
          struct sums *sums)
{
    sums->lines += count;
    sums->ones += layer_ops_of(layer)->ones(lines, (size_t)count);
    sums->products += layer_ops_of(layer)->products(lines, (size_t)count);
}

/* Reads all of COUNT lines, or blocks of them. */
static struct sums
read_lines(const struct layer *layer, const struct line *lines, uint64_t count,
           uint64_t lines_max)
{
    uint64_t blocks = (lines_max + BLOCK_LINES - 1) / BLOCK_LINES;
    struct sums sums = { 0 };

    if (count <= blocks * BLOCK_LINES) {
        add_block(layer, lines, count, &sums);
        return sums;
    }
    for (uint64_t i = 0; i < blocks; i++) {
        add_block(layer, &lines[count / blocks * i], BLOCK_LINES, &sums);
    }
    return sums;
}

/* Reads the lines of a deletable layer's stripe, or of some of its blocks, and
 * not their collision words. */
static struct sums
read_blocks(const struct layer *layer, const struct line *lines,
            uint64_t lines_max)
{
    uint64_t region = (uint64_t)1 << layer->log2;
    uint64_t blocks = (layer->line_count + region - 1) / region;
    uint64_t most = (lines_max + region - 1) / region;
    uint64_t step = blocks > most ? blocks / most : 1;
    struct sums sums = { 0 };

    for (uint64_t at = 0; at < blocks; at += step) {
        uint64_t left = layer->line_count - at * region;

        add_block(layer, &lines[at * (region + 1)],
                  left < region ? left : region, &sums);
    }
    return sums;
}

static struct sums
read_stripe(const struct layer *layer, uint32_t stripe, uint64_t lines_max)
{
    uint64_t lines = layer_bytes(layer) / layer->stripes / BLOOM_LINE_BYTES;
    const struct line *first = &layer->lines[stripe * lines];

    return layer->kind == BLOOM_DELETABLE
               ? read_blocks(layer, first, lines_max)
               : read_lines(layer, first, lines, lines_max);
}

static void
measure_striped(const struct layer *layer, uint64_t lines_max,
                struct measured *measured)
{
    uint64_t ones = 0;

    measured->lines = layer->line_count * layer->stripes;
    measured->bits = measured->lines * BLOOM_LINE_BYTES * 8;
    for (uint32_t stripe = 0; stripe < layer->stripes; stripe++) {
        struct sums sums = read_stripe(layer, stripe, lines_max);

        ones += sums.ones;
        measured->lines_read += sums.lines;
        measured->rate *= sums.products / (double)sums.lines;
    }
    measured->ones =
        (double)ones * (double)measured->lines / (double)measured->lines_read;
}

static void
measure_foreign(const struct layer *layer, uint64_t lines_max,
                struct measured *measured)
{
    struct sums sums;
    double fill;

    measured->lines = layer_bytes(layer) / BLOOM_LINE_BYTES;
    measured->bits = layer->line_count;
    sums = read_lines(layer, layer->lines, measured->lines, lines_max);
    measured->lines_read = sums.lines;
    fill =
        sums.lines == measured->lines
            ? (double)sums.ones / (double)measured->bits
            : (double)sums.ones / ((double)sums.lines * BLOOM_LINE_BYTES * 8);
    measured->ones = fill * (double)measured->bits;
    measured->rate = pow(fill, layer->stripes);
}

bool
measure_layer(const struct bloom *bloom, uint32_t index, uint64_t lines_max,
              struct measured *ret_measured)
{
    const struct layer *layer;

    if (index >= bloom->count) {
        return false;
    }
    layer = &bloom_layers_const(bloom)[index];
    *ret_measured = (struct measured){ .rate = 1 };
    if (foreign_is(layer->kind)) {
        measure_foreign(layer, lines_max, ret_measured);
    } else {
        measure_striped(layer, lines_max, ret_measured);
    }
    return true;
}

uint64_t
measure_share(const struct bloom *bloom, uint64_t lines)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint64_t stripes = 0;

    for (uint32_t i = 0; i < bloom->count; i++) {
        stripes += foreign_is(layers[i].kind) ? 1 : layers[i].stripes;
    }
    CHECK(stripes > 0);
    return lines / stripes > 0 ? lines / stripes : 1;
}

uint64_t
measure_layer_room(const struct bloom *bloom)
{
    const struct layer *newest = bloom_newest(bloom);

    return newest->items < newest->capacity ? newest->capacity - newest->items
                                            : 0;
}

void
measure_room_begin(struct measure_room *room, const struct bloom *bloom,
                   uint64_t limit_bytes)
{
    *room = (struct measure_room){ .params.struct_size = sizeof(room->params),
                                   .limit_bytes = limit_bytes,
                                   .room = measure_layer_room(bloom) };
    room->plan = bloom_plan(bloom, limit_bytes, &room->params);
}

bool
measure_room_step(struct measure_room *room)
{
    struct plan *plan = &room->plan;
    struct plan_layer next;

    if (room->room == BLOOM_CAPACITY_MAX ||
        plan_next(&room->params, plan, room->limit_bytes, &next) != BLOOM_OK) {
        return false;
    }
    if (next.capacity >= BLOOM_CAPACITY_MAX - room->room) {
        room->room = BLOOM_CAPACITY_MAX;
        return false;
    }
    room->room += next.capacity;
    plan->count++;
    plan->capacity = next.capacity;
    plan->line_bytes += next.line_bytes;
    plan->module_bytes = next.module_bytes;
    plan->rate = room->params.kind == BLOOM_REDISBLOOM
                     ? plan->rate * REDISBLOOM_TIGHTENING
                     : 0;
    return true;
}

const char *
bloom_kind_name(enum bloom_kind kind)
{
    static const char *const names[BLOOM_KINDS] = { "native", "redisbloom",
                                                    "valkeybloom", "deletable",
                                                    "ageing" };

    return kind < BLOOM_KINDS ? names[kind] : "unknown";
}
