/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The header (numbers little-endian, nothing between them):
 *
 *   offset  size
 *        0     8  items of all layers
 *        8     4  n: number of layers
 *       12     4  options: 1 noround, 2 ents is bits, 4 force64, 8 no scaling
 *       16     4  growth; version 2.0 and older do not have it: 2
 *       20  53 n  layers, oldest first
 *                   0  8  bytes of the bit array
 *                   8  8  bits
 *                  16  8  items
 *                  24  8  rate, IEEE 754 binary64
 *                  32  8  bits an item, the same
 *                  40  4  hashes
 *                  44  8  capacity; version 2.2.0 and older: 4
 *                  52  1  log2 of the modulus; 0: the modulus is bits
 *
 * Nothing tells the version but the length: 16 + 49 n, 20 + 49 n or 20 + 53 n.
 *
 * The value is a list of fields: items, n, options (from version 2), growth
 * (from version 4); for each layer capacity, rate, hashes, bits an item, bits
 * and log2 (from version 1), bit array, items.
 */
#include "core/redisbloom.h"

#include <string.h>

#include "base/err.h"
#include "base/little.h"
#include "core/codec.h"
#include "core/env.h"
#include "core/foreign.h"
#include "core/parts.h"
#include "core/stream.h"

enum {
    OLD_START = 16, /* where the layers begin, without growth */
    START = 20,
    OLD_LINK = 49,
    LINK = REDISBLOOM_LINK_BYTES,
    AT_COUNT = 8,
    AT_OPTIONS = 12,
    AT_GROWTH = 16,
    LINK_AT_BITS = 8,
    LINK_AT_ITEMS = 16,
    LINK_AT_RATE = 24,
    LINK_AT_BITS_PER_ITEM = 32,
    LINK_AT_HASHES = 40,
    LINK_AT_CAPACITY = 44,
    OLD_GROWTH = 2
};

/* The state of reading a filter. */
struct reading {
    struct codec_head head;
    uint64_t items; /* of all layers, as stored */
    uint64_t sum;   /* of the layers so far */
    uint8_t *bytes; /* the head in our form */
    size_t len;
};

/* ---- into our own form --------------------------------------------------- */

static enum bloom_status
begin_filter(struct reading *reading, const struct bloom_env *env)
{
    struct codec_head *head = &reading->head;

    if (head->layers < 1 || head->options > REDISBLOOM_OPTIONS_ALL) {
        return BLOOM_CORRUPT;
    }
    if (head->layers > BLOOM_LAYERS_MAX) {
        return BLOOM_MAX_LAYERS;
    }
    head->params.kind = BLOOM_REDISBLOOM;
    head->params.tightening = REDISBLOOM_TIGHTENING;
    /* 8 zero bytes behind the table: no range of bits has come. */
    reading->len = codec_table_end(BLOOM_REDISBLOOM, head->layers) + 8;
    reading->bytes = env->alloc(env->ctx, reading->len);
    if (reading->bytes == NULL) {
        return BLOOM_NOMEM;
    }
    memset(reading->bytes, 0, reading->len);
    return BLOOM_OK;
}

/* Adds a layer whose array has so many bytes. False if they do not fit. Filters
 * of version 2.0 and older store 0 as the number of bits, which log2 gives. */
static bool
add_layer(struct reading *reading, uint32_t index, uint64_t bytes,
          struct codec_layer *layer)
{
    if (layer->lines == 0 && layer->log2 > 0 && bytes <= UINT64_MAX / 8) {
        layer->lines = bytes * 8;
    }
    if (layer->lines == 0 || foreign_bytes(layer->lines) != bytes ||
        __builtin_add_overflow(reading->sum, layer->items, &reading->sum)) {
        return false;
    }
    if (index == 0) {
        reading->head.params.error_rate = layer->rate;
    }
    codec_put_layer(BLOOM_REDISBLOOM, index, layer, reading->bytes);
    return true;
}

static enum bloom_status
make_bloom(struct reading *reading, bool incomplete,
           const struct bloom_env *env, struct bloom **ret_bloom)
{
    struct codec_head head;
    enum bloom_status status;

    if (reading->sum != reading->items) {
        return BLOOM_CORRUPT;
    }
    reading->head.incomplete = incomplete;
    codec_put_fixed(&reading->head, reading->bytes);
    status = codec_read_head(reading->bytes, reading->len, &head);
    if (status == BLOOM_OK) {
        status = codec_check_head(&head);
    }
    return status == BLOOM_OK ? codec_new(&head, env, ret_bloom) : status;
}

static void
end_filter(struct reading *reading, const struct bloom_env *env)
{
    if (reading->bytes != NULL) {
        env->free(env->ctx, reading->bytes, reading->len);
    }
}

/* ---- the header ---------------------------------------------------------- */

/* Finds out where the layers begin and how long each is. */
static bool
find_layers(size_t len, uint64_t count, size_t *ret_start, size_t *ret_link)
{
    *ret_start = len == OLD_START + count * OLD_LINK ? OLD_START : START;
    *ret_link = len == START + count * LINK ? LINK : OLD_LINK;
    return len == *ret_start + count * *ret_link;
}

static enum bloom_status
read_links(struct reading *reading, const uint8_t *at, size_t link)
{
    bool old = link == OLD_LINK;

    for (uint32_t i = 0; i < reading->head.layers; i++, at += link) {
        const uint8_t *capacity = at + LINK_AT_CAPACITY;
        struct codec_layer layer = {
            .capacity = old ? get_u32(capacity) : get_u64(capacity),
            .items = get_u64(at + LINK_AT_ITEMS),
            .lines = get_u64(at + LINK_AT_BITS),
            .stripes = get_u32(at + LINK_AT_HASHES),
            .log2 = at[link - 1],
            .rate = get_double(at + LINK_AT_RATE),
            .bits_per_item = get_double(at + LINK_AT_BITS_PER_ITEM),
        };

        if (!add_layer(reading, i, get_u64(at), &layer)) {
            return BLOOM_CORRUPT;
        }
    }
    return BLOOM_OK;
}

enum bloom_status
redisbloom_read_header(const void *data, size_t len,
                       const struct bloom_env *env, struct bloom **ret_bloom)
{
    const uint8_t *at = data;
    struct reading reading = { .items = 0 };
    enum bloom_status status;
    size_t start;
    size_t link;

    env = env_or_default(env);
    if (len < OLD_START ||
        !find_layers(len, get_u32(at + AT_COUNT), &start, &link)) {
        return BLOOM_CORRUPT;
    }
    reading.items = get_u64(at);
    reading.head.layers = get_u32(at + AT_COUNT);
    reading.head.options = get_u32(at + AT_OPTIONS);
    reading.head.growth = start == START ? get_u32(at + AT_GROWTH) : OLD_GROWTH;
    status = begin_filter(&reading, env);
    if (status == BLOOM_OK) {
        status = read_links(&reading, at + start, link);
    }
    if (status == BLOOM_OK) {
        status = make_bloom(&reading, true, env, ret_bloom);
    }
    end_filter(&reading, env);
    return status;
}

size_t
redisbloom_put_header(const struct bloom *bloom, uint8_t *ret_bytes)
{
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    uint8_t *to = ret_bytes;

    CHECK(extra != NULL);
    put_u64(to, bloom_items(bloom));
    put_u32(to + AT_COUNT, bloom->count);
    put_u32(to + AT_OPTIONS, extra->options);
    put_u32(to + AT_GROWTH, extra->growth);
    to += START;
    for (uint32_t i = 0; i < bloom->count; i++, to += LINK) {
        const struct layer *layer = &bloom_layers_const(bloom)[i];
        const struct bloom_extra_layer *more = &bloom_extra_layers(bloom)[i];

        put_u64(to, foreign_bytes(layer->line_count));
        put_u64(to + LINK_AT_BITS, layer->line_count);
        put_u64(to + LINK_AT_ITEMS, layer->items);
        put_double(to + LINK_AT_RATE, more->rate);
        put_double(to + LINK_AT_BITS_PER_ITEM, more->bits_per_item);
        put_u32(to + LINK_AT_HASHES, layer->stripes);
        put_u64(to + LINK_AT_CAPACITY, layer->capacity);
        to[LINK - 1] = layer->log2;
    }
    return (size_t)(to - ret_bytes);
}

/* ---- the value ----------------------------------------------------------- */

enum { VERSION_BITS = 1, VERSION_OPTIONS = 2, VERSION_GROWTH = 4 };

/* Reads the fields of one layer. */
static void
read_layer(struct rdb_in *in, unsigned version, struct codec_layer *ret_layer,
           struct rdb_string *ret_array)
{
    struct codec_layer layer = { .capacity = rdb_field_uint(in) };
    uint64_t hashes;
    uint64_t log2 = 0;

    layer.rate = rdb_field_double(in);
    hashes = rdb_field_uint(in);
    layer.bits_per_item = rdb_field_double(in);
    if (version >= VERSION_BITS) {
        layer.lines = rdb_field_uint(in);
        log2 = rdb_field_uint(in);
    } else {
        double bits = (double)layer.capacity * layer.bits_per_item;

        layer.lines = bits >= 1 && bits < 0x1p62 ? (uint64_t)bits : 0;
    }
    /* Numbers that are too large for their fields are no valid ones. */
    layer.stripes = hashes <= UINT32_MAX ? (uint32_t)hashes : 0;
    layer.log2 = log2 <= UINT32_MAX ? (uint32_t)log2 : UINT32_MAX;
    rdb_field_string(in, ret_array);
    layer.items = rdb_field_uint(in);
    *ret_layer = layer;
}

static enum bloom_status
read_layers(struct reading *reading, struct rdb_in *in, unsigned version)
{
    for (uint32_t i = 0; i < reading->head.layers; i++) {
        struct codec_layer layer;
        struct rdb_string array;

        read_layer(in, version, &layer, &array);
        if (in->failed || !add_layer(reading, i, array.len, &layer)) {
            return BLOOM_CORRUPT;
        }
    }
    return rdb_length(in) == RDB_EOF && !in->failed ? BLOOM_OK : BLOOM_CORRUPT;
}

/* Reads the array of a layer that read_layers() has accepted. */
static void
next_array(struct rdb_in *in, unsigned version, bool last,
           struct rdb_string *ret_array)
{
    struct codec_layer layer;

    (void)last;
    read_layer(in, version, &layer, ret_array);
}

static void
read_head(struct rdb_in *in, unsigned version, struct reading *reading)
{
    uint64_t layers;
    uint64_t options = 0;
    uint64_t growth = OLD_GROWTH;

    reading->items = rdb_field_uint(in);
    layers = rdb_field_uint(in);
    if (version >= VERSION_OPTIONS) {
        options = rdb_field_uint(in);
    }
    if (version >= VERSION_GROWTH) {
        growth = rdb_field_uint(in);
    }
    reading->head.layers = layers <= UINT32_MAX ? (uint32_t)layers : 0;
    reading->head.options =
        options <= UINT32_MAX ? (uint32_t)options : UINT32_MAX;
    reading->head.growth = (uint32_t)growth;
    in->failed = in->failed || growth > UINT32_MAX;
}

enum bloom_status
redisbloom_read_value(struct rdb_in *in, unsigned version,
                      const struct bloom_env *env, struct filling *ret_filling,
                      struct bloom **ret_bloom)
{
    struct reading reading = { .items = 0 };
    enum bloom_status status;
    struct rdb_in layers;

    env = env_or_default(env);
    if (version > REDISBLOOM_MODULE_VERSION) {
        return BLOOM_VERSION;
    }
    read_head(in, version, &reading);
    if (in->failed) {
        return BLOOM_CORRUPT;
    }
    layers = *in;
    status = begin_filter(&reading, env);
    if (status == BLOOM_OK) {
        status = read_layers(&reading, in, version);
    }
    if (status == BLOOM_OK) {
        status = make_bloom(&reading, false, env, ret_bloom);
    }
    end_filter(&reading, env);
    *ret_filling = (struct filling){ .stored = layers.at,
                                     .in = layers,
                                     .next = next_array,
                                     .version = version };
    return status;
}

/* Appends all bits of a layer. */
static void
put_array(const struct bloom *bloom, uint64_t *offset, struct rdb_out *out)
{
    uint64_t bytes = stream_left(bloom, *offset);

    rdb_put_string_head(out, bytes);
    if (out->to != NULL) {
        stream_read(bloom, *offset, (size_t)bytes, out->to + out->len);
    }
    out->len += bytes;
    *offset += bytes;
}

void
redisbloom_put_value(const struct bloom *bloom, struct rdb_out *out)
{
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    uint64_t offset = 0;

    CHECK(extra != NULL);
    rdb_put_uint(out, bloom_items(bloom));
    rdb_put_uint(out, bloom->count);
    rdb_put_uint(out, extra->options);
    rdb_put_uint(out, extra->growth);
    for (uint32_t i = 0; i < bloom->count; i++) {
        const struct layer *layer = &bloom_layers_const(bloom)[i];
        const struct bloom_extra_layer *more = &bloom_extra_layers(bloom)[i];

        rdb_put_uint(out, layer->capacity);
        rdb_put_double(out, more->rate);
        rdb_put_uint(out, layer->stripes);
        rdb_put_double(out, more->bits_per_item);
        rdb_put_uint(out, layer->line_count);
        rdb_put_uint(out, layer->log2);
        put_array(bloom, &offset, out);
        rdb_put_uint(out, layer->items);
    }
    rdb_put_length(out, RDB_EOF);
}
