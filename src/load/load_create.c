/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All bits of the new filter are zero. They are sent compressed by LZF, where
 * one code repeats the byte before it up to 264 times. The codes in use:
 *
 *   000lllll bytes     l + 1 bytes as they are
 *   lll00000 00000000  the byte before them, l + 2 times
 *   11100000 l 0       the byte before them, l + 9 times
 */
#include "load/load_create.h"

#include "base/num.h"
#include "core/foreign.h"
#include "core/rdb.h"
#include "core/redisbloom.h"

#include <inttypes.h>

#define RATE_CAP        0.25
#define VERSION_CAPS    8     /* Redis caps rates from this version on */
#define MODULE_CAPS     80000 /* so does RedisBloom from this version on */
#define GROWTH_DEFAULT  2
#define TYPE_MODULE     "\x07"
#define FIELDS_MAX      128
#define AGAIN_MAX       264
#define AGAIN_SHORT_MAX 8

/* The filter that a command asks for. */
struct wish {
    double rate;
    uint64_t capacity, growth;
    bool nonscaling;
    size_t items; /* number of items, which are the last words */
};

/* ---- the rule ------------------------------------------------------------ */

static bool
is_rate(struct slice text, double *ret_rate)
{
    double rate = 0;

    if (!num_parse_strtod(text, &rate) || !(rate > 0 && rate < 1)) {
        return false;
    }
    *ret_rate = rate;
    return true;
}

static bool
is_capacity(struct slice text, uint64_t *ret_capacity)
{
    uint64_t capacity = 0;

    if (!slice_to_u64(text, &capacity) || capacity == 0) {
        return false;
    }
    *ret_capacity = capacity;
    return true;
}

bool
load_create_begin(struct load *load, struct load_rule *ret_rule)
{
    *ret_rule = (struct load_rule){ .rate = 0.01,
                                    .capacity = 100,
                                    .expansion = GROWTH_DEFAULT };
    if (load->error_rate != NULL &&
        !is_rate(slice_of(load->error_rate), &ret_rule->rate)) {
        tool_complain(&load->tool, LOAD_USAGE,
                      "--error: is a rate between 0 and 1");
        return false;
    }
    if (load->capacity != NULL &&
        !is_capacity(slice_of(load->capacity), &ret_rule->capacity)) {
        tool_complain(&load->tool, LOAD_USAGE,
                      "--capacity: is a number of items");
        return false;
    }
    if (load->source_version != NULL) {
        load_create_version(ret_rule, slice_of(load->source_version));
        if (!ret_rule->known) {
            tool_complain(&load->tool, LOAD_USAGE,
                          "--source-version: is a version of Redis or "
                          "RedisBloom, such as 7.2");
            return false;
        }
    }
    return true;
}

void
load_create_version(struct load_rule *rule, struct slice product)
{
    struct slice left = product;
    struct slice word, version = slice_lit("");
    bool valkey = false;
    uint64_t major = 0;
    size_t len = 0;

    if (rule->known) {
        return;
    }
    while (slice_next_word(&left, &word)) {
        valkey = valkey || slice_is_word(word, "valkey");
        version = word;
    }
    while (len < version.len && version.data[len] != '.') {
        len++;
    }
    if (slice_to_u64((struct slice){ version.data, len }, &major)) {
        rule->known = true;
        rule->caps = !valkey && major >= VERSION_CAPS;
    }
}

/* Reads one module of the reply to MODULE LIST: names and values in turn. The
 * value of `args` is itself a list of names and values. */
static void
take_module(struct slice module, const struct load *load,
            struct load_rule *rule)
{
    struct slice name, value, args = slice_lit("");
    bool bloom = false;

    while (resp_element(&module, &name) && resp_element(&module, &value)) {
        if (slice_is_word(resp_text(name), "name")) {
            bloom = slice_is_word(resp_text(value), "bf");
        } else if (slice_is_word(resp_text(name), "args")) {
            (void)resp_array(value, &args);
        }
    }
    while (bloom && resp_element(&args, &name) && resp_element(&args, &value)) {
        if (slice_is_word(resp_text(name), "error_rate") &&
            load->error_rate == NULL) {
            (void)is_rate(resp_text(value), &rule->rate);
        } else if (slice_is_word(resp_text(name), "initial_size") &&
                   load->capacity == NULL) {
            (void)is_capacity(resp_text(value), &rule->capacity);
        }
    }
}

/* Reads CONFIG GET bf-*, which only newer sources have. */
static void
take_options(struct slice options, const struct load *load,
             struct load_rule *rule)
{
    struct slice name, value;

    while (resp_element(&options, &name) && resp_element(&options, &value)) {
        struct slice text = resp_text(value);

        if (slice_is_word(resp_text(name), "bf-error-rate") &&
            load->error_rate == NULL) {
            (void)is_rate(text, &rule->rate);
        } else if (slice_is_word(resp_text(name), "bf-initial-size") &&
                   load->capacity == NULL) {
            (void)is_capacity(text, &rule->capacity);
        } else if (slice_is_word(resp_text(name), "bf-expansion-factor")) {
            (void)slice_to_u64(text, &rule->expansion);
        }
    }
}

void
load_create_ask(struct load_link *link, const struct load *load,
                struct load_rule *rule)
{
    struct slice reply, rest, module;
    uint64_t version = 0;

    if (!load_link_ask(link, &reply, "INFO", "modules", NULL)) {
        return;
    }
    if (load->source_version == NULL &&
        resp_field(reply, "module:name=bf,ver=", &version)) {
        rule->known = true;
        rule->caps = version >= MODULE_CAPS;
    }
    if (!load_link_ask(link, &reply, "MODULE", "LIST", NULL)) {
        return;
    }
    if (resp_array(reply, &rest)) {
        while (resp_element(&rest, &module)) {
            if (resp_array(module, &module)) {
                take_module(module, load, rule);
            }
        }
    }
    if (!load_link_ask(link, &reply, "CONFIG", "GET", "bf-*", NULL)) {
        return;
    }
    if (resp_array(reply, &rest)) {
        take_options(rest, load, rule);
    }
}

/* ---- commands ------------------------------------------------------------ */

static bool
read_reserve(const struct slice *words, size_t count, struct wish *wish)
{
    bool expansion = false;

    if (count < 4 || !is_rate(words[2], &wish->rate) ||
        !is_capacity(words[3], &wish->capacity)) {
        return false;
    }
    for (size_t i = 4; i < count; i++) {
        if (slice_is_word(words[i], "nonscaling")) {
            wish->nonscaling = true;
        } else if (slice_is_word(words[i], "expansion") && i + 1 < count &&
                   !expansion) {
            expansion = true;
            if (!slice_to_u64(words[++i], &wish->growth)) {
                return false;
            }
        }
    }
    return true;
}

/* Returns a letter in lower case; 0 behind the end. */
static unsigned
letter(struct slice word, size_t at)
{
    return at < word.len ? (unsigned char)word.data[at] | 0x20U : 0;
}

/* Reads a BF.INSERT. As in RedisBloom, one or two letters tell the options
 * apart. Returns false for an option that RedisBloom does not have, such as
 * TIGHTENING: another product has executed the command. */
static bool
read_insert(const struct slice *words, size_t count, struct wish *wish)
{
    for (size_t i = 2; i < count; i++) {
        unsigned first = letter(words[i], 0);
        bool ok = true;

        if (first == 'i') {
            wish->items = count - i - 1;
            return true;
        }
        if (first == 'n' && letter(words[i], 2) != 'c') {
            wish->nonscaling = true;
            continue;
        }
        if (i + 1 == count) {
            return false;
        }
        if (first == 'c') {
            ok = is_capacity(words[++i], &wish->capacity);
        } else if (first == 'e' && letter(words[i], 1) == 'r') {
            ok = is_rate(words[++i], &wish->rate);
        } else if (first == 'e') {
            ok = slice_to_u64(words[++i], &wish->growth);
        } else {
            return false;
        }
        if (!ok) {
            return false;
        }
    }
    return false;
}

static bool
read_command(const struct slice *words, size_t count, struct wish *wish)
{
    if (slice_is_word(words[0], "bf.reserve")) {
        return read_reserve(words, count, wish);
    }
    if (slice_is_word(words[0], "bf.insert")) {
        return read_insert(words, count, wish);
    }
    wish->items = count - 2;
    return slice_is_word(words[0], "bf.add") ||
           slice_is_word(words[0], "bf.madd");
}

/* ---- the dump ------------------------------------------------------------ */

/* Appends LZF data for so many zero bytes, at least 8. */
static void
put_zeros(struct buf *buf, uint64_t zeros)
{
    static const char literals[] = "\2\0\0\0"; /* zeros from byte 1 on */

    buf_append(buf, "\0\0", 2);
    zeros--;
    while (zeros >= 3) {
        uint64_t some = zeros < AGAIN_MAX ? zeros : AGAIN_MAX;
        const char again[] = { (char)0xe0, (char)(some - 9), '\0' };
        const char few[] = { (char)((some - 2) << 5), '\0' };

        if (some > AGAIN_SHORT_MAX) {
            buf_append(buf, again, sizeof(again));
        } else {
            buf_append(buf, few, sizeof(few));
        }
        zeros -= some;
    }
    if (zeros > 0) {
        const char head = (char)(zeros - 1);

        buf_append(buf, &head, 1);
        buf_append(buf, literals + 1, (size_t)zeros);
    }
}

static void
put_filter(struct buf *buf, const struct wish *wish, double rate,
           const struct geometry *geometry)
{
    uint8_t fields[FIELDS_MAX];
    struct rdb_out out = { .to = fields };
    struct buf zeros = { 0 };
    uint64_t options = REDISBLOOM_NOROUND | REDISBLOOM_FORCE64 |
                       (wish->nonscaling ? REDISBLOOM_NO_SCALING : 0U);
    const uint8_t packed = RDB_SPECIAL_LZF;

    put_zeros(&zeros, foreign_bytes(geometry->lines));
    rdb_put(&out, TYPE_MODULE, 1);
    rdb_put_id(&out, REDISBLOOM_MODULE_ID | REDISBLOOM_MODULE_VERSION);
    rdb_put_uint(&out, 0); /* items */
    rdb_put_uint(&out, 1); /* layers */
    rdb_put_uint(&out, options);
    rdb_put_uint(&out, wish->growth);
    rdb_put_uint(&out, wish->capacity);
    rdb_put_double(&out, rate);
    rdb_put_uint(&out, geometry->stripes);
    rdb_put_double(&out, redisbloom_bits_per_item(rate));
    rdb_put_uint(&out, geometry->lines);
    rdb_put_uint(&out, 0); /* log2 of the modulus */
    rdb_put_length(&out, RDB_STRING);
    rdb_put(&out, &packed, 1);
    rdb_put_length(&out, zeros.len);
    rdb_put_length(&out, foreign_bytes(geometry->lines));
    buf_append(buf, fields, (size_t)out.len);
    buf_append(buf, zeros.data, zeros.len);
    out.len = 0;
    rdb_put_uint(&out, 0); /* items of the layer */
    rdb_put_length(&out, RDB_EOF);
    buf_append(buf, fields, (size_t)out.len);
    buf->failed = buf->failed || zeros.failed;
    buf_free(&zeros);
}

enum load_create
load_create_filter(const struct load_rule *rule, const struct slice *words,
                   size_t count, struct buf *ret_value, size_t *ret_items)
{
    struct wish wish = { .rate = rule->rate,
                         .capacity = rule->capacity,
                         .growth = rule->expansion };
    struct geometry geometry;
    double rate;

    if (!read_command(words, count, &wish)) {
        return LOAD_CREATE_OTHER;
    }
    if (wish.rate > RATE_CAP && !rule->known) {
        return LOAD_CREATE_UNKNOWN;
    }
    rate = wish.rate > RATE_CAP && rule->caps ? RATE_CAP : wish.rate;
    wish.nonscaling = wish.nonscaling || wish.growth == 0;
    rate = wish.nonscaling ? rate : rate * REDISBLOOM_TIGHTENING;
    geometry = redisbloom_geometry(wish.capacity, rate);
    if (geometry.lines == 0 || geometry.stripes == 0 ||
        wish.growth > UINT32_MAX) {
        return LOAD_CREATE_OTHER;
    }
    put_filter(ret_value, &wish, rate, &geometry);
    *ret_items = wish.items;
    return LOAD_CREATE_MADE;
}

size_t
load_create_items(const struct slice *words, size_t count)
{
    struct wish wish = { .items = 0 };

    return slice_is_word(words[0], "bf.insert") &&
                   read_insert(words, count, &wish)
               ? wish.items
               : 0;
}
