/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.RESET and BF.MERGE, which no module has.
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "bloom/bloom_make.h"
#include "bloom/prepare.h"
#include "core/codec.h"
#include "core/foreign.h"
#include "engine/keys.h"

#include <stdlib.h>

enum { FIRST_SOURCE = 2 };

/* ---- BF.RESET ------------------------------------------------------------ */

enum { REPLACE_BYTES = 1 << 20 }; /* larger filters get new lines */

/* Returns the next incarnation of a name. It is derived from the last one, so
 * that a replay gets the same one (by the finisher of Steele, Lea and Flood's
 * SplitMix, OOPSLA 2014, which is one to one and maps only 0 to 0). */
static uint64_t
next_incarnation(uint64_t incarnation)
{
    incarnation = (incarnation ^ (incarnation >> 30)) * 0xBF58476D1CE4E5B9U;
    incarnation = (incarnation ^ (incarnation >> 27)) * 0x94D049BB133111EBU;
    return incarnation ^ (incarnation >> 31);
}

/* Replaces a large filter by an empty one: new lines are zero already, and a
 * background thread frees the old ones. Returns false if there is no memory for
 * both. */
static bool
replace_empty(struct request *req, struct entry *entry)
{
    struct bloom_env env = *bloom_make_env(req);
    uint64_t at_ms = keyspace_expiry(req->keyspace, &req->key, entry);
    struct bloom *fresh;

    env.size_limit_bytes = UINT64_MAX; /* it had this size before */
    if (codec_new_empty(&entry->bloom, &env, &fresh) != BLOOM_OK) {
        return false;
    }
    if (keyspace_replace(req->keyspace, &req->key, entry, fresh,
                         next_incarnation(entry->incarnation), at_ms) != OK) {
        bloom_free(fresh, &env);
        return false;
    }
    return true;
}

static void
empty_in_place(struct request *req, struct entry *entry)
{
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };

    bloom_get_info(&entry->bloom, &before);
    bloom_reset(&entry->bloom, bloom_make_env(req));
    bloom_get_info(&entry->bloom, &after);
    keyspace_account(&before, &after);
    entry->incarnation = next_incarnation(entry->incarnation);
}

/* An ageing filter begins with the present time, even if it has seen a later
 * one. Since the effect must say that time, it is the creation of a filter. A
 * log with BF.RESET itself comes from an older version, in which the filter
 * kept its time. */
static enum err
begin_reset(struct request *req, const struct entry *entry, bool *ret_begins)
{
    *ret_begins = bloom_kind(&entry->bloom) == BLOOM_AGEING && !req->obey;
    return *ret_begins ? bloom_make_begin_again(req) : OK;
}

/* BF.RESET is never refused for lack of memory, since it frees memory. */
enum err
cmd_bf_reset(struct request *req)
{
    struct entry *entry = keys_open(req, &req->key);
    bool begins = false;
    enum err err;

    if (entry == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    if (bloom_is_incomplete(&entry->bloom)) {
        return ERR_BF_INCOMPLETE;
    }
    err = begin_reset(req, entry, &begins);
    if (err != OK) {
        return err;
    }
    if (bloom_size(&entry->bloom) < REPLACE_BYTES ||
        !replace_empty(req, entry)) {
        empty_in_place(req, entry);
    }
    if (begins) {
        ageing_begin(&entry->bloom, req->now_ms);
        bloom_make_describe(req, &entry->bloom, entry->incarnation,
                            keyspace_expiry(req->keyspace, &req->key, entry));
    }
    keys_walk_again(req, &req->key);
    req->dirty = 1;
    observe_change(req, &req->key, FEED_CHANGED, CONF_EVENT_GENERIC,
                   "bloom.reset");
    reply_ok(req->reply);
    return OK;
}

/* ---- BF.MERGE ------------------------------------------------------------ */

/* The effect is the command with INCARNATION n behind it: the incarnation of a
 * new destination, or 0 if the destination existed. A replayed command always
 * has these two words, so no source can be mistaken for them. */
struct merge {
    size_t end; /* argv position behind the sources */
    bool begins;
    uint64_t incarnation;
    const struct bloom **sources; /* each once, in no order */
    size_t count;
    const struct bloom *first; /* whose properties a new filter gets */
};

static enum err
parse_replayed(const struct request *req, struct merge *merge)
{
    enum { WORDS = 2 };

    if (req->argc < FIRST_SOURCE + 1 + WORDS ||
        !slice_is_word(req->argv[req->argc - WORDS], "incarnation") ||
        !slice_to_u64(req->argv[req->argc - 1], &merge->incarnation)) {
        return ERR_SYNTAX;
    }
    merge->end = req->argc - WORDS;
    merge->begins = merge->incarnation != 0;
    return OK;
}

static int
compare_pointers(const void *a, const void *b)
{
    const struct bloom *const *left = a;
    const struct bloom *const *right = b;

    return (*left > *right) - (*left < *right);
}

/* Sorts the sources and drops repeats. */
static void
sort_sources(struct merge *merge)
{
    size_t kept = 1;

    qsort(merge->sources, merge->count, sizeof(struct bloom *), /* NOLINT */
          compare_pointers);
    for (size_t i = 1; i < merge->count; i++) {
        if (merge->sources[i] != merge->sources[kept - 1]) {
            merge->sources[kept++] = merge->sources[i];
        }
    }
    merge->count = kept;
}

/* Finds all sources. On failure there is nothing to free. */
static enum err
find_sources(struct request *req, struct merge *merge)
{
    size_t count = merge->end - FIRST_SOURCE;
    size_t bytes = 0;

    if (!mem_multiply(count, sizeof(struct bloom *), &bytes)) { /* NOLINT */
        return ERR_NOMEM;
    }
    merge->sources = mem_try_alloc(bytes);
    if (merge->sources == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct key key = request_key(req, FIRST_SOURCE + i);
        struct entry *entry = keyspace_find(req->keyspace, &key, req->now_ms);

        if (entry == NULL || bloom_is_incomplete(&entry->bloom)) {
            mem_free(merge->sources);
            return entry == NULL ? ERR_BF_NOT_FOUND : ERR_BF_INCOMPLETE;
        }
        keys_use(req, entry);
        merge->sources[i] = &entry->bloom;
    }
    merge->first = merge->sources[0];
    merge->count = count;
    sort_sources(merge);
    return OK;
}

static enum err
check_bytes(const struct request *req, const struct entry *into,
            const struct merge *merge)
{
    uint64_t bytes = into != NULL ? bloom_size(&into->bloom) : 0;

    for (size_t i = 0; i < merge->count; i++) {
        bytes += bloom_size(merge->sources[i]);
    }
    return !req->obey &&
                   bytes > (uint64_t)req->service->conf->bf_max_merge_bytes
               ? ERR_BF_MERGE_LARGE
               : OK;
}

static enum err
begin_effect(struct request *req, const struct merge *merge)
{
    enum err err = request_effect_begin(req, merge->end + 2);

    if (err != OK) {
        return err;
    }
    for (size_t i = 0; i < merge->end; i++) {
        request_effect_add(req, req->argv[i]);
    }
    request_effect_add(req, slice_lit("INCARNATION"));
    request_effect_add_number(req, merge->incarnation);
    return OK;
}

/* Names the first difference. If the destination differs from no source, the
 * sources differ in layers that the destination does not have. */
static enum err
merge_error(struct request *req, const struct bloom *into,
            const struct merge *merge, enum bloom_status status)
{
    const char *what = NULL;

    if (status != BLOOM_INVALID) {
        return bloom_make_error(req, status);
    }
    for (size_t i = 0; i < merge->count && what == NULL; i++) {
        what = bloom_difference(into, merge->sources[i]);
    }
    if (what == NULL && foreign_is(bloom_kind(into))) {
        return request_fail(req, ERR_BF_MERGE_LAYOUT, "%s",
                            bloom_kind_name(bloom_kind(into)));
    }
    return request_fail(req, ERR_BF_MERGE_DIFFERS, "%s",
                        what != NULL ? what : "layer shapes");
}

/* Merges all sources but `has`, which the filter contains already, into a
 * filter that stays as it was if this fails. */
static enum err
unite(struct request *req, struct bloom *into, const struct bloom *has,
      struct merge *merge)
{
    enum bloom_status status = BLOOM_OK;
    size_t kept = 0;

    for (size_t i = 0; i < merge->count; i++) {
        if (merge->sources[i] != has) {
            merge->sources[kept++] = merge->sources[i];
        }
    }
    merge->count = kept;
    if (kept > 0) {
        status = (req->service->log_has_gaps ? bloom_merge_over : bloom_merge)(
            into, bloom_make_env(req), merge->sources, kept);
    }
    return status == BLOOM_OK ? OK : merge_error(req, into, merge, status);
}

static enum err
merge_new(struct request *req, struct merge *merge)
{
    const struct bloom_env *env = bloom_make_env(req);
    struct prepared made = { .status = BLOOM_OK };
    struct bloom *fresh;
    struct entry *entry;
    enum err err;

    if (!prepare_take(req, merge->first, &made)) {
        made.status = bloom_copy(merge->first, env, &made.bloom);
    }
    if (made.status != BLOOM_OK) {
        return bloom_make_error(req, made.status);
    }
    fresh = made.bloom;
    err = unite(req, fresh, merge->first, merge);
    if (err == OK && req->obey) { /* the key that is there had expired */
        (void)keyspace_delete(req->keyspace, &req->key, req->now_ms);
    }
    if (err == OK) {
        err = keyspace_insert(req->keyspace, &req->key, fresh,
                              merge->incarnation, &entry);
    }
    if (err != OK) {
        bloom_free(fresh, env);
        return err;
    }
    keys_made(req, &req->key);
    return OK;
}

static enum err
merge_into(struct request *req, struct entry *entry, struct merge *merge)
{
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    enum err err;

    bloom_get_info(&entry->bloom, &before);
    err = unite(req, &entry->bloom, &entry->bloom, merge);
    bloom_get_info(&entry->bloom, &after);
    keyspace_account(&before, &after);
    return err;
}

static enum err
merge_all(struct request *req, struct merge *merge)
{
    struct entry *entry = keys_open(req, &req->key);
    enum err err;

    if (!req->obey) {
        merge->begins = entry == NULL;
        merge->incarnation = merge->begins ? bloom_make_incarnation(0) : 0;
    } else if (!merge->begins && entry == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    if (entry != NULL && bloom_is_incomplete(&entry->bloom) && !merge->begins) {
        return ERR_BF_INCOMPLETE;
    }
    err = find_sources(req, merge);
    if (err != OK) {
        return err;
    }
    err = check_bytes(req, entry, merge);
    if (err == OK) {
        err = begin_effect(req, merge);
    }
    if (err == OK) {
        err = merge->begins || entry == NULL ? merge_new(req, merge)
                                             : merge_into(req, entry, merge);
    }
    mem_free(merge->sources);
    return err;
}

enum err
cmd_bf_merge(struct request *req)
{
    struct merge merge = { .end = req->argc };
    enum err err = req->obey ? parse_replayed(req, &merge) : OK;

    if (err == OK) {
        err = merge_all(req, &merge);
    }
    if (err == OK) {
        keys_walk_again(req, &req->key);
        req->dirty = 1;
        observe_change(req, &req->key, FEED_CHANGED, CONF_EVENT_GENERIC,
                       "bloom.merge");
        reply_ok(req->reply);
    }
    return err;
}
