/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A payload does not change, so it is hashed and copied in pieces. A source may
 * be written to between two pieces. Then the whole source is copied once more
 * under the locks. This second copy is faster than the first: its memory is
 * mapped by then, and page faults take most of the time.
 */
#include "bloom/prepare.h"

#include "access/handlers.h"
#include "base/mem.h"
#include "bloom/bloom_make.h"
#include "core/codec.h"
#include "core/crc64.h"
#include "core/payload.h"
#include "core/valkeybloom.h"

#define XXH_STATIC_LINKING_ONLY /* declares the whole struct of the state */
#include <xxhash.h>

enum {
    LARGE_BYTES = 256 * 1024, /* filters of this size or more are prepared */
    STEP_BYTES = 64 * 1024,   /* between two looks at the clock */
    ZERO_BYTES = 4096 /* tested for zeros, to leave fresh memory alone */
};

enum preparing_stage { HASHING, FILLING, DONE, NOTHING };

struct preparing {
    XXH3_state_t hash;      /* of a payload of our own; aligned, so it comes
                               first */
    uint64_t crc;           /* of a module's payload */
    struct filling filling; /* from a module's payload, or from a BF.LOAD */
    enum preparing_stage stage;
    uint64_t at; /* next byte to hash, or next byte of all lines to fill in */
    struct prepared made;
    struct bloom_env env;
    struct key source;
    struct key_version seen; /* version of the source when it was copied */
};

static void
drop_made(struct preparing *preparing)
{
    filling_fini(&preparing->filling, &preparing->env);
    if (preparing->made.bloom != NULL) {
        bloom_free(preparing->made.bloom, &preparing->env);
    }
    preparing->made = (struct prepared){ .status = BLOOM_OK };
}

static void
preparing_free(void *state)
{
    drop_made(state);
    mem_free_lines(state, sizeof(struct preparing));
}

/* Returns the state of a paused command, or a new one. NULL without memory: the
 * handler then does all of the work. */
static struct preparing *
take_up(struct request *req)
{
    struct preparing *preparing = request_resumed(req);

    if (preparing == NULL) {
        preparing = mem_try_lines(sizeof(*preparing));
        if (preparing != NULL) {
            preparing->env = *bloom_make_env(req);
            request_pause(req, preparing, preparing_free);
        }
    }
    return preparing;
}

bool
prepare_take(struct request *req, const struct bloom *source,
             struct prepared *ret_made)
{
    struct preparing *preparing = req->obey ? NULL : request_resumed(req);

    if (preparing == NULL || preparing->stage != DONE) {
        return false;
    }
    if (source != NULL && preparing->made.bloom != NULL &&
        keyspace_changed(req->keyspace, &preparing->source, preparing->seen,
                         req->now_ms) &&
        !bloom_copy_into(source, preparing->made.bloom)) {
        return false;
    }
    *ret_made = preparing->made;
    preparing->made.bloom = NULL;
    return true;
}

/* ---- lines --------------------------------------------------------------- */

static void
copy_unless_zero(char *to, const char *from, size_t count)
{
    while (count > 0) {
        size_t step = count < ZERO_BYTES ? count : ZERO_BYTES;

        if (!slice_is_zero((struct slice){ from, step })) {
            memcpy(to, from, step);
        }
        to += step;
        from += step;
        count -= step;
    }
}

/* Returns the address of byte `at` of all lines, and its layer. */
static char *
lines_at(struct bloom *bloom, uint64_t at, uint32_t *ret_layer,
         size_t *ret_offset, size_t *ret_left)
{
    size_t bytes = 0;
    uint32_t layer = 0;
    char *lines = codec_layer_lines(bloom, 0, &bytes);

    while (lines != NULL && at >= bytes) {
        at -= bytes;
        lines = codec_layer_lines(bloom, ++layer, &bytes);
    }
    *ret_layer = layer;
    *ret_offset = (size_t)at;
    *ret_left = bytes - (size_t)at;
    return lines != NULL ? lines + at : NULL;
}

/* ---- RESTORE and BF.LOAD ------------------------------------------------- */

/* Hashes one piece. Returns false when everything is hashed. */
static bool
hash_step(struct preparing *preparing, struct slice payload)
{
    size_t covered = payload.len - CODEC_CHECKSUM_BYTES;
    size_t left = covered - (size_t)preparing->at;
    size_t step = left < STEP_BYTES ? left : STEP_BYTES;
    const char *from = payload.data + preparing->at;

    if (payload_is_foreign(payload.data, payload.len)) {
        preparing->crc = crc64(preparing->crc, from, step);
    } else {
        if (preparing->at == 0) {
            (void)XXH3_64bits_reset(&preparing->hash);
        }
        (void)XXH3_64bits_update(&preparing->hash, from, step);
    }
    preparing->at += step;
    return step < left;
}

static bool
sum_holds(const struct preparing *preparing, struct slice payload)
{
    const uint8_t *end = (const uint8_t *)payload.data + payload.len;
    uint64_t stored = 0;

    for (int i = 1; i <= CODEC_CHECKSUM_BYTES; i++) {
        stored = stored << 8 | end[-i];
    }
    return stored == (payload_is_foreign(payload.data, payload.len)
                          ? preparing->crc
                          : XXH3_64bits_digest(&preparing->hash));
}

/* Makes a filter of our own payload without its lines, as payload_load_any()
 * does. */
static void
make_own(struct preparing *preparing, struct slice payload)
{
    struct prepared *made = &preparing->made;
    struct codec_head head;

    made->status = codec_read_head(payload.data, payload.len, &head);
    if (!made->sum_holds ||
        (made->status == BLOOM_OK &&
         (head.total_bytes != payload.len || head.incomplete))) {
        made->status = BLOOM_CORRUPT;
    }
    if (made->status == BLOOM_OK) {
        made->status = codec_check_head(&head);
    }
    if (made->status == BLOOM_OK) {
        made->incarnation = head.incarnation;
        made->status = codec_new(&head, &preparing->env, &made->bloom);
    }
}

static void
make_shape(struct preparing *preparing, struct slice payload)
{
    struct prepared *made = &preparing->made;

    made->sum_holds = sum_holds(preparing, payload);
    if (!payload_is_foreign(payload.data, payload.len)) {
        make_own(preparing, payload);
    } else if (made->sum_holds) {
        made->status = payload_begin(payload.data, payload.len, &preparing->env,
                                     &preparing->filling, &made->bloom);
    } else {
        made->status = BLOOM_CORRUPT;
    }
    preparing->at = 0;
    preparing->stage = made->status == BLOOM_OK ? FILLING : DONE;
}

static void
fill_own_step(struct preparing *preparing, struct slice payload)
{
    struct codec_head head;
    uint32_t layer;
    size_t offset;
    size_t left;
    char *to =
        lines_at(preparing->made.bloom, preparing->at, &layer, &offset, &left);

    if (to == NULL) {
        preparing->stage = DONE;
        return;
    }
    CHECK(codec_read_head(payload.data, payload.len, &head) == BLOOM_OK);
    left = left < STEP_BYTES ? left : STEP_BYTES;
    copy_unless_zero(to, payload.data + head.head_bytes + preparing->at, left);
    codec_to_host(to, left);
    preparing->at += left;
}

static void
fill_foreign_step(struct preparing *preparing, struct slice payload)
{
    bool more = false;
    enum bloom_status status =
        filling_step(&preparing->filling, payload.data, preparing->made.bloom,
                     &preparing->env, STEP_BYTES, &more);

    if (status != BLOOM_OK) {
        bool held = preparing->made.sum_holds;

        drop_made(preparing);
        preparing->made.status = status;
        preparing->made.sum_holds = held;
    }
    if (!more || status != BLOOM_OK) {
        preparing->stage = DONE;
    }
}

/* Works on a payload until request_is_late() returns true. Between two calls
 * the payload may move, but its bytes stay the same. Returns false if there is
 * more to do. */
static bool
prepare_payload(struct request *req, struct preparing *preparing,
                struct slice payload, bool foreign)
{
    while (preparing->stage != DONE) {
        if (preparing->stage == HASHING) {
            if (!hash_step(preparing, payload)) {
                make_shape(preparing, payload);
            }
        } else if (foreign) {
            fill_foreign_step(preparing, payload);
        } else {
            fill_own_step(preparing, payload);
        }
        if (preparing->stage != DONE && request_is_late(req)) {
            return false;
        }
    }
    return true;
}

bool
prepare_restore(struct request *req)
{
    enum { PAYLOAD_AT = 3 };
    struct slice payload = req->argv[PAYLOAD_AT];
    struct preparing *preparing =
        payload.len < LARGE_BYTES ? NULL : take_up(req);

    return preparing == NULL ||
           prepare_payload(req, preparing, payload,
                           payload_is_foreign(payload.data, payload.len));
}

bool
prepare_load(struct request *req)
{
    enum { PAYLOAD_AT = 2 };
    struct slice payload = req->argv[PAYLOAD_AT];
    struct preparing *preparing =
        payload.len < LARGE_BYTES ? NULL : take_up(req);
    struct prepared *made;

    if (preparing == NULL) {
        return true;
    }
    made = &preparing->made;
    if (preparing->stage == HASHING) { /* nothing to be hashed */
        made->status =
            valkeybloom_begin_load(payload.data, payload.len, &preparing->env,
                                   &preparing->filling, &made->bloom);
        preparing->stage = made->status == BLOOM_OK ? FILLING : DONE;
    }
    return prepare_payload(req, preparing, payload, true);
}

/* ---- COPY ---------------------------------------------------------------- */

static struct entry *
find_locked(struct request *req, const struct key *key)
{
    keyspace_lock(req->keyspace, req->worker->index,
                  keyspace_stripe_of(key->hash), false);
    return keyspace_find(req->keyspace, key, req->now_ms);
}

static void
unlock(struct request *req, const struct key *key)
{
    keyspace_unlock(req->keyspace, req->worker->index,
                    keyspace_stripe_of(key->hash));
}

/* Makes an empty filter of the source's shape and remembers the source's
 * version, as WATCH does. Returns false if there is nothing to prepare. */
static bool
take_shape(struct request *req, const struct key *key,
           struct preparing *preparing)
{
    char *form = mem_try_alloc(CODEC_HEAD_BYTES_MAX);
    const struct entry *entry = find_locked(req, key);
    struct codec_head head;
    size_t bytes = 0;

    if (form != NULL && entry != NULL) {
        preparing->seen = keyspace_version(req->keyspace, key, req->now_ms);
        bytes = codec_put_head(&entry->bloom, entry->incarnation, form);
    }
    unlock(req, key);
    if (bytes > 0) {
        CHECK(codec_read_head(form, bytes, &head) == BLOOM_OK);
        preparing->made.status =
            codec_new(&head, &preparing->env, &preparing->made.bloom);
        preparing->stage = preparing->made.status == BLOOM_OK ? FILLING : DONE;
    }
    mem_free(form);
    return bytes > 0;
}

/* Copies one piece under the shared lock. If the source has changed since
 * take_shape(), prepare_take() copies all of it again. Returns false if the
 * source is gone or has another shape. */
static bool
copy_step(struct request *req, const struct key *key,
          struct preparing *preparing)
{
    struct bloom *copy = preparing->made.bloom;
    const struct entry *entry;
    const char *from;
    uint32_t layer;
    size_t offset;
    size_t left;
    size_t bytes;
    char *to = lines_at(copy, preparing->at, &layer, &offset, &left);
    bool same;

    if (to == NULL) {
        preparing->stage = DONE;
        return true;
    }
    entry = find_locked(req, key);
    same = entry != NULL && bloom_difference(&entry->bloom, copy) == NULL;
    if (same) {
        left = left < STEP_BYTES ? left : STEP_BYTES;
        from = bloom_layer_lines(&entry->bloom, layer, &bytes);
        same = from != NULL;
        if (same) {
            copy_unless_zero(to, from + offset, left);
            preparing->at += left;
        }
    }
    unlock(req, key);
    return same;
}

static bool
is_large(struct request *req, const struct key *key)
{
    const struct entry *entry = find_locked(req, key);
    bool large = entry != NULL && bloom_size(&entry->bloom) >= LARGE_BYTES;

    unlock(req, key);
    return large;
}

static bool
prepare_from(struct request *req, size_t source_at, uint64_t limit_bytes)
{
    struct key key = request_key(req, source_at);
    struct preparing *preparing = request_resumed(req);

    if (preparing == NULL && !is_large(req, &key)) {
        return true;
    }
    preparing = take_up(req);
    if (preparing == NULL) {
        return true;
    }
    preparing->source = key; /* the name's bytes may have moved */
    preparing->env.size_limit_bytes = limit_bytes;
    if (preparing->stage == HASHING && !take_shape(req, &key, preparing)) {
        return true;
    }
    while (preparing->stage == FILLING) {
        if (!copy_step(req, &key, preparing)) {
            drop_made(preparing);
            preparing->stage = NOTHING;
        } else if (preparing->stage == FILLING && request_is_late(req)) {
            return false;
        }
    }
    return true;
}

bool
prepare_copy(struct request *req)
{
    enum { SOURCE_AT = 1 };

    return prepare_from(req, SOURCE_AT, UINT64_MAX); /* no limit: the source has
                                                        this size already */
}

/* A filter that BF.MERGE creates begins as a copy of the first source. */
bool
prepare_merge(struct request *req)
{
    enum { INTO_AT = 1, SOURCE_AT = 2 };
    struct key into = request_key(req, INTO_AT);
    bool exists = find_locked(req, &into) != NULL;

    unlock(req, &into);
    return exists ||
           prepare_from(req, SOURCE_AT, bloom_make_env(req)->size_limit_bytes);
}
