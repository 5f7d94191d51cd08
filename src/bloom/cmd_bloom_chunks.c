/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.SCANDUMP and BF.LOADCHUNK of RedisBloom, for filters of every layout, and
 * BF.LOAD of valkey-bloom. The client calls BF.SCANDUMP with 0, and then with
 * the iterator of each reply, until an iterator is 0. It gives each pair of
 * iterator and bytes except the last to BF.LOADCHUNK. Iterator 1 stands for the
 * header (core/payload.h); any other names the place behind its bytes in the
 * stream (core/stream.h), plus 1. BYTES bounds what one call copies, so that a
 * large filter leaves in small pieces.
 *
 * A turn of an ageing filter (core/ageing.h) moves its stream. So a client gets
 * the header only if it says TURN with any number. It gets the chunks only if
 * it says the turn in this header, and only until the filter turns.
 *
 * Until every byte has come, the filter is incomplete: items cannot be added or
 * asked for. RedisBloom serves such a filter, and denies items that it has.
 * Unlike in RedisBloom, bytes that have come already are never overwritten.
 *
 * The effects are the commands themselves; those that create a key have
 * INCARNATION n behind them, which is accepted from a log only.
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "bloom/bloom_make.h"
#include "bloom/prepare.h"
#include "core/codec.h"
#include "core/payload.h"
#include "core/stream.h"
#include "core/valkeybloom.h"
#include "engine/keys.h"

enum {
    CHUNK_BYTES_MAX = 16 << 20, /* of a BF.SCANDUMP, as in RedisBloom */
    REPLY_BYTES = 64,           /* around the bytes */
    ITERATOR_AT = 2,
    DATA_AT = 3,
    LOADCHUNK_WORDS = 4,
    LOAD_WORDS = 3,
    INCARNATION_WORDS = 2
};

/* ---- BF.SCANDUMP --------------------------------------------------------- */

/* The arguments of a BF.SCANDUMP. */
struct dump {
    int64_t iterator;
    size_t bytes; /* at most */
    bool has_turn;
    uint64_t turn;
};

static enum err
parse_dump(struct request *req, struct dump *ret_dump)
{
    struct dump dump = { .bytes = CHUNK_BYTES_MAX };

    (void)args_bytes(&req->args); /* the key */
    if (!slice_to_i64(args_bytes(&req->args), &dump.iterator)) {
        return ERR_BFR_DUMP_NUMBER;
    }
    while (args_left(&req->args) >= 2) {
        uint64_t number = 0;

        if (args_word(&req->args, "bytes")) {
            if (!slice_to_u64(args_bytes(&req->args), &number) || number == 0 ||
                number > CHUNK_BYTES_MAX) {
                return ERR_BF_CHUNK_BYTES;
            }
            dump.bytes = (size_t)number;
        } else if (args_word(&req->args, "turn")) {
            if (!slice_to_u64(args_bytes(&req->args), &dump.turn)) {
                return ERR_BF_TURN;
            }
            dump.has_turn = true;
        } else {
            return ERR_SYNTAX;
        }
    }
    *ret_dump = dump;
    return args_left(&req->args) == 0 ? OK : ERR_SYNTAX;
}

static enum err
dump_header(struct request *req, const struct bloom *bloom)
{
    size_t most = payload_header_bytes(bloom);
    uint8_t *header = mem_try_alloc(most);
    size_t len;

    if (header == NULL) {
        return ERR_NOMEM;
    }
    len = payload_put_header(bloom, header);
    reply_array(req->reply, 2);
    reply_int(req->reply, 1);
    reply_bulk(req->reply, (struct slice){ (const char *)header, len });
    mem_free(header);
    return OK;
}

/* Reserves the space before anything is copied, as DUMP does. */
static enum err
dump_chunk(struct request *req, const struct bloom *bloom, uint64_t offset,
           size_t most)
{
    struct buf *out = req->reply->buf;
    uint64_t left = stream_left(bloom, offset);
    size_t len = left < most ? (size_t)left : most;

    if (buf_reserve(out, len + REPLY_BYTES) == NULL) {
        return OK;
    }
    reply_array(req->reply, 2);
    reply_int(req->reply, len > 0 ? (int64_t)(offset + len + 1) : 0);
    reply_header(req->reply, '$', len);
    if (len > 0) {
        stream_read(bloom, offset, len, out->data + out->len);
        out->len += len;
    }
    buf_append(out, "\r\n", 2);
    return OK;
}

enum err
cmd_bf_scandump(struct request *req)
{
    const struct bloom *bloom = bloom_make_find(req);
    struct dump dump = { 0 };
    enum err err;

    if (bloom == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    err = parse_dump(req, &dump);
    if (err != OK) {
        return err;
    }
    if (bloom_is_incomplete(bloom)) {
        return ERR_BF_INCOMPLETE;
    }
    if (bloom_kind(bloom) == BLOOM_AGEING && !dump.has_turn) {
        return ERR_BF_AGEING_CHUNKS;
    }
    if (dump.iterator == 0) {
        return dump_header(req, bloom);
    }
    if (dump.has_turn && dump.turn != ageing_turn(bloom)) {
        return ERR_BF_TURNED;
    }
    return dump_chunk(req, bloom,
                      dump.iterator > 0 ? (uint64_t)dump.iterator - 1
                                        : UINT64_MAX,
                      dump.bytes);
}

/* ---- what BF.LOADCHUNK and BF.LOAD share --------------------------------- */

/* Takes INCARNATION n from the end of a replayed command of WORDS words. */
static enum err
parse_incarnation(struct request *req, size_t words, uint64_t *ret_incarnation)
{
    if (req->argc == words) {
        return OK;
    }
    if (!req->obey || req->argc != words + INCARNATION_WORDS ||
        !slice_is_word(req->argv[words], "incarnation")) {
        return request_arity_error(req);
    }
    return slice_to_u64(req->argv[words + 1], ret_incarnation) ? OK
                                                               : ERR_SYNTAX;
}

/* Puts a new filter under its name. Takes the filter, on failure too. */
static enum err
create(struct request *req, struct bloom *bloom, size_t words,
       uint64_t incarnation)
{
    struct bloom *settled;
    enum err err = request_effect_begin(req, words + INCARNATION_WORDS);

    incarnation = bloom_make_incarnation(incarnation);
    if (err == OK) {
        err = bloom_make_settle(req, bloom, incarnation, &settled);
    }
    if (err != OK) {
        bloom_free(bloom, bloom_make_env(req));
        return err;
    }
    for (size_t i = 0; i < words; i++) {
        request_effect_add(req, req->argv[i]);
    }
    request_effect_add(req, slice_lit("INCARNATION"));
    request_effect_add_number(req, incarnation);
    req->dirty = 1;
    keys_made(req, &req->key);
    bloom_make_notify(req, false, true);
    reply_ok(req->reply);
    return OK;
}

/* ---- BF.LOADCHUNK -------------------------------------------------------- */

static enum err
load_header(struct request *req, uint64_t incarnation)
{
    struct slice data = req->argv[DATA_AT];
    struct codec_head head;
    struct bloom *bloom = NULL;
    enum bloom_status status =
        payload_read_header(data.data, data.len, bloom_make_env(req), &bloom);

    if (status == BLOOM_CORRUPT || status == BLOOM_VERSION) {
        return ERR_BFR_BAD_DATA;
    }
    if (status == BLOOM_SECRET &&
        codec_read_head(data.data, data.len, &head) == BLOOM_OK) {
        return bloom_make_secret_error(req, head.params.fingerprint);
    }
    if (status != BLOOM_OK) {
        return bloom_make_error(req, status);
    }
    return create(req, bloom, LOADCHUNK_WORDS, incarnation);
}

static enum err
chunk_error(const struct request *req, enum stream_status status)
{
    switch (status) {
    case STREAM_NO_LAYER:
        return ERR_BFR_CHUNK_OFFSET;
    case STREAM_TOO_LONG:
        return ERR_BFR_CHUNK_LONG;
    case STREAM_PARTS:
        return ERR_BF_CHUNK_PARTS;
    case STREAM_NOMEM:
        return bloom_make_error(req, BLOOM_NOMEM);
    default:
        return ERR_BFR_BAD_DATA;
    }
}

static enum err
load_chunk(struct request *req, struct bloom *bloom, int64_t iterator)
{
    struct slice data = req->argv[DATA_AT];
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    enum stream_status status;
    bool changed = false;

    if (iterator <= 0 || (uint64_t)iterator < data.len) {
        return ERR_BFR_BAD_DATA;
    }
    bloom_get_info(bloom, &before);
    status = stream_write(
        bloom, bloom_make_env(req),
        &(struct stream_chunk){ .offset = (uint64_t)iterator - data.len - 1,
                                .data = data.data,
                                .len = data.len },
        req->obey, &changed);
    bloom_get_info(bloom, &after);
    keyspace_account(&before, &after);
    if (status != STREAM_OK) {
        return chunk_error(req, status);
    }
    if (changed && bloom_kind(bloom) == BLOOM_DELETABLE &&
        !bloom_is_incomplete(bloom)) {
        /* From now on deletions may clear bits, which a chunk in the log would
         * set again. */
        keys_walk_again(req, &req->key);
    }
    req->dirty = changed ? 1 : 0;
    observe_change(req, &req->key, changed ? FEED_CHANGED : FEED_NOTHING,
                   CONF_EVENT_GENERIC, NULL);
    reply_ok(req->reply);
    return OK;
}

/* Journals of RedisBloom 2.0 have the header under iterator 0. */
enum err
cmd_bf_loadchunk(struct request *req)
{
    uint64_t incarnation = 0;
    int64_t iterator = 0;
    struct bloom *bloom;
    enum err err = parse_incarnation(req, LOADCHUNK_WORDS, &incarnation);

    if (err != OK) {
        return err;
    }
    if (!slice_to_i64(req->argv[ITERATOR_AT], &iterator)) {
        return ERR_BFR_CHUNK_NUMBER;
    }
    bloom = bloom_make_open(req);
    if (incarnation == 0 && bloom != NULL) {
        return load_chunk(req, bloom, iterator);
    }
    if ((iterator != 0 && iterator != 1) || (req->obey && incarnation == 0)) {
        return ERR_BF_NOT_FOUND;
    }
    err = load_header(req, incarnation);
    return err == ERR_BFR_BAD_DATA && iterator == 0 &&
                   req->service->conf->dialect == CONF_DIALECT_REDIS
               ? ERR_BF_NOT_FOUND /* the chunk is no header */
               : err;
}

/* ---- BF.LOAD ------------------------------------------------------------- */

enum err
cmd_bf_load(struct request *req)
{
    struct slice payload = req->argv[LOAD_WORDS - 1];
    uint64_t incarnation = 0;
    struct prepared made = { .status = BLOOM_OK };
    enum err err = parse_incarnation(req, LOAD_WORDS, &incarnation);

    if (err != OK) {
        return err;
    }
    if (bloom_make_open(req) != NULL && !req->obey) {
        return ERR_BUSYKEY;
    }
    if (!prepare_take(req, NULL, &made)) {
        made.status = valkeybloom_load(payload.data, payload.len,
                                       bloom_make_env(req), &made.bloom);
    }
    switch (made.status) {
    case BLOOM_OK:
        return create(req, made.bloom, LOAD_WORDS, incarnation);
    case BLOOM_VERSION:
        return ERR_BF_DECODE_VERSION;
    case BLOOM_CORRUPT:
        return ERR_BF_DECODE;
    default:
        return bloom_make_error(req, made.status);
    }
}
