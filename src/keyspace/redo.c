/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of a log are not trusted.
 */
#include "keyspace/redo.h"

#include "base/num.h"
#include "core/bloom.h"
#include "keyspace/memory.h"

#include <string.h>

enum { WORDS_EACH = 2 /* a place and an item */ };

size_t
redo_put_add(uint16_t layer, char ret_place[REDO_PLACE_MAX])
{
    if (layer == DELETABLE_NEW) {
        ret_place[0] = '+';
        return 1;
    }
    return num_format_u64(layer, ret_place);
}

size_t
redo_put_deletion(struct deletable_done done, char ret_place[REDO_PLACE_MAX])
{
    size_t len = num_format_u64(done.layer, ret_place);

    ret_place[len++] = ':';
    return len + num_format_u64(done.cleared, ret_place + len);
}

/* Parses a number below DELETABLE_NEW. */
static bool
parse_number(struct slice text, uint16_t *ret_number)
{
    uint64_t number;

    if (!slice_to_u64(text, &number) || number >= DELETABLE_NEW) {
        return false;
    }
    *ret_number = (uint16_t)number;
    return true;
}

static bool
parse_add(struct slice place, struct deletable_done *ret_done)
{
    *ret_done = (struct deletable_done){ .layer = DELETABLE_NEW };
    return slice_is_word(place, "+") || parse_number(place, &ret_done->layer);
}

static bool
parse_deletion(struct slice place, struct deletable_done *ret_done)
{
    const char *colon =
        place.len > 0 ? memchr(place.data, ':', place.len) : NULL;
    size_t len = colon != NULL ? (size_t)(colon - place.data) : 0;

    return colon != NULL &&
           parse_number((struct slice){ place.data, len }, &ret_done->layer) &&
           parse_number((struct slice){ colon + 1, place.len - len - 1 },
                        &ret_done->cleared);
}

static enum bloom_status
redo_one(struct bloom *bloom, const struct bloom_env *env,
         const struct slice *words, uint64_t position)
{
    struct bloom_hash hash = bloom_hash(bloom, words[1].data, words[1].len);
    struct deletable_done done;

    if (env == NULL) {
        return parse_deletion(words[0], &done) &&
                       deletable_delete_again(bloom, hash, done, position)
                   ? BLOOM_OK
                   : BLOOM_INVALID;
    }
    return parse_add(words[0], &done)
               ? deletable_add_again(bloom, env, hash, done, position)
               : BLOOM_INVALID;
}

/* Deletions before it may be left out: then the filter is full, but was not
 * when the item was added. */
static enum bloom_status
add_anew(struct bloom *bloom, const struct bloom_env *env, struct slice item)
{
    struct bloom_hash hash = bloom_hash(bloom, item.data, item.len);
    bool added;
    enum bloom_status status = bloom_add(bloom, env, hash, &added);

    if (status != BLOOM_OK && status != BLOOM_NOMEM) {
        bloom_add_over(bloom, hash);
        status = BLOOM_OK;
    }
    return status;
}

/* Executes all words. env is NULL for deletions, which need none. */
static enum bloom_status
redo_all(struct bloom *bloom, const struct bloom_env *env,
         const struct redo *redo)
{
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    enum bloom_status status = BLOOM_OK;

    if (bloom_kind(bloom) != BLOOM_DELETABLE || bloom_is_incomplete(bloom) ||
        redo->count == 0 || redo->count % WORDS_EACH != 0) {
        return BLOOM_INVALID;
    }
    bloom_get_info(bloom, &before);
    for (size_t at = 0; at < redo->count && status == BLOOM_OK;
         at += WORDS_EACH) {
        if (!redo->anew) {
            status = redo_one(bloom, env, redo->words + at, redo->position);
        } else if (env != NULL) {
            status = add_anew(bloom, env, redo->words[at + 1]);
        }
    }
    bloom_get_info(bloom, &after);
    keyspace_account(&before, &after);
    return status;
}

enum bloom_status
redo_adds(struct bloom *bloom, const struct bloom_env *env,
          const struct redo *redo)
{
    return redo_all(bloom, env, redo);
}

enum bloom_status
redo_deletions(struct bloom *bloom, const struct redo *redo)
{
    return redo_all(bloom, NULL, redo);
}
