/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of generations; ageing.h has the rules. A new row of layers is made
 * first, which may fail, and then given to the filter.
 */
#include "core/ageing.h"

#include <string.h>

#include "base/err.h"
#include "core/bloom.h"
#include "core/env.h"
#include "core/turns.h"

/* ---- reading ------------------------------------------------------------- */

static struct bloom_extra *
extra_of(const struct bloom *bloom)
{
    struct bloom_extra *extra = bloom_extra_of(bloom);

    CHECK(extra != NULL && bloom_kind(bloom) == BLOOM_AGEING);
    return extra;
}

uint64_t
ageing_turn(const struct bloom *bloom)
{
    return bloom_kind(bloom) == BLOOM_AGEING ? extra_of(bloom)->turn : 0;
}

/* Returns how many turns have begun between the filter's turn and this time. */
static uint64_t
elapsed_at(const struct bloom *bloom, uint64_t now_ms)
{
    const struct bloom_extra *extra = extra_of(bloom);
    uint64_t turn = turns_at(extra->seconds, extra->generations, now_ms);

    return turn > extra->turn ? turn - extra->turn : 0;
}

/* Returns the index of the oldest layer that is live after so many turns, or
 * the number of layers. */
static uint32_t
first_live(const struct bloom *bloom, uint64_t elapsed)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint32_t generations = extra_of(bloom)->generations;
    uint32_t first = 0;

    while (first < bloom->count && layers[first].age + elapsed > generations) {
        first++;
    }
    return first;
}

/* Returns the index of the oldest layer that is live at this time; 0 if the
 * filter is not of kind ageing. */
static uint32_t
first_at(const struct bloom *bloom, uint64_t now_ms)
{
    return bloom_kind(bloom) == BLOOM_AGEING
               ? first_live(bloom, elapsed_at(bloom, now_ms))
               : 0;
}

bool
bloom_contains_at(const struct bloom *bloom, struct bloom_hash hash,
                  uint64_t now_ms)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint32_t first = first_at(bloom, now_ms);

    for (uint32_t i = bloom->count; i-- > first;) {
        if (layer_contains(&layers[i], hash)) {
            return true;
        }
    }
    return false;
}

void
ageing_begin(struct bloom *bloom, uint64_t now_ms)
{
    struct bloom_extra *extra = bloom_extra_of(bloom);

    CHECK(bloom_kind(bloom) == BLOOM_AGEING && bloom->count == 1 &&
          bloom_items(bloom) == 0);
    extra->turn = turns_at(extra->seconds, extra->generations, now_ms);
}

/* Asks each live layer for all items, since most items are in no generation, or
 * in one that cannot be predicted. */
void
ageing_contains_batch(const struct bloom *bloom,
                      const struct bloom_hash *hashes, size_t count,
                      uint64_t now_ms, bool *ret_found)
{
    const struct layer *layers = bloom_layers_const(bloom);
    bool found[BLOOM_BATCH_MAX];

    CHECK(count <= BLOOM_BATCH_MAX);
    if (bloom_kind(bloom) != BLOOM_AGEING) {
        bloom_contains_batch(bloom, hashes, count, ret_found);
        return;
    }
    memset(ret_found, false, count);
    for (uint32_t i = first_at(bloom, now_ms); i < bloom->count; i++) {
        layer_ops_of(&layers[i])
            ->contains_many(&layers[i], hashes, count, found);
        for (size_t n = 0; n < count; n++) {
            ret_found[n] |= found[n];
        }
    }
}

uint64_t
ageing_items(const struct bloom *bloom, uint64_t now_ms)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint64_t items = bloom_items(bloom);

    for (uint32_t i = first_at(bloom, now_ms); i-- > 0;) {
        items -= layers[i].items;
    }
    return items;
}

uint32_t
ageing_layers(const struct bloom *bloom, uint64_t now_ms)
{
    return bloom->count - first_at(bloom, now_ms);
}

uint64_t
ageing_age_ms(const struct bloom *bloom, uint32_t index, uint64_t now_ms)
{
    const struct bloom_extra *extra = extra_of(bloom);
    uint64_t age = bloom_layers_const(bloom)[index].age;
    uint64_t begin_ms =
        turns_begin_ms(extra->seconds, extra->generations, extra->turn - age);

    return now_ms > begin_ms ? now_ms - begin_ms : 0;
}

uint64_t
ageing_room(const struct bloom *bloom, uint64_t now_ms)
{
    return bloom_kind(bloom) == BLOOM_AGEING && elapsed_at(bloom, now_ms) > 0
               ? bloom_layers_const(bloom)[0].capacity
               : 0;
}

/* ---- a new row of layers ------------------------------------------------- */

struct row {
    struct bloom_chain *chain; /* NULL: one layer */
    struct layer one;
    uint32_t count;
    uint64_t size_bytes;
};

static struct layer *
row_layers(struct row *row)
{
    return row->chain == NULL ? &row->one : row->chain->layers;
}

/* Makes a row for COUNT layers with LINE_BYTES. */
static enum bloom_status
row_init(struct row *row, const struct bloom *bloom, uint32_t count,
         uint64_t line_bytes, const struct bloom_env *env)
{
    unsigned parts = bloom_parts(bloom);

    *row = (struct row){ .count = count };
    if (count > BLOOM_LAYERS_MAX) {
        return BLOOM_MAX_LAYERS;
    }
    if (!plan_size(parts, count, line_bytes, &row->size_bytes) ||
        row->size_bytes > env->size_limit_bytes) {
        return BLOOM_LIMIT;
    }
    if (count > 1) {
        row->chain = env->alloc(env->ctx, plan_chain_bytes(parts, count));
        if (row->chain == NULL) {
            return BLOOM_NOMEM;
        }
    }
    return BLOOM_OK;
}

static void
row_fini(const struct row *row, const struct bloom *bloom,
         const struct bloom_env *env)
{
    if (row->chain != NULL) {
        bloom_chain_free(bloom, row->chain, row->count, env);
    }
}

/* Makes an empty layer of the newest generation. */
static bool
begin_layer(struct layer *layer, const struct layer *like,
            const struct bloom_env *env)
{
    const struct geometry geometry = { .lines = like->line_count,
                                       .stripes = like->stripes };

    return layer_init(layer, BLOOM_AGEING, like->capacity, geometry, env);
}

/* Gives the filter a row whose layers are all there. The caller frees the lines
 * of the filter's old layers that the row does not have. */
static void
row_give(struct row *row, struct bloom *bloom, uint64_t turn,
         const struct bloom_env *env)
{
    struct bloom_extra *extra = extra_of(bloom);
    const struct layer *layers = row_layers(row);

    extra->turn = turn;
    extra->older_items = 0;
    for (uint32_t i = 0; i + 1 < row->count; i++) {
        extra->older_items += layers[i].items;
    }
    if (bloom->count > 1) {
        bloom_chain_free(bloom, bloom->chain, bloom->count, env);
    }
    bloom->count = (uint16_t)row->count;
    if (row->chain == NULL) {
        bloom->first = row->one;
        bloom->extra = extra;
    } else {
        row->chain->extra = extra;
        row->chain->capacity = extra->capacity;
        row->chain->size_bytes = row->size_bytes;
        bloom->chain = row->chain;
    }
    bloom_check(bloom);
}

/* ---- turns --------------------------------------------------------------- */

static uint64_t
bytes_from(const struct bloom *bloom, uint32_t first)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint64_t bytes = 0;

    for (uint32_t i = first; i < bloom->count; i++) {
        bytes += layer_bytes(&layers[i]);
    }
    return bytes;
}

/* Moves on by ELAPSED turns, at least 1, and begins a generation. Its layer has
 * the shape of the oldest one, so that each machine makes the same layer. */
static enum bloom_status
turn(struct bloom *bloom, uint64_t elapsed, const struct bloom_env *env)
{
    struct layer *old = bloom_layers(bloom);
    uint32_t first = first_live(bloom, elapsed);
    uint32_t kept = bloom->count - first;
    struct layer *layers;
    struct layer begun;
    struct row row;
    enum bloom_status status =
        row_init(&row, bloom, kept + 1,
                 bytes_from(bloom, first) + layer_bytes(&old[0]), env);

    if (status != BLOOM_OK) {
        return status;
    }
    if (!begin_layer(&begun, &old[0], env)) {
        row_fini(&row, bloom, env);
        return BLOOM_NOMEM;
    }
    for (uint32_t i = 0; i < first; i++) {
        layer_fini(&old[i], env);
    }
    layers = row_layers(&row);
    for (uint32_t i = 0; i < kept; i++) {
        layers[i] = old[first + i];
        layers[i].age = (uint16_t)(layers[i].age + elapsed);
    }
    layers[kept] = begun;
    row_give(&row, bloom, extra_of(bloom)->turn + elapsed, env);
    return BLOOM_OK;
}

static enum bloom_status
turn_to(struct bloom *bloom, uint64_t now_ms, const struct bloom_env *env)
{
    uint64_t elapsed = elapsed_at(bloom, now_ms);

    return elapsed > 0 ? turn(bloom, elapsed, env_or_default(env)) : BLOOM_OK;
}

/* After a turn, the newest generation is empty, so the add cannot fail. */
enum bloom_status
bloom_add_at(struct bloom *bloom, const struct bloom_env *env,
             struct bloom_hash hash, uint64_t now_ms, bool *ret_added)
{
    enum bloom_status status = BLOOM_OK;

    if (bloom_kind(bloom) == BLOOM_AGEING) {
        status = turn_to(bloom, now_ms, env);
    }
    return status == BLOOM_OK ? bloom_add(bloom, env, hash, ret_added) : status;
}

enum bloom_status
ageing_force(struct bloom *bloom, const struct bloom_env *env,
             struct bloom_hash hash, uint64_t now_ms)
{
    enum bloom_status status = turn_to(bloom, now_ms, env);

    return status == BLOOM_OK ? bloom_force(bloom, env, hash) : status;
}

/* ---- unions -------------------------------------------------------------- */

/* The union of several filters, at the latest of their turns. */
struct joined {
    struct bloom *into;
    struct row row;
    uint64_t turn;
    bool over; /* layers may get more items than their capacity */
    /* By age: the index of the first layer of a generation. */
    uint32_t first[TURNS_GENERATIONS_MAX + 1];
};

/* Returns the place of a part's layer in the union; NULL: it is not live. */
static struct layer *
place_of_layer(struct joined *joined, const struct bloom *part, uint32_t index)
{
    uint64_t age =
        bloom_layers_const(part)[index].age + joined->turn - ageing_turn(part);

    return age > extra_of(joined->into)->generations
               ? NULL
               : &row_layers(&joined->row)[joined->first[age] +
                                           bloom_step(part, index)];
}

/* Raises counts[age] to the number of layers that the part has of that age. */
static void
count_layers(const struct joined *joined, const struct bloom *part,
             uint32_t *counts)
{
    for (uint32_t i = 0; i < part->count; i++) {
        uint64_t age =
            bloom_layers_const(part)[i].age + joined->turn - ageing_turn(part);
        uint32_t layers = bloom_step(part, i) + 1;

        if (age <= extra_of(joined->into)->generations &&
            counts[age] < layers) {
            counts[age] = layers;
        }
    }
}

/* Finds the latest turn, and a place for each layer. Returns the number of
 * places. */
static uint32_t
find_places(struct joined *joined, const struct bloom *const *others,
            size_t count)
{
    uint32_t counts[TURNS_GENERATIONS_MAX + 1] = { 0 };
    uint32_t all = 0;

    joined->turn = ageing_turn(joined->into);
    for (size_t i = 0; i < count; i++) {
        uint64_t latest = ageing_turn(others[i]);

        joined->turn = joined->turn < latest ? latest : joined->turn;
    }
    count_layers(joined, joined->into, counts);
    for (size_t i = 0; i < count; i++) {
        count_layers(joined, others[i], counts);
    }
    for (uint32_t age = extra_of(joined->into)->generations + 1; age-- > 0;) {
        joined->first[age] = all;
        all += counts[age];
    }
    return all;
}

/* Adds the shapes and the items of a part to those of the union. */
static enum bloom_status
count_part(struct joined *joined, const struct bloom *part)
{
    const struct layer *layers = bloom_layers_const(part);

    for (uint32_t i = 0; i < part->count; i++) {
        struct layer *place = place_of_layer(joined, part, i);

        if (place == NULL) {
            continue;
        }
        if (place->line_count == 0) {
            *place = layers[i];
            place->lines = part == joined->into ? layers[i].lines : NULL;
            place->age =
                (uint16_t)(layers[i].age + joined->turn - ageing_turn(part));
        } else if (place->line_count != layers[i].line_count ||
                   place->stripes != layers[i].stripes) {
            return BLOOM_INVALID;
        } else {
            /* No overflow: both numbers are at most the capacity. */
            place->items += layers[i].items;
        }
        if (place->items > place->capacity && !joined->over) {
            return BLOOM_OVERFULL;
        }
        if (place->items > place->capacity) {
            place->items = place->capacity;
        }
    }
    return BLOOM_OK;
}

/* Frees the lines that the destination does not have. */
static void
free_lines(struct joined *joined, const struct bloom_env *env)
{
    struct layer *layers = row_layers(&joined->row);

    for (uint32_t i = 0; i < joined->into->count; i++) {
        struct layer *place = place_of_layer(joined, joined->into, i);

        if (place != NULL) {
            place->lines = NULL; /* the destination owns them */
        }
    }
    for (uint32_t i = 0; i < joined->row.count; i++) {
        if (layers[i].lines != NULL) {
            layer_fini(&layers[i], env);
        }
    }
}

/* Allocates the lines that the destination does not have. */
static enum bloom_status
alloc_lines(struct joined *joined, const struct bloom_env *env)
{
    struct layer *layers = row_layers(&joined->row);

    for (uint32_t i = 0; i < joined->row.count; i++) {
        if (layers[i].lines == NULL) {
            layers[i].lines =
                env->alloc_lines(env->ctx, (size_t)layer_bytes(&layers[i]));
        }
        if (layers[i].lines == NULL) {
            free_lines(joined, env);
            return BLOOM_NOMEM;
        }
    }
    return BLOOM_OK;
}

/* Does everything that may fail, before the destination changes. */
static enum bloom_status
join(struct joined *joined, const struct bloom *const *others, size_t count,
     const struct bloom_env *env)
{
    enum bloom_status status = count_part(joined, joined->into);
    uint64_t bytes = 0;

    for (size_t i = 0; i < count && status == BLOOM_OK; i++) {
        if (others[i] != joined->into) {
            status = count_part(joined, others[i]);
        }
    }
    for (uint32_t i = 0; i < joined->row.count && status == BLOOM_OK; i++) {
        bytes += layer_bytes(&row_layers(&joined->row)[i]);
    }
    if (status == BLOOM_OK &&
        (!plan_size(bloom_parts(joined->into), joined->row.count, bytes,
                    &joined->row.size_bytes) ||
         joined->row.size_bytes > env->size_limit_bytes)) {
        status = BLOOM_LIMIT;
    }
    return status == BLOOM_OK ? alloc_lines(joined, env) : status;
}

static void
add_words(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((from[i] & ~to[i]) != 0) {
            to[i] |= from[i];
        }
    }
}

/* Adds the bits of a part to the union. Words that do not change are not
 * written, so that memory that was never touched stays untouched. */
static void
add_bits(struct joined *joined, const struct bloom *part)
{
    const struct layer *layers = bloom_layers_const(part);

    for (uint32_t i = 0; i < part->count; i++) {
        struct layer *place = place_of_layer(joined, part, i);

        if (place != NULL) {
            add_words(place->lines->words, layers[i].lines->words,
                      (size_t)(layer_bytes(place) / sizeof(uint64_t)));
        }
    }
}

enum bloom_status
ageing_merge(struct bloom *bloom, const struct bloom_env *env,
             const struct bloom *const *others, size_t count, bool over)
{
    struct joined joined = { .into = bloom, .over = over };
    struct layer *own = bloom_layers(bloom);
    enum bloom_status status;

    env = env_or_default(env);
    status = row_init(&joined.row, bloom, find_places(&joined, others, count),
                      0, env);
    if (status != BLOOM_OK) {
        return status;
    }
    memset(row_layers(&joined.row), 0, joined.row.count * sizeof(*own));
    status = join(&joined, others, count, env);
    if (status != BLOOM_OK) {
        row_fini(&joined.row, bloom, env);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        if (others[i] != bloom) {
            add_bits(&joined, others[i]);
        }
    }
    for (uint32_t i = 0; i < bloom->count; i++) {
        if (place_of_layer(&joined, bloom, i) == NULL) {
            layer_fini(&own[i], env);
        }
    }
    row_give(&joined.row, bloom, joined.turn, env);
    return BLOOM_OK;
}
