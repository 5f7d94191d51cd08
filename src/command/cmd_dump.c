/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DUMP RESTORE COPY. A filter is put under its name in one step or not at all.
 * The effects contain everything that the clock, a limit or chance decided.
 * Clients may not use the word INCARNATION in them:
 *
 *   RESTORE key <absolute ms, or 0> payload REPLACE ABSTTL INCARNATION n
 *   COPY source destination [DB n] REPLACE INCARNATION n, in this order
 *
 * A client's RESTORE or COPY starts a new life of the name, with a new random
 * incarnation. Dispatch has locked the stripes of all names; a name has the
 * same stripe in every database. Runs on the loop of the connection.
 */
#include "access/copy_words.h"
#include "access/handlers.h"
#include "bloom/bloom_make.h"
#include "bloom/prepare.h"
#include "core/codec.h"
#include "core/foreign.h"
#include "core/payload.h"
#include "engine/keys.h"
#include "engine/observe.h"

#include <xxhash.h>

/* ---- DUMP ---------------------------------------------------------------- */

/* Dumps a filter of a foreign kind as its module does. Reserves the space
 * before anything is copied: a reply above the limit of the output costs
 * nothing, and dispatch replies with the error. */
enum err
cmd_dump(struct request *req)
{
    struct buf *out = req->reply->buf;
    struct entry *entry = keys_find(req, &req->key);
    uint64_t bytes;
    bool foreign;

    if (entry == NULL) {
        reply_null(req->reply);
        return OK;
    }
    if (bloom_is_incomplete(&entry->bloom)) {
        return ERR_BF_INCOMPLETE;
    }
    foreign = foreign_is(bloom_kind(&entry->bloom));
    bytes = foreign ? payload_bytes(&entry->bloom)
                    : codec_dump_bytes(&entry->bloom);
    if (buf_reserve(out, (size_t)bytes + 32) == NULL) {
        return OK;
    }
    reply_header(req->reply, '$', bytes);
    if (foreign) {
        payload_put(&entry->bloom, out->data + out->len);
    } else {
        codec_dump(&entry->bloom, entry->incarnation, out->data + out->len);
    }
    out->len += (size_t)bytes;
    buf_append(out, "\r\n", 2);
    return OK;
}

/* ---- what RESTORE and COPY share ----------------------------------------- */

/* Parses INCARNATION n, in a replayed effect only. */
static bool
parse_incarnation(struct request *req, uint64_t *ret_incarnation)
{
    return req->obey && args_left(&req->args) >= 2 &&
           args_word(&req->args, "INCARNATION") &&
           slice_to_u64(args_bytes(&req->args), ret_incarnation);
}

static void
add_incarnation(struct request *req, uint64_t incarnation)
{
    request_effect_add(req, slice_lit("REPLACE"));
    request_effect_add(req, slice_lit("INCARNATION"));
    request_effect_add_number(req, incarnation);
}

/* A filter that is not under its name yet. */
struct arrival {
    struct bloom *bloom;
    uint64_t incarnation;
    uint64_t expires_at_ms; /* 0: stays */
};

static enum err
insert(struct request *req, const struct key *key,
       const struct arrival *arrival)
{
    struct entry *entry;
    enum err err = keyspace_insert(req->keyspace, key, arrival->bloom,
                                   arrival->incarnation, &entry);

    if (err != OK) {
        bloom_free(arrival->bloom, bloom_make_env(req));
    } else if (arrival->expires_at_ms > 0) {
        err = keyspace_set_expiry(req->keyspace, key, entry,
                                  arrival->expires_at_ms);
        if (err != OK) {
            (void)keyspace_delete(req->keyspace, key, req->now_ms);
        }
    }
    return err;
}

static enum err
replace(struct request *req, const struct key *key, struct entry *entry,
        const struct arrival *arrival)
{
    enum err err =
        keyspace_replace(req->keyspace, key, entry, arrival->bloom,
                         arrival->incarnation, arrival->expires_at_ms);

    if (err != OK) {
        bloom_free(arrival->bloom, bloom_make_env(req));
    }
    return err;
}

/* Puts the filter under the name and replaces what is there. On failure the
 * filter is freed and the name stays as it was. */
static enum err
settle_key(struct request *req, const struct key *key,
           const struct arrival *arrival)
{
    struct entry *entry = keys_open(req, key);
    enum err err = entry != NULL ? replace(req, key, entry, arrival)
                                 : insert(req, key, arrival);

    if (err != OK) {
        return bloom_make_error(req, BLOOM_NOMEM);
    }
    keys_made(req, key);
    keys_walk_again(req, key); /* COPY needs this */
    req->dirty = 1;
    return OK;
}

/* ---- RESTORE ------------------------------------------------------------- */

struct restore {
    struct slice ttl, payload;
    bool replace, absolute;
    bool idle, freq; /* which of the two `access` is */
    int64_t access;
    uint64_t incarnation;
    uint64_t expires_at_ms;
};

/* Parses the value of IDLETIME or FREQ. */
static enum err
parse_access(struct request *req, int64_t max, const char *why,
             struct restore *how)
{
    if (!slice_to_i64(args_bytes(&req->args), &how->access)) {
        return ERR_NOT_INTEGER;
    }
    return how->access < 0 || how->access > max
               ? request_fail(req, ERR_CUSTOM, "%s", why)
               : OK;
}

static enum err
parse_restore_option(struct request *req, struct restore *how)
{
    struct args *args = &req->args;

    if (args_word(args, "REPLACE")) {
        how->replace = true;
    } else if (args_word(args, "ABSTTL")) {
        how->absolute = true;
    } else if (args_left(args) >= 2 && !how->freq &&
               args_word(args, "IDLETIME")) {
        how->idle = true;
        return parse_access(req, INT64_MAX,
                            "Invalid IDLETIME value, must be >= 0", how);
    } else if (args_left(args) >= 2 && !how->idle && args_word(args, "FREQ")) {
        how->freq = true;
        return parse_access(req, 255,
                            "Invalid FREQ value, must be >= 0 and <= 255", how);
    } else if (!parse_incarnation(req, &how->incarnation)) {
        return ERR_SYNTAX;
    }
    return OK;
}

static enum err
parse_restore(struct request *req, struct restore *how)
{
    enum err err = OK;

    (void)args_bytes(&req->args); /* the key */
    how->ttl = args_bytes(&req->args);
    how->payload = args_bytes(&req->args);
    while (err == OK && args_left(&req->args) > 0) {
        err = parse_restore_option(req, how);
    }
    return err;
}

static enum err
parse_ttl(struct request *req, struct restore *how)
{
    int64_t ttl;

    if (!slice_to_i64(how->ttl, &ttl)) {
        return ERR_NOT_INTEGER;
    }
    if (ttl < 0) {
        return request_fail(req, ERR_CUSTOM, "Invalid TTL value, must be >= 0");
    }
    if (ttl > 0 && !how->absolute &&
        __builtin_add_overflow(ttl, (int64_t)req->now_ms, &ttl)) {
        return request_fail(req, ERR_INVALID_EXPIRE, "%s", req->command->name);
    }
    how->expires_at_ms = (uint64_t)ttl;
    return OK;
}

/* Returns whether the last 8 bytes are the checksum of the others. If so, an
 * invalid payload was already invalid when it was made. */
static bool
checksum_holds(struct slice payload)
{
    const uint8_t *end = (const uint8_t *)payload.data + payload.len;
    uint64_t stored = 0;

    if (payload_is_foreign(payload.data, payload.len)) {
        return payload_sum_holds(payload.data, payload.len);
    }
    if (payload.len < sizeof(stored)) {
        return false;
    }
    for (unsigned i = 1; i <= sizeof(stored); i++) {
        stored = stored << 8 | end[-(int)i];
    }
    return stored == XXH3_64bits(payload.data, payload.len - sizeof(stored));
}

/* Returns whether a payload has our own form. In a log, the filter of such a
 * payload may be incomplete, or of a foreign kind: a server that took over
 * slots has written it (slots/pull.h). */
static bool
is_own_form(struct slice payload)
{
    return !payload_is_foreign(payload.data, payload.len);
}

/* Fails if an intact payload is of another type. Does not check payloads whose
 * checksum would take long. */
static enum err
refuse_other_type(struct request *req, struct slice payload)
{
    enum { CHECKED_MAX = 4 << 20 };
    char name[PAYLOAD_TYPE_MAX];
    const char *type = payload.len <= CHECKED_MAX
                           ? payload_other_type(payload.data, payload.len, name)
                           : NULL;

    return type == NULL
               ? OK
               : request_fail(req, ERR_CUSTOM,
                              "the payload is of type %.16s, and this server "
                              "keeps only Bloom filters",
                              type);
}

static enum err
secret_error(struct request *req, struct slice payload)
{
    struct codec_head head;

    return codec_read_head(payload.data, payload.len, &head) == BLOOM_OK
               ? bloom_make_secret_error(req, head.params.fingerprint)
               : ERR_BF_SECRET;
}

static enum err
load_payload(struct request *req, const struct restore *how,
             uint64_t *ret_incarnation, struct bloom **ret_bloom)
{
    struct prepared made = { .status = BLOOM_OK };
    bool prepared = prepare_take(req, NULL, &made);

    if (!prepared && req->obey && is_own_form(how->payload)) {
        made.status =
            codec_load(how->payload.data, how->payload.len, bloom_make_env(req),
                       &made.incarnation, &made.bloom);
    } else if (!prepared) {
        made.status = payload_load_any(how->payload.data, how->payload.len,
                                       bloom_make_env(req), &made.incarnation,
                                       &made.bloom);
    }
    if (made.status == BLOOM_VERSION || made.status == BLOOM_CORRUPT) {
        enum err err = refuse_other_type(req, how->payload);

        if (err != OK) {
            return err;
        }
    }
    switch (made.status) {
    case BLOOM_VERSION:
        return ERR_PAYLOAD_NEWER;
    case BLOOM_CORRUPT:
        return (prepared ? made.sum_holds : checksum_holds(how->payload))
                   ? ERR_BAD_PAYLOAD
                   : ERR_PAYLOAD_VERSION;
    case BLOOM_OK:
        *ret_incarnation = made.incarnation;
        *ret_bloom = made.bloom;
        return OK;
    case BLOOM_SECRET:
        return secret_error(req, how->payload);
    default:
        return bloom_make_error(req, made.status);
    }
}

/* Executes a RESTORE whose expiry is past: it only removes the name. */
static enum err
restore_nothing(struct request *req)
{
    if (keyspace_find(req->keyspace, &req->key, req->now_ms) != NULL) {
        struct entry *entry;
        enum err err = request_effect_begin(req, 2);

        if (err != OK) {
            return err;
        }
        request_effect_add(req, slice_lit("DEL"));
        request_effect_add(req, req->key.name);
        entry = keys_open(req, &req->key);
        CHECK(entry != NULL);
        keyspace_remove(req->keyspace, &req->key, entry);
        observe_change(req, &req->key, FEED_GONE, CONF_EVENT_GENERIC, "del");
        req->dirty = 1;
    }
    reply_ok(req->reply);
    return OK;
}

/* Sets the idle time or the use counter that the command gives. */
static void
note_access(struct request *req, const struct restore *how)
{
    struct entry *entry = keyspace_find(req->keyspace, &req->key, req->now_ms);

    CHECK(entry != NULL);
    if (how->idle) {
        access_set_idle(keyspace_access(req->keyspace), entry,
                        (uint64_t)how->access);
    } else if (how->freq) {
        access_set_frequency(entry, (unsigned)how->access);
    }
}

static enum err
restore_filter(struct request *req, const struct restore *how,
               const struct arrival *arrival)
{
    enum err err = request_effect_begin(req, 8);

    if (err != OK) {
        bloom_free(arrival->bloom, bloom_make_env(req));
        return err;
    }
    request_effect_add(req, slice_lit("RESTORE"));
    request_effect_add(req, req->key.name);
    request_effect_add_number(req, arrival->expires_at_ms);
    request_effect_add(req, how->payload);
    request_effect_add(req, slice_lit("ABSTTL"));
    add_incarnation(req, arrival->incarnation);
    err = settle_key(req, &req->key, arrival);
    if (err == OK) {
        note_access(req, how);
        observe_change(req, &req->key, FEED_CHANGED, CONF_EVENT_GENERIC,
                       "restore");
        reply_ok(req->reply);
    }
    return err;
}

enum err
cmd_restore(struct request *req)
{
    struct restore how = { .replace = req->obey };
    struct arrival arrival = { 0 };
    uint64_t dumped = 0;
    enum err err = parse_restore(req, &how);

    if (err != OK) {
        return err;
    }
    if (!how.replace &&
        keyspace_find(req->keyspace, &req->key, req->now_ms) != NULL) {
        return ERR_BUSYKEY;
    }
    err = parse_ttl(req, &how);
    if (err == OK) {
        err = load_payload(req, &how, &dumped, &arrival.bloom);
    }
    if (err != OK) {
        return err;
    }
    arrival.expires_at_ms = how.expires_at_ms;
    if (arrival.expires_at_ms > 0 && !req->obey &&
        arrival.expires_at_ms <= req->now_ms) {
        bloom_free(arrival.bloom, bloom_make_env(req));
        return restore_nothing(req);
    }
    /* A replayed RESTORE without INCARNATION keeps the incarnation in the dump.
     */
    arrival.incarnation = bloom_make_incarnation(
        how.incarnation == 0 && req->obey ? dumped : how.incarnation);
    return restore_filter(req, &how, &arrival);
}

/* ---- COPY ---------------------------------------------------------------- */

struct copy {
    uint32_t db;
    bool replace;
    uint64_t incarnation;
};

static enum err
parse_copy(struct request *req, struct copy *how)
{
    size_t next = COPY_WORDS_BEGIN, at;
    enum err err = OK;
    enum copy_word word;

    do {
        word = copy_words_next(req->argv, req->argc, &next, &at);
        if (word == COPY_REPLACE) {
            how->replace = true;
        } else if (word == COPY_DB) {
            err = request_parse_db(req, req->argv[at], &how->db);
        }
    } while (err == OK && (word == COPY_REPLACE || word == COPY_DB));
    if (err == OK && word == COPY_OTHER) {
        req->args.next = at - 1; /* args lacks the command's name */
        err = parse_incarnation(req, &how->incarnation) &&
                      args_left(&req->args) == 0
                  ? OK
                  : ERR_SYNTAX;
    }
    return err;
}

static enum err
begin_copy_effect(struct request *req, const struct key *to,
                  uint64_t incarnation)
{
    enum err err = request_effect_begin(req, 8);

    if (err != OK) {
        return err;
    }
    request_effect_add(req, slice_lit("COPY"));
    request_effect_add(req, req->key.name);
    request_effect_add(req, to->name);
    if (to->db != req->key.db) {
        request_effect_add(req, slice_lit("DB"));
        request_effect_add_number(req, to->db);
    }
    add_incarnation(req, incarnation);
    return OK;
}

static enum err
copy_filter(struct request *req, const struct entry *source,
            const struct key *to, uint64_t incarnation)
{
    struct arrival arrival = {
        .incarnation = bloom_make_incarnation(incarnation),
        .expires_at_ms = keyspace_expiry(req->keyspace, &req->key, source),
    };
    struct bloom_env env = *bloom_make_env(req);
    struct prepared made = { .status = BLOOM_OK };
    enum err err = begin_copy_effect(req, to, arrival.incarnation);

    if (err != OK) {
        return err;
    }
    env.size_limit_bytes = UINT64_MAX; /* the source has this size already */
    if (!prepare_take(req, &source->bloom, &made)) {
        made.status = bloom_copy(&source->bloom, &env, &made.bloom);
    }
    if (made.status != BLOOM_OK) {
        return bloom_make_error(req, made.status);
    }
    arrival.bloom = made.bloom;
    return settle_key(req, to, &arrival);
}

enum err
cmd_copy(struct request *req)
{
    struct copy how = { .db = req->key.db, .replace = req->obey };
    enum err err = parse_copy(req, &how);
    struct key to = request_key(req, 2);
    const struct entry *source;

    if (err != OK) {
        return err;
    }
    to.db = how.db;
    if (to.db == req->key.db && slice_equal(to.name, req->key.name)) {
        return request_fail(req, ERR_CUSTOM,
                            "source and destination objects are the same");
    }
    source = keys_find(req, &req->key);
    if (source == NULL && req->obey) { /* the log says that it was there */
        return ERR_BF_NOT_FOUND;
    }
    if (source != NULL && bloom_is_incomplete(&source->bloom)) {
        return ERR_BF_INCOMPLETE;
    }
    if (source == NULL ||
        (!how.replace &&
         keyspace_find(req->keyspace, &to, req->now_ms) != NULL)) {
        reply_int(req->reply, 0);
        return OK;
    }
    err = copy_filter(req, source, &to, how.incarnation);
    if (err == OK) {
        observe_change(req, &to, FEED_CHANGED, CONF_EVENT_GENERIC, "copy_to");
        reply_int(req->reply, 1);
    }
    return err;
}
