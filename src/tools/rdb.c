/* SPDX-License-Identifier: BSD-3-Clause
 *
 *   file   = ("REDIS" 4 digits | "VALKEY" 3 digits) *entry 0xff crc64
 *   entry  = operation | [expiry] [idle time or frequency] type key value
 *
 * The checksum covers everything before it; zero means none. Files before
 * version 5 end with 0xff.
 */
#include "tools/rdb.h"

#include "base/little.h"
#include "core/crc64.h"
#include "core/redisbloom.h"
#include "core/valkeybloom.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TYPE_MODULE = 7,
    TYPE_STREAM = 15,
    TYPE_STREAM_2 = 19,
    TYPE_STREAM_3 = 21,
    OP_FUNCTION = 245,
    OP_MODULE_AUX = 247,
    OP_IDLE = 248,
    OP_FREQUENCY = 249,
    OP_AUX = 250,
    OP_RESIZE = 251,
    OP_EXPIRES_MS = 252,
    OP_EXPIRES_S = 253,
    OP_SELECT = 254,
    OP_END = 255,
    OP_SLOT_INFO = 244,
    OP_LOWEST = 240, /* types are below */
    STREAM_ID_BYTES = 16,
    CHECKSUM_SINCE = 5,
    DATABASE_MAX = 1 << 20,
};

/* A module's id: nine characters of six bits, and a version of ten bits. */
#define MODULE_VERSION_BITS 10

/* The values by type. `form` is what a value consists of: s a string, l a
 * length, 8 eight bytes, d a number as text, and n( ... ) a count, and that
 * many times what is inside. */
static const struct {
    enum rdb_kind kind;
    const char *form; /* NULL: unknown, or read by a function */
} types[] = {
    [0] = { RDB_STRINGS, "s" },       [1] = { RDB_LISTS, "n(s)" },
    [2] = { RDB_SETS, "n(s)" },       [3] = { RDB_SORTED_SETS, "n(sd)" },
    [4] = { RDB_HASHES, "n(ss)" },    [5] = { RDB_SORTED_SETS, "n(s8)" },
    [9] = { RDB_HASHES, "s" },        [10] = { RDB_LISTS, "s" },
    [11] = { RDB_SETS, "s" },         [12] = { RDB_SORTED_SETS, "s" },
    [13] = { RDB_HASHES, "s" },       [14] = { RDB_LISTS, "n(s)" },
    [16] = { RDB_HASHES, "s" },       [17] = { RDB_SORTED_SETS, "s" },
    [18] = { RDB_LISTS, "n(ls)" },    [20] = { RDB_SETS, "s" },
    [22] = { RDB_HASHES, "n(lss)" },  [23] = { RDB_HASHES, "s" },
    [24] = { RDB_HASHES, "8n(lss)" }, [25] = { RDB_HASHES, "8s" },
};

/* Type 22 in Valkey: each field with its time to live. */
static const char valkey_hash_form[] = "n(ss8)";

struct rdb {
    struct rdb_input in;
    const struct rdb_visitor *visitor;
    struct rdb_result *result;
    struct buf key;
    bool valkey;
    uint64_t db, expires_at_ms;
};

const char *
rdb_kind_name(enum rdb_kind kind)
{
    static const char *const names[] = {
        [RDB_STRINGS] = "strings",
        [RDB_LISTS] = "lists",
        [RDB_SETS] = "sets",
        [RDB_SORTED_SETS] = "sorted sets",
        [RDB_HASHES] = "hashes",
        [RDB_STREAMS] = "streams",
        [RDB_MODULE_VALUES] = "other modules",
        [RDB_MODULE_DATA] = "data of modules",
        [RDB_FUNCTIONS] = "functions",
    };

    return names[kind];
}

/* ---- values -------------------------------------------------------------- */

/* Skips a number as text: length and text, or one byte of 253 to 255 for NaN or
 * infinity. */
static bool
skip_text_number(struct rdb *rdb)
{
    uint8_t len;

    return rdb_take(&rdb->in, &len, 1) &&
           (len >= 253 || rdb_skip(&rdb->in, len));
}

/* Skips the parts before the end of the form or its closing bracket. */
static bool
skip_parts(struct rdb *rdb, const char *form)
{
    bool ok = true;
    uint64_t length;

    for (; ok && *form != '\0' && *form != ')'; form++) {
        switch (*form) {
        case 's':
            ok = rdb_take_string(&rdb->in, NULL);
            break;
        case 'l':
            ok = rdb_take_length(&rdb->in, &length);
            break;
        case '8':
            ok = rdb_skip(&rdb->in, 8);
            break;
        default:
            ok = skip_text_number(rdb);
        }
    }
    return ok;
}

static bool
skip_form(struct rdb *rdb, const char *form)
{
    const char *count_at = strchr(form, 'n');
    uint64_t count;

    if (count_at == NULL) {
        return skip_parts(rdb, form);
    }
    if (count_at != form && !rdb_skip(&rdb->in, 8)) {
        return false;
    }
    if (!rdb_take_length(&rdb->in, &count)) {
        return false;
    }
    for (; count > 0; count--) {
        if (!skip_parts(rdb, count_at + 2)) {
            return false;
        }
    }
    return true;
}

static bool
skip_lengths(struct rdb *rdb, unsigned count)
{
    uint64_t length;
    bool ok = true;

    for (; ok && count > 0; count--) {
        ok = rdb_take_length(&rdb->in, &length);
    }
    return ok;
}

/* Reads a count, and skips as many things of `bytes` bytes each. */
static bool
skip_many(struct rdb *rdb, uint64_t bytes)
{
    uint64_t count;

    if (!rdb_take_length(&rdb->in, &count)) {
        return false;
    }
    for (; count > 0; count--) {
        if (!rdb_skip(&rdb->in, bytes)) {
            return false;
        }
    }
    return true;
}

static bool
skip_consumer(struct rdb *rdb, unsigned type)
{
    return rdb_take_string(&rdb->in, NULL) && rdb_skip(&rdb->in, 8) &&
           (type < TYPE_STREAM_3 || rdb_skip(&rdb->in, 8)) &&
           skip_many(rdb, STREAM_ID_BYTES);
}

static bool
skip_group(struct rdb *rdb, unsigned type)
{
    uint64_t count;

    if (!rdb_take_string(&rdb->in, NULL) ||
        !skip_lengths(rdb, type < TYPE_STREAM_2 ? 2 : 3) ||
        !rdb_take_length(&rdb->in, &count)) {
        return false;
    }
    for (; count > 0; count--) { /* pending: id, time, deliveries */
        if (!rdb_skip(&rdb->in, STREAM_ID_BYTES + 8) || !skip_lengths(rdb, 1)) {
            return false;
        }
    }
    if (!rdb_take_length(&rdb->in, &count)) {
        return false;
    }
    for (; count > 0; count--) {
        if (!skip_consumer(rdb, type)) {
            return false;
        }
    }
    return true;
}

static bool
skip_stream(struct rdb *rdb, unsigned type)
{
    uint64_t count;

    if (!skip_form(rdb, "n(ss)") ||
        !skip_lengths(rdb, type < TYPE_STREAM_2 ? 3 : 8) ||
        !rdb_take_length(&rdb->in, &count)) {
        return false;
    }
    for (; count > 0; count--) {
        if (!skip_group(rdb, type)) {
            return false;
        }
    }
    return true;
}

/* Skips the fields of a module's value up to their end. */
static bool
skip_module(struct rdb *rdb)
{
    for (;;) {
        uint64_t at = rdb->in.offset;
        uint64_t what;
        bool ok;

        if (!rdb_take_length(&rdb->in, &what)) {
            return false;
        }
        switch (what) {
        case RDB_EOF:
            return true;
        case RDB_SINT:
        case RDB_UINT:
            ok = skip_lengths(rdb, 1);
            break;
        case RDB_FLOAT:
            ok = rdb_skip(&rdb->in, 4);
            break;
        case RDB_DOUBLE:
            ok = rdb_skip(&rdb->in, 8);
            break;
        case RDB_STRING:
            ok = rdb_take_string(&rdb->in, NULL);
            break;
        default:
            return rdb_fail(&rdb->in, RDB_DAMAGED, at,
                            "a module has a field of unknown kind %" PRIu64,
                            what);
        }
        if (!ok) {
            return false;
        }
    }
}

static bool
module_of(uint64_t id, enum rdb_module *ret_module)
{
    uint64_t name = id >> MODULE_VERSION_BITS << MODULE_VERSION_BITS;

    *ret_module = name == REDISBLOOM_MODULE_ID ? RDB_MODULE_REDISBLOOM
                                               : RDB_MODULE_VALKEYBLOOM;
    return name == REDISBLOOM_MODULE_ID || name == VALKEYBLOOM_MODULE_ID;
}

/* Reads a module's value, and hands a filter to the visitor. */
static bool
take_module(struct rdb *rdb, uint64_t offset)
{
    struct rdb_filter filter = { .db = rdb->db,
                                 .expires_at_ms = rdb->expires_at_ms,
                                 .offset = offset };
    uint64_t id = 0;
    bool ok, is_filter;

    buf_reset(&rdb->key, SIZE_MAX);
    buf_reset(&rdb->in.value, SIZE_MAX);
    if (!rdb_take_string(&rdb->in, &rdb->key)) {
        return false;
    }
    buf_append(&rdb->in.value, "\x07", 1);
    rdb->in.keeps = true;
    ok = rdb_take_length(&rdb->in, &id);
    is_filter = ok && module_of(id, &filter.module);
    rdb->in.keeps = rdb->in.keeps && is_filter;
    ok = ok && skip_module(rdb);
    rdb->in.keeps = false;
    if (!ok) {
        return false;
    }
    if (!is_filter) {
        rdb->result->skipped[RDB_MODULE_VALUES]++;
        return true;
    }
    if ((rdb->key.failed && !rdb->key.over) ||
        (rdb->in.value.failed && !rdb->in.value.over)) {
        return rdb_fail(&rdb->in, RDB_NOMEM, offset, "no memory for a filter");
    }
    filter.key = buf_slice(&rdb->key);
    if (!rdb->key.failed && !rdb->in.value.failed) {
        filter.value = buf_slice(&rdb->in.value);
    }
    rdb->result->filters++;
    return rdb->visitor->filter(rdb->visitor->ctx, &filter) ||
           rdb_fail(&rdb->in, RDB_STOPPED, offset, "stopped");
}

static bool
take_value(struct rdb *rdb, unsigned type, uint64_t offset)
{
    const char *form =
        type < sizeof(types) / sizeof(types[0]) ? types[type].form : NULL;
    bool ok;

    if (type == TYPE_MODULE) {
        return take_module(rdb, offset);
    }
    if (type == TYPE_STREAM || type == TYPE_STREAM_2 || type == TYPE_STREAM_3) {
        rdb->result->skipped[RDB_STREAMS]++;
        return rdb_take_string(&rdb->in, NULL) && skip_stream(rdb, type);
    }
    if (form == NULL) {
        return rdb_fail(&rdb->in, RDB_UNKNOWN, offset,
                        type == 6 ? "a value of a module of Redis before 4.0 "
                                    "(type %u)"
                                  : "values of type %u are unknown",
                        type);
    }
    if (type == 22 && rdb->valkey) {
        form = valkey_hash_form;
    }
    ok = rdb_take_string(&rdb->in, NULL) && skip_form(rdb, form);
    rdb->result->skipped[types[type].kind] += ok;
    return ok;
}

/* ---- operations ---------------------------------------------------------- */

/* Reads a field of the file: only the version of the writer matters. */
static bool
take_aux(struct rdb *rdb)
{
    struct buf name = { .limit = RDB_TEXT_MAX };
    struct buf value = { .limit = RDB_TEXT_MAX };
    bool ok =
        rdb_take_string(&rdb->in, &name) && rdb_take_string(&rdb->in, &value);

    if (ok && !name.failed && !value.failed) {
        bool valkey = slice_equal(buf_slice(&name), slice_lit("valkey-ver"));

        rdb->valkey = rdb->valkey || valkey;
        if (valkey || slice_equal(buf_slice(&name), slice_lit("redis-ver"))) {
            (void)snprintf(rdb->result->product, sizeof(rdb->result->product),
                           "%s %.*s", valkey ? "valkey" : "redis",
                           (int)value.len, value.len > 0 ? value.data : "");
        }
    }
    buf_free(&name);
    buf_free(&value);
    return ok;
}

static bool
take_module_aux(struct rdb *rdb)
{
    rdb->result->skipped[RDB_MODULE_DATA]++;
    return skip_lengths(rdb, 1) && skip_module(rdb);
}

static bool
take_expiry(struct rdb *rdb, unsigned operation)
{
    uint8_t bytes[8] = { 0 };
    bool seconds = operation == OP_EXPIRES_S;

    if (!rdb_take(&rdb->in, bytes, seconds ? 4 : 8)) {
        return false;
    }
    rdb->expires_at_ms =
        seconds ? (uint64_t)get_u32(bytes) * 1000 : get_u64(bytes);
    /* Zero would mean never; any past time has the same effect. */
    rdb->expires_at_ms += rdb->expires_at_ms == 0;
    return true;
}

static bool
take_select(struct rdb *rdb)
{
    uint64_t at = rdb->in.offset;

    return rdb_take_length(&rdb->in, &rdb->db) &&
           (rdb->db < DATABASE_MAX ||
            rdb_fail(&rdb->in, RDB_DAMAGED, at,
                     "no database has number %" PRIu64, rdb->db));
}

/* Reads an entry. Sets *ret_end at the end of all entries. */
static bool
take_entry(struct rdb *rdb, bool *ret_end)
{
    uint64_t offset = rdb->in.offset;
    uint8_t first;
    bool ok;

    if (!rdb_take(&rdb->in, &first, 1)) {
        return false;
    }
    switch (first) {
    case OP_END:
        *ret_end = true;
        return true;
    case OP_SELECT:
        return take_select(rdb);
    case OP_EXPIRES_MS:
    case OP_EXPIRES_S:
        return take_expiry(rdb, first);
    case OP_RESIZE:
        return skip_lengths(rdb, 2);
    case OP_AUX:
        return take_aux(rdb);
    case OP_FREQUENCY:
        return rdb_skip(&rdb->in, 1);
    case OP_IDLE:
        return skip_lengths(rdb, 1);
    case OP_MODULE_AUX:
        return take_module_aux(rdb);
    case OP_FUNCTION:
        rdb->result->skipped[RDB_FUNCTIONS]++;
        return rdb_take_string(&rdb->in, NULL);
    case OP_SLOT_INFO:
        return skip_lengths(rdb, 3);
    default:
        break;
    }
    if (first >= OP_LOWEST) {
        return rdb_fail(&rdb->in, RDB_UNKNOWN, offset,
                        "operation %u is unknown", first);
    }
    ok = take_value(rdb, first, offset);
    rdb->expires_at_ms = 0;
    return ok;
}

/* ---- the file ------------------------------------------------------------ */

static bool
take_magic(struct rdb *rdb)
{
    char magic[9];
    size_t name = 5;
    unsigned version = 0;

    if (!rdb_take(&rdb->in, magic, sizeof(magic))) {
        return false;
    }
    if (memcmp(magic, "VALKEY", 6) == 0) {
        rdb->valkey = true;
        name = 6;
    } else if (memcmp(magic, "REDIS", 5) != 0) {
        return rdb_fail(&rdb->in, RDB_DAMAGED, 0, "it is not an RDB");
    }
    for (size_t i = name; i < sizeof(magic); i++) {
        if (magic[i] < '0' || magic[i] > '9') {
            return rdb_fail(&rdb->in, RDB_DAMAGED, i,
                            "its version is not a number");
        }
        version = version * 10 + (unsigned)(magic[i] - '0');
    }
    rdb->result->version = version;
    return true;
}

static bool
take_checksum(struct rdb *rdb)
{
    uint64_t at = rdb->in.offset;
    uint8_t bytes[8];
    uint64_t crc;

    if (!rdb->valkey && rdb->result->version < CHECKSUM_SINCE) {
        return true;
    }
    crc = rdb_sum(&rdb->in);
    if (!rdb_take(&rdb->in, bytes, sizeof(bytes))) {
        return false;
    }
    rdb->result->checked = get_u64(bytes) == crc;
    return rdb->result->checked || get_u64(bytes) == 0 ||
           rdb_fail(
               &rdb->in, RDB_DAMAGED, at,
               "the checksum does not hold: some of its bytes are damaged");
}

bool
rdb_read(const struct rdb_source *source, const struct rdb_visitor *visitor,
         struct rdb_result *ret_result)
{
    struct rdb rdb = { .in = { .source = source,
                               .bytes = { "", 0 },
                               .value = { .limit = visitor->value_bytes_max } },
                       .visitor = visitor,
                       .result = ret_result,
                       .key = { .limit = visitor->value_bytes_max } };
    bool end = false;
    bool ok;

    memset(ret_result, 0, sizeof(*ret_result));
    rdb.in.summed = rdb.in.bytes.data;
    ok = take_magic(&rdb);
    while (ok && !end) {
        ok = take_entry(&rdb, &end);
    }
    ok = ok && take_checksum(&rdb);
    ret_result->status = rdb.in.status;
    ret_result->offset = ok ? rdb.in.offset : rdb.in.failed_at;
    memcpy(ret_result->why, rdb.in.why, sizeof(ret_result->why));
    ret_result->rest = rdb.in.bytes;
    buf_free(&rdb.in.value);
    buf_free(&rdb.key);
    return ok;
}

/* ---- payloads ------------------------------------------------------------ */

bool
rdb_payload_is_filter(struct slice payload)
{
    enum rdb_module module;
    uint64_t id = 0;

    if (payload.len < 10 || payload.data[0] != TYPE_MODULE ||
        (uint8_t)payload.data[1] != 0x81) {
        return false;
    }
    for (size_t i = 2; i < 10; i++) {
        id = id << 8 | (uint8_t)payload.data[i];
    }
    return module_of(id, &module);
}

void
rdb_put_footer(struct slice value, enum rdb_module module, uint8_t *ret_footer)
{
    /* The RDB versions of Redis 7.0 and Valkey 8, which all later versions
     * accept. */
    put_u16(ret_footer, module == RDB_MODULE_REDISBLOOM ? 10 : 11);
    put_u64(ret_footer + 2,
            crc64(crc64(0, value.data, value.len), ret_footer, 2));
}
