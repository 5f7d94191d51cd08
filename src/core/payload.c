/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frame of a payload; the two modules' files have the values. bloom_load()
 * and bloom_dump() are here too, since they handle all forms.
 */
#include "core/payload.h"

#include "base/err.h"
#include "base/little.h"
#include "core/codec.h"
#include "core/crc64.h"
#include "core/filter.h"
#include "core/foreign.h"
#include "core/redisbloom.h"
#include "core/valkeybloom.h"

enum {
    TYPE_MODULE = 7,
    ID_VERSION_BITS = 10,
    VERSION_BYTES = 2,
    SUM_BYTES = 8,
    REDIS_VERSION = 10,
    VALKEY_VERSION = 11
};

bool
payload_is_foreign(const void *data, size_t len)
{
    return len > 0 && *(const uint8_t *)data == TYPE_MODULE;
}

bool
payload_sum_holds(const void *data, size_t len)
{
    return len >= SUM_BYTES &&
           crc64(0, data, len - SUM_BYTES) ==
               get_u64((const uint8_t *)data + len - SUM_BYTES);
}

/* Returns whether an RDB version is known: 13 is that of Redis 8, 80 that of
 * Valkey 9, and 81 the next. */
static bool
is_known_version(unsigned version)
{
    return (version >= 1 && version <= 13) || version == 80 || version == 81;
}

/* Writes the nine letters that a module's id stands for. */
static void
put_module_name(uint64_t id, char *ret_name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789-_";

    id >>= ID_VERSION_BITS;
    for (int i = 8; i >= 0; i--, id >>= 6) {
        ret_name[i] = letters[id & 63];
    }
    ret_name[9] = '\0';
}

const char *
payload_other_type(const void *data, size_t len,
                   char ret_name[PAYLOAD_TYPE_MAX])
{
    static const char *const types[] = {
        "string", "list",   "set",  "zset", "hash", "zset",   NULL,
        NULL,     NULL,     "hash", "list", "set",  "zset",   "hash",
        "list",   "stream", "hash", "zset", "list", "stream", "set",
        "stream", "hash",   "hash", "hash", "hash",
    };
    const uint8_t *end = (const uint8_t *)data + len;
    struct rdb_in in = { .at = data, .left = len };
    unsigned type;
    uint64_t id;

    if (len < 1 + VERSION_BYTES + SUM_BYTES || !payload_sum_holds(data, len) ||
        !is_known_version((unsigned)end[-SUM_BYTES - 2] |
                          (unsigned)end[-SUM_BYTES - 1] << 8U)) {
        return NULL;
    }
    type = rdb_byte(&in);
    if (type != TYPE_MODULE) {
        return type < sizeof(types) / sizeof(types[0]) ? types[type] : NULL;
    }
    id = rdb_length(&in);
    if (id >> ID_VERSION_BITS == REDISBLOOM_MODULE_ID >> ID_VERSION_BITS ||
        id >> ID_VERSION_BITS == VALKEYBLOOM_MODULE_ID >> ID_VERSION_BITS) {
        return NULL;
    }
    put_module_name(id, ret_name);
    return ret_name;
}

enum bloom_status
payload_begin(const void *data, size_t len, const struct bloom_env *env,
              struct filling *ret_filling, struct bloom **ret_bloom)
{
    struct rdb_in in = { .at = data, .left = len };
    struct bloom *bloom = NULL;
    enum bloom_status status = BLOOM_CORRUPT;
    uint64_t id;
    unsigned version;

    if (len < VERSION_BYTES + SUM_BYTES || rdb_byte(&in) != TYPE_MODULE) {
        return BLOOM_CORRUPT;
    }
    in.left -= VERSION_BYTES + SUM_BYTES;
    id = rdb_length(&in);
    version = (unsigned)(id & ((1U << ID_VERSION_BITS) - 1));
    id -= version;
    if (id == REDISBLOOM_MODULE_ID) {
        status = redisbloom_read_value(&in, version, env, ret_filling, &bloom);
    } else if (id == VALKEYBLOOM_MODULE_ID) {
        status = valkeybloom_read_value(&in, version, env, ret_filling, &bloom);
    }
    if (status == BLOOM_OK && in.left > 0) {
        bloom_free(bloom, env);
        status = BLOOM_CORRUPT;
    }
    if (status == BLOOM_OK) {
        ret_filling->stored = data;
        *ret_bloom = bloom;
    }
    return status;
}

enum bloom_status
payload_load(const void *data, size_t len, const struct bloom_env *env,
             struct bloom **ret_bloom)
{
    struct filling filling;
    struct bloom *bloom = NULL;
    enum bloom_status status = BLOOM_CORRUPT;

    if (payload_sum_holds(data, len)) {
        status = payload_begin(data, len, env, &filling, &bloom);
    }
    if (status == BLOOM_OK) {
        status = filling_finish(&filling, data, bloom, env);
    }
    if (status == BLOOM_OK) {
        *ret_bloom = bloom;
    }
    return status;
}

enum bloom_status
payload_load_any(const void *data, size_t len, const struct bloom_env *env,
                 uint64_t *ret_incarnation, struct bloom **ret_bloom)
{
    enum bloom_status status;
    struct codec_head head;

    if (!payload_is_foreign(data, len)) {
        return codec_read_head(data, len, &head) == BLOOM_OK && head.incomplete
                   ? BLOOM_CORRUPT
                   : codec_load(data, len, env, ret_incarnation, ret_bloom);
    }
    status = payload_load(data, len, env, ret_bloom);
    if (status == BLOOM_OK) {
        *ret_incarnation = 0;
    }
    return status;
}

enum bloom_status
bloom_load(const void *data, size_t len, const struct bloom_env *env,
           struct bloom **ret_bloom)
{
    uint64_t incarnation;

    return payload_load_any(data, len, env, &incarnation, ret_bloom);
}

/* ---- BF.SCANDUMP --------------------------------------------------------- */

/* Makes an incomplete filter of a head that says the filter is complete. */
static enum bloom_status
read_own_header(const struct codec_head *whole, const struct bloom_env *env,
                struct bloom **ret_bloom)
{
    static const uint8_t no_ranges[8];
    struct codec_head head = *whole;
    enum bloom_status status = codec_check_head(whole);

    if (status != BLOOM_OK) {
        return status;
    }
    head.incomplete = true;
    head.range_count = 0;
    head.ranges = no_ranges;
    return codec_new(&head, env, ret_bloom);
}

enum bloom_status
payload_read_header(const void *data, size_t len, const struct bloom_env *env,
                    struct bloom **ret_bloom)
{
    struct codec_head head;
    enum bloom_status status = codec_read_head(data, len, &head);

    if (status == BLOOM_OK && !head.incomplete && head.head_bytes == len) {
        return read_own_header(&head, env, ret_bloom);
    }
    return redisbloom_read_header(data, len, env, ret_bloom);
}

size_t
payload_header_bytes(const struct bloom *bloom)
{
    return codec_head_bytes(bloom) +
           REDISBLOOM_LINK_BYTES * (size_t)bloom->count;
}

size_t
payload_put_header(const struct bloom *bloom, void *ret_bytes)
{
    CHECK(!bloom_is_incomplete(bloom));
    return bloom_kind(bloom) == BLOOM_REDISBLOOM
               ? redisbloom_put_header(bloom, ret_bytes)
               : codec_put_head(bloom, 0, ret_bytes);
}

/* ---- DUMP ---------------------------------------------------------------- */

/* Appends everything but the CRC. */
static void
put_payload(const struct bloom *bloom, struct rdb_out *out)
{
    uint8_t frame[VERSION_BYTES] = { TYPE_MODULE };

    CHECK(!bloom_is_incomplete(bloom));
    rdb_put(out, frame, 1);
    if (bloom_kind(bloom) == BLOOM_REDISBLOOM) {
        rdb_put_id(out, REDISBLOOM_MODULE_ID | REDISBLOOM_MODULE_VERSION);
        redisbloom_put_value(bloom, out);
        put_u16(frame, REDIS_VERSION);
    } else {
        CHECK(bloom_kind(bloom) == BLOOM_VALKEYBLOOM);
        rdb_put_id(out, VALKEYBLOOM_MODULE_ID | VALKEYBLOOM_MODULE_VERSION);
        valkeybloom_put_value(bloom, out);
        put_u16(frame, VALKEY_VERSION);
    }
    rdb_put(out, frame, VERSION_BYTES);
}

uint64_t
payload_bytes(const struct bloom *bloom)
{
    struct rdb_out out = { .to = NULL };

    put_payload(bloom, &out);
    return out.len + SUM_BYTES;
}

void
payload_put(const struct bloom *bloom, void *ret_bytes)
{
    struct rdb_out out = { .to = ret_bytes };

    put_payload(bloom, &out);
    put_u64(out.to + out.len, crc64(0, out.to, (size_t)out.len));
}

uint64_t
payload_bytes_any(const struct bloom *bloom)
{
    return foreign_is(bloom_kind(bloom)) ? payload_bytes(bloom)
                                         : codec_dump_bytes(bloom);
}

void
payload_put_any(const struct bloom *bloom, uint64_t incarnation,
                void *ret_bytes)
{
    if (foreign_is(bloom_kind(bloom))) {
        payload_put(bloom, ret_bytes);
    } else {
        codec_dump(bloom, incarnation, ret_bytes);
    }
}

uint64_t
bloom_dump_bytes(const struct bloom *bloom)
{
    return payload_bytes_any(bloom);
}

void
bloom_dump(const struct bloom *bloom, void *ret_bytes)
{
    payload_put_any(bloom, 0, ret_bytes);
}
