/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stored form of a filter. Invariant: a filter has one stored form, and an
 * accepted dump is dumped to the same bytes again. All numbers are
 * little-endian.
 *
 *   offset  size  head
 *        0     4  magic "BLMY"
 *        4     2  version of this format: 1
 *        6     1  kind of all layers: 1 native (striped), 2 redisbloom,
 *                 3 valkeybloom, 4 deletable, 5 ageing
 *        7     1  flags: 128 incomplete, 64 keyed; of kind redisbloom plus its
 *                 options
 *        8     4  expansion; 0: nonscaling. Of kind redisbloom as its header
 *                 has it, and one of the options says nonscaling
 *       12     4  n: number of layers, 1..1024
 *       16     8  error rate of layer 0, IEEE 754 binary64
 *       24     8  tightening, the same
 *       32    32  seed
 *       64     8  incarnation: a number of the caller
 *       72  32 n  layers, oldest first (of kind redisbloom 48 n):
 *                   0  8  capacity
 *                   8  8  items
 *                  16  4  stripes; of the foreign kinds hashes
 *                  20  2  0; of kind redisbloom log2 of the modulus, or 0;
 *                         of kind deletable log2 of the region
 *                  22  2  0; of kind deletable the refund (core/deletable.h);
 *                         of kind ageing the age (core/ageing.h)
 *                  24  8  lines, of each stripe; of the foreign kinds bits
 *                  32  8  of kind redisbloom: the rate that it was made for
 *                  40  8  of kind redisbloom: bits an item
 *        -     8  of kind deletable: deletions that the items do not show
 *        -    24  of kind ageing: the turn (core/ageing.h) and the capacity,
 *                 8 bytes each; the seconds and the generations, 4 bytes each
 *        -     8  if keyed: the fingerprint of the secret (core/keyed.h)
 *        -     8  if incomplete: m, the number of parts of the stream
 *                 (core/stream.h) that have come; and of each of them
 *        -  16 m  the first byte, and the first byte behind it
 *        -        lines of all layers, oldest first; in a native layer stripe
 *                 after stripe (core/layer.h), a line being 8 words of 64 bits;
 *                 in a deletable one with its collisions (core/collision.h); in
 *                 a foreign one the bits, and zeros to the end of a line
 *      end     8  XXH3-64 of everything before
 *
 * Lines and stripes are stored, never recomputed: exp and pow of two libraries
 * may differ in the last bit. Every later version keeps the places of magic and
 * version, and the XXH3-64 in the last 8 bytes, so that a newer dump is not
 * mistaken for a damaged one.
 */
#include "core/codec_head.h"

#include <float.h>
#include <string.h>

#include "base/err.h"
#include "base/little.h"
#include "core/foreign.h"
#include "core/layer.h"
#include "core/parts.h"
#include "core/plan.h"
#include "core/sizing.h"
#include "core/turns.h"

enum {
    AT_VERSION = 4,
    AT_KIND = 6,
    AT_FLAGS = 7,
    AT_EXPANSION = 8,
    AT_LAYERS = 12,
    AT_ERROR_RATE = 16,
    AT_TIGHTENING = 24,
    AT_SEED = 32,
    AT_INCARNATION = 64,
    LAYER_AT_CAPACITY = 0,
    LAYER_AT_ITEMS = 8,
    LAYER_AT_STRIPES = 16,
    LAYER_AT_LOG2 = 20,
    LAYER_AT_REFUND = 22,
    LAYER_AT_LINES = 24,
    LAYER_AT_RATE = 32,
    LAYER_AT_BITS_PER_ITEM = 40,
    RING_AT_TURN = 0,
    RING_AT_CAPACITY = 8,
    RING_AT_SECONDS = 16,
    RING_AT_GENERATIONS = 20,
    KIND_FIRST = 1, /* how BLOOM_NATIVE is stored */
    FLAG_INCOMPLETE = 0x80,
    FLAG_KEYED = 0x40
};

static const uint8_t magic[4] = { 'B', 'L', 'M', 'Y' };

_Static_assert((int)AT_EXPANSION >= (int)CODEC_CHECKSUM_BYTES,
               "checksum_holds()");
_Static_assert(BLOOM_NATIVE == 0 && BLOOM_REDISBLOOM == 1 &&
                   BLOOM_VALKEYBLOOM == 2 && BLOOM_DELETABLE == 3 &&
                   BLOOM_AGEING == 4 && BLOOM_KINDS == 5,
               "a kind keeps its stored number");
_Static_assert((int)CODEC_RANGES_MAX == (int)COVERAGE_RANGES_MAX, "head");

/* ---- writing ------------------------------------------------------------- */

static size_t
entry_bytes(uint32_t kind)
{
    return kind == BLOOM_REDISBLOOM ? CODEC_LAYER_BYTES_MAX : CODEC_LAYER_BYTES;
}

/* Returns the bytes of the kind's own fields behind the table. */
static size_t
tail_bytes(uint32_t kind)
{
    return kind == BLOOM_DELETABLE ? CODEC_UNDONE_BYTES
           : kind == BLOOM_AGEING  ? CODEC_RING_BYTES
                                   : 0;
}

/* Returns where the tail of a complete filter ends. */
static size_t
tail_end(uint32_t kind, bool keyed, uint32_t layers)
{
    return codec_table_end(kind, layers) + tail_bytes(kind) +
           (keyed ? CODEC_FINGERPRINT_BYTES : 0);
}

size_t
codec_head_bytes(const struct bloom *bloom)
{
    return tail_end(bloom_kind(bloom), bloom_is_keyed(bloom), bloom->count);
}

size_t
codec_table_end(uint32_t kind, uint32_t layers)
{
    return CODEC_FIXED_BYTES + layers * entry_bytes(kind);
}

void
codec_put_fixed(const struct codec_head *head, uint8_t *ret_bytes)
{
    const struct bloom_params *params = &head->params;
    unsigned flags = head->incomplete ? FLAG_INCOMPLETE : 0;
    uint32_t expansion = params->expansion;

    if ((params->flags & BLOOM_KEYED) != 0) {
        flags |= FLAG_KEYED;
    }
    if (params->kind == BLOOM_REDISBLOOM) {
        flags |= head->options;
        expansion = head->growth;
    }
    memcpy(ret_bytes, magic, sizeof(magic));
    put_u16(ret_bytes + AT_VERSION, CODEC_VERSION);
    ret_bytes[AT_KIND] = (uint8_t)(params->kind + KIND_FIRST);
    ret_bytes[AT_FLAGS] = (uint8_t)flags;
    put_u32(ret_bytes + AT_EXPANSION, expansion);
    put_u32(ret_bytes + AT_LAYERS, head->layers);
    put_double(ret_bytes + AT_ERROR_RATE, params->error_rate);
    put_double(ret_bytes + AT_TIGHTENING, params->tightening);
    memcpy(ret_bytes + AT_SEED, params->seed, BLOOM_SEED_BYTES);
    put_u64(ret_bytes + AT_INCARNATION, head->incarnation);
}

void
codec_put_layer(uint32_t kind, uint32_t index, const struct codec_layer *layer,
                uint8_t *ret_bytes)
{
    uint8_t *to = ret_bytes + codec_table_end(kind, index);

    put_u64(to + LAYER_AT_CAPACITY, layer->capacity);
    put_u64(to + LAYER_AT_ITEMS, layer->items);
    put_u32(to + LAYER_AT_STRIPES, layer->stripes);
    put_u16(to + LAYER_AT_LOG2, (uint16_t)layer->log2);
    put_u16(to + LAYER_AT_REFUND, (uint16_t)layer->refund);
    put_u64(to + LAYER_AT_LINES, layer->lines);
    if (kind == BLOOM_REDISBLOOM) {
        put_double(to + LAYER_AT_RATE, layer->rate);
        put_double(to + LAYER_AT_BITS_PER_ITEM, layer->bits_per_item);
    }
}

/* Writes the additional fields of an ageing filter. */
static size_t
put_ring(const struct bloom_extra *extra, uint8_t *to)
{
    put_u64(to + RING_AT_TURN, extra->turn);
    put_u64(to + RING_AT_CAPACITY, extra->capacity);
    put_u32(to + RING_AT_SECONDS, extra->seconds);
    put_u32(to + RING_AT_GENERATIONS, extra->generations);
    return CODEC_RING_BYTES;
}

/* Writes which parts of the stream an incomplete filter has. */
static size_t
put_ranges(const struct bloom_coverage *coverage, uint8_t *to)
{
    put_u64(to, coverage->count);
    to += 8;
    for (uint64_t i = 0; i < coverage->count; i++, to += CODEC_RANGE_BYTES) {
        put_u64(to, coverage->ranges[i].from);
        put_u64(to + 8, coverage->ranges[i].to);
    }
    return 8 + (size_t)coverage->count * CODEC_RANGE_BYTES;
}

static void
put_table(const struct bloom *bloom, uint8_t *to)
{
    enum bloom_kind kind = bloom_kind(bloom);

    for (uint32_t i = 0; i < bloom->count; i++) {
        const struct layer *layer = &bloom_layers_const(bloom)[i];
        struct codec_layer stored = { .capacity = layer->capacity,
                                      .items = layer->items,
                                      .lines = layer->line_count,
                                      .stripes = layer->stripes,
                                      .log2 = layer->log2,
                                      .refund = layer->refund };

        if (kind == BLOOM_REDISBLOOM) {
            stored.rate = bloom_extra_layers(bloom)[i].rate;
            stored.bits_per_item = bloom_extra_layers(bloom)[i].bits_per_item;
        }
        codec_put_layer(kind, i, &stored, to);
    }
}

size_t
codec_put_head(const struct bloom *bloom, uint64_t incarnation, void *ret_bytes)
{
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    struct codec_head head = { .params = { .struct_size = sizeof(head.params) },
                               .incarnation = incarnation,
                               .layers = bloom->count,
                               .incomplete = bloom_is_incomplete(bloom) };
    uint8_t *to = ret_bytes;
    size_t bytes = codec_table_end(bloom_kind(bloom), bloom->count);

    CHECK(bloom->count >= 1 && bloom->count <= BLOOM_LAYERS_MAX);
    bloom_get_params(bloom, &head.params);
    if (extra != NULL && bloom_kind(bloom) != BLOOM_AGEING) {
        head.options = extra->options;
        head.growth = extra->growth;
    }
    codec_put_fixed(&head, to);
    put_table(bloom, to);
    if (bloom_kind(bloom) == BLOOM_DELETABLE) {
        CHECK(extra != NULL);
        put_u64(to + bytes, extra->undone);
        bytes += CODEC_UNDONE_BYTES;
    }
    if (bloom_kind(bloom) == BLOOM_AGEING) {
        CHECK(extra != NULL);
        bytes += put_ring(extra, to + bytes);
    }
    if (bloom_is_keyed(bloom)) {
        put_u64(to + bytes, bloom_keyed_of(bloom)->fingerprint);
        bytes += CODEC_FINGERPRINT_BYTES;
    }
    if (head.incomplete) {
        CHECK(extra != NULL);
        bytes += put_ranges(extra->coverage, to + bytes);
    }
    return bytes;
}

/* ---- reading ------------------------------------------------------------- */

void
codec_get_layer(const struct codec_head *head, uint32_t index,
                struct codec_layer *ret_layer)
{
    const uint8_t *at = head->table + index * entry_bytes(head->params.kind);

    CHECK(index < head->layers);
    *ret_layer =
        (struct codec_layer){ .capacity = get_u64(at + LAYER_AT_CAPACITY),
                              .items = get_u64(at + LAYER_AT_ITEMS),
                              .lines = get_u64(at + LAYER_AT_LINES),
                              .stripes = get_u32(at + LAYER_AT_STRIPES),
                              .log2 = get_u16(at + LAYER_AT_LOG2),
                              .refund = get_u16(at + LAYER_AT_REFUND) };
    if (head->params.kind == BLOOM_REDISBLOOM) {
        ret_layer->rate = get_double(at + LAYER_AT_RATE);
        ret_layer->bits_per_item = get_double(at + LAYER_AT_BITS_PER_ITEM);
    }
}

/* Zero was never a version or a kind: it is damage, not a newer format. */
static enum bloom_status
check_format(const uint8_t *at, size_t len)
{
    unsigned flags = FLAG_INCOMPLETE;
    uint16_t version;

    if (len < AT_EXPANSION || memcmp(at, magic, sizeof(magic)) != 0) {
        return BLOOM_CORRUPT;
    }
    version = get_u16(at + AT_VERSION);
    if (version == 0) {
        return BLOOM_CORRUPT;
    }
    if (version != CODEC_VERSION) {
        return BLOOM_VERSION;
    }
    if (at[AT_KIND] < KIND_FIRST) {
        return BLOOM_CORRUPT;
    }
    if (at[AT_KIND] - KIND_FIRST == BLOOM_REDISBLOOM) {
        flags |= REDISBLOOM_OPTIONS_ALL;
    }
    if (!foreign_is(at[AT_KIND] - (uint32_t)KIND_FIRST)) {
        flags |= FLAG_KEYED;
    }
    return at[AT_KIND] - KIND_FIRST < BLOOM_KINDS &&
                   (at[AT_FLAGS] & ~flags) == 0
               ? BLOOM_OK
               : BLOOM_VERSION;
}

/* Returns false if the number overflows. */
static bool
get_layer_bytes(const struct codec_head *head, uint32_t index,
                uint64_t *ret_bytes)
{
    struct codec_layer layer;
    struct geometry geometry;

    codec_get_layer(head, index, &layer);
    geometry =
        (struct geometry){ .lines = layer.lines, .stripes = layer.stripes };
    if (head->params.kind == BLOOM_DELETABLE) {
        geometry.log2 = layer.log2;
    }
    return layer_geometry_bytes(head->params.kind, geometry, ret_bytes);
}

uint64_t
codec_layer_bytes(const struct codec_head *head, uint32_t index)
{
    uint64_t bytes = 0;

    CHECK(get_layer_bytes(head, index, &bytes)); /* checked at reading */
    return bytes;
}

/* Sets line_bytes and total_bytes. False if a sum overflows. */
static bool
sum_bytes(struct codec_head *head)
{
    head->line_bytes = 0;
    for (uint32_t i = 0; i < head->layers; i++) {
        uint64_t bytes;

        if (!get_layer_bytes(head, i, &bytes) ||
            __builtin_add_overflow(head->line_bytes, bytes,
                                   &head->line_bytes)) {
            return false;
        }
    }
    return !__builtin_add_overflow(head->line_bytes,
                                   head->head_bytes + CODEC_CHECKSUM_BYTES,
                                   &head->total_bytes);
}

/* Finds the table and the ranges. False: too few bytes, or an invalid count. */
static bool
find_table(const uint8_t *at, size_t len, struct codec_head *head)
{
    bool keyed = (head->params.flags & BLOOM_KEYED) != 0;

    head->layers = get_u32(at + AT_LAYERS);
    if (head->layers < 1 || head->layers > BLOOM_LAYERS_MAX) {
        return false;
    }
    head->table = at + CODEC_FIXED_BYTES;
    head->head_bytes = tail_end(head->params.kind, keyed, head->layers);
    if (len >= head->head_bytes && head->params.kind == BLOOM_DELETABLE) {
        head->undone =
            get_u64(at + codec_table_end(head->params.kind, head->layers));
    }
    if (len >= head->head_bytes && keyed) {
        head->params.fingerprint =
            get_u64(at + head->head_bytes - CODEC_FINGERPRINT_BYTES);
    }
    if (len < head->head_bytes || !head->incomplete) {
        return len >= head->head_bytes;
    }
    if (len - head->head_bytes < 8) {
        return false;
    }
    head->range_count = get_u64(at + head->head_bytes);
    head->head_bytes += 8;
    head->ranges = at + head->head_bytes;
    if (head->range_count > CODEC_RANGES_MAX ||
        (len - head->head_bytes) / CODEC_RANGE_BYTES < head->range_count) {
        return false;
    }
    head->head_bytes += (size_t)head->range_count * CODEC_RANGE_BYTES;
    return true;
}

/* Reads the additional fields of an ageing filter. */
static void
read_ring(const uint8_t *at, struct codec_head *head)
{
    struct bloom_params *params = &head->params;

    head->turn = get_u64(at + RING_AT_TURN);
    params->capacity = get_u64(at + RING_AT_CAPACITY);
    params->seconds = get_u32(at + RING_AT_SECONDS);
    params->generations = get_u32(at + RING_AT_GENERATIONS);
    if (turns_are_valid(params->seconds, params->generations)) {
        params->now_ms =
            turns_begin_ms(params->seconds, params->generations, head->turn);
    }
}

static void
read_params(const uint8_t *at, struct codec_head *head)
{
    struct bloom_params *params = &head->params;
    struct codec_layer first;

    codec_get_layer(head, 0, &first);
    params->capacity = first.capacity;
    params->error_rate = get_double(at + AT_ERROR_RATE);
    params->tightening = get_double(at + AT_TIGHTENING);
    params->expansion = get_u32(at + AT_EXPANSION);
    params->stripes = first.stripes;
    params->lines = first.lines;
    memcpy(params->seed, at + AT_SEED, BLOOM_SEED_BYTES);
    if (params->kind == BLOOM_DELETABLE) {
        params->region = 1U << first.log2; /* sum_bytes() has checked it */
    }
    if (params->kind == BLOOM_AGEING) {
        read_ring(at + codec_table_end(params->kind, head->layers), head);
    }
    if (params->kind == BLOOM_REDISBLOOM) {
        head->growth = params->expansion;
        if ((head->options & REDISBLOOM_NO_SCALING) != 0) {
            params->expansion = 0;
        }
    }
}

enum bloom_status
codec_read_head(const void *data, size_t len, struct codec_head *ret_head)
{
    const uint8_t *at = data;
    struct codec_head head = { 0 };
    enum bloom_status status = check_format(at, len);

    if (status != BLOOM_OK) {
        return status;
    }
    if (len < CODEC_FIXED_BYTES) {
        return BLOOM_CORRUPT;
    }
    head.params.struct_size = sizeof(head.params);
    head.params.kind = at[AT_KIND] - (uint32_t)KIND_FIRST;
    head.incomplete = (at[AT_FLAGS] & FLAG_INCOMPLETE) != 0;
    head.options = at[AT_FLAGS] & REDISBLOOM_OPTIONS_ALL;
    head.params.flags = (at[AT_FLAGS] & FLAG_KEYED) != 0 ? BLOOM_KEYED : 0;
    if (!find_table(at, len, &head) || !sum_bytes(&head)) {
        return BLOOM_CORRUPT;
    }
    head.incarnation = get_u64(at + AT_INCARNATION);
    read_params(at, &head);
    *ret_head = head;
    return BLOOM_OK;
}
