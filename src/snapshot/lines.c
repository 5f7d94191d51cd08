/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A chunk without runs is read in pieces that fit into a core's own cache, each
 * hashed at once.
 */
#include "snapshot/lines.h"

#include "base/mem.h"
#include "core/collision.h"
#include "core/env.h"
#include "core/filter.h"
#include "core/parts.h"
#include "journal/group.h"

void
lines_fini(struct lines *lines)
{
    mem_free(lines->piece);
}

/* The place of a chunk, as its head says. */
struct chunk {
    struct section *section;
    uint32_t runs;
    uint64_t offset; /* in the layer */
    size_t body_bytes;
    uint8_t *layer; /* the lines of the layer */
    size_t layer_bytes;
    XXH3_state_t hash; /* hash of the chunk so far */
};

static bool
has_piece(struct lines *lines)
{
    if (lines->piece == NULL) {
        lines->piece = mem_try_alloc(SPARSE_BYTES_MAX + SECTION_HASH_BYTES);
    }
    return lines->piece != NULL;
}

/* Reads a part of a chunk without runs. Version 1 of the format has zero lines,
 * too. These must not use memory, so its lines are read into `piece` first. */
static enum snapshot_status
read_step(struct lines *lines, struct chunk *chunk, uint8_t *to, size_t len,
          uint64_t offset)
{
    bool direct = lines->file->version > 1;
    uint8_t *in = direct ? to : lines->piece;
    bool zero;
    enum snapshot_status status =
        section_read_bytes(lines->file, in, len, offset);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    (void)XXH3_64bits_update(&chunk->hash, in, len);
    zero = !direct && slice_is_zero((struct slice){ (const char *)in, len });
    if (!direct && !zero) {
        memcpy(to, in, len);
    }
    if (!zero) {
        codec_to_host(to, len);
    }
    snapshot_advance(lines->progress, len, 0);
    return SNAPSHOT_OK;
}

/* Reads lines without runs to their final place, and hashes them. */
static enum snapshot_status
read_lines(struct lines *lines, struct chunk *chunk)
{
    uint64_t offset =
        chunk->section->offset + SECTION_HEAD_BYTES + CHUNK_HEAD_BYTES;
    uint8_t *to = chunk->layer + chunk->offset;
    size_t left = chunk->body_bytes;
    uint8_t stored[SECTION_HASH_BYTES];
    enum snapshot_status status = SNAPSHOT_OK;

    if (lines->file->version == 1 && !has_piece(lines)) {
        return section_no_memory(lines->file, chunk->section->offset,
                                 SPARSE_BYTES_MAX);
    }
    while (left > 0 && status == SNAPSHOT_OK) {
        size_t step = left < PIECE_BYTES ? left : PIECE_BYTES;

        status = read_step(lines, chunk, to, step, offset);
        to += step;
        offset += step;
        left -= step;
    }
    if (status == SNAPSHOT_OK) {
        status =
            section_read_bytes(lines->file, stored, sizeof(stored), offset);
    }
    if (status == SNAPSHOT_OK &&
        get_u64(stored) != XXH3_64bits_digest(&chunk->hash)) {
        status = section_bad_hash(lines->file, chunk->section->offset);
    }
    return status;
}

/* Copies the lines of all runs to their place. False if they do not fit each
 * other, the chunk or the layer. */
static bool
spread_runs(const struct chunk *chunk, const uint8_t *body, uint64_t *ret_end)
{
    const uint8_t *from = body + (size_t)chunk->runs * RUN_BYTES;
    size_t left = chunk->body_bytes - (size_t)chunk->runs * RUN_BYTES;
    uint64_t at = chunk->offset;

    for (uint32_t i = 0; i < chunk->runs; i++) {
        const uint8_t *run = body + (size_t)i * RUN_BYTES;
        uint64_t bytes =
            (uint64_t)get_u32(run + RUN_AT_LINES) * BLOOM_LINE_BYTES;
        uint64_t zero =
            (uint64_t)get_u32(run + RUN_AT_ZERO_LINES) * BLOOM_LINE_BYTES;

        if (bytes == 0 || bytes > left || bytes > chunk->layer_bytes - at ||
            (zero == 0) != (i + 1 == chunk->runs)) {
            return false;
        }
        memcpy(chunk->layer + at, from, (size_t)bytes);
        codec_to_host(chunk->layer + at, (size_t)bytes);
        from += bytes;
        left -= (size_t)bytes;
        at += bytes;
        if (zero > chunk->layer_bytes - at) {
            return false;
        }
        at += zero;
    }
    *ret_end = at;
    return left == 0 && at - chunk->offset <= PIECE_BYTES;
}

static enum snapshot_status
read_runs(struct lines *lines, struct chunk *chunk, uint64_t *ret_end)
{
    const struct section *section = chunk->section;
    enum snapshot_status status;

    if (!has_piece(lines)) {
        return section_no_memory(lines->file, section->offset,
                                 SPARSE_BYTES_MAX);
    }
    status = section_read_bytes(
        lines->file, lines->piece, chunk->body_bytes + SECTION_HASH_BYTES,
        section->offset + SECTION_HEAD_BYTES + CHUNK_HEAD_BYTES);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    (void)XXH3_64bits_update(&chunk->hash, lines->piece, chunk->body_bytes);
    if (get_u64(lines->piece + chunk->body_bytes) !=
        XXH3_64bits_digest(&chunk->hash)) {
        return section_bad_hash(lines->file, section->offset);
    }
    if (!spread_runs(chunk, lines->piece, ret_end)) {
        return section_damaged(lines->file, section->offset,
                               "The runs of these lines make no sense");
    }
    snapshot_advance(lines->progress, chunk->body_bytes, 0);
    return SNAPSHOT_OK;
}

/* Returns whether the chunk may be the next one of its layer, which is known up
 * to `at`. */
static bool
chunk_fits(const struct lines *lines, const struct chunk *chunk, uint64_t at)
{
    if (chunk->offset < at || chunk->offset > chunk->layer_bytes ||
        chunk->offset % BLOOM_LINE_BYTES != 0 ||
        (lines->file->version == 1 &&
         (chunk->runs != 0 || chunk->offset != at || chunk->body_bytes == 0))) {
        return false;
    }
    if (chunk->runs > 0) {
        return chunk->runs <= PIECE_LINES / 2 &&
               chunk->body_bytes > (size_t)chunk->runs * RUN_BYTES &&
               CHUNK_HEAD_BYTES + chunk->body_bytes <= SPARSE_BYTES_MAX;
    }
    if (chunk->body_bytes == 0) {
        return chunk->offset == chunk->layer_bytes;
    }
    return chunk->body_bytes % BLOOM_LINE_BYTES == 0 &&
           chunk->body_bytes <= chunk->layer_bytes - chunk->offset;
}

/* Reads a chunk, which must be of this layer, from *ret_at on. Lines that it
 * leaves out stay zero. */
static enum snapshot_status
read_chunk(struct lines *lines, struct section *section, uint32_t layer,
           struct chunk *chunk, uint64_t *ret_at)
{
    uint8_t head[CHUNK_HEAD_BYTES];
    enum snapshot_status status = section_read_bytes(
        lines->file, head, sizeof(head), section->offset + SECTION_HEAD_BYTES);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    chunk->section = section;
    chunk->runs = get_u32(head + CHUNK_AT_RUNS);
    chunk->offset = get_u64(head + CHUNK_AT_OFFSET);
    chunk->body_bytes = (size_t)section->bytes - CHUNK_HEAD_BYTES;
    if (get_u32(head + CHUNK_AT_LAYER) != layer ||
        !chunk_fits(lines, chunk, *ret_at)) {
        return section_damaged(lines->file, section->offset,
                               "Here the next lines of a filter should be");
    }
    XXH3_INITSTATE(&chunk->hash);
    (void)XXH3_64bits_reset_withSeed(&chunk->hash, section->seed);
    (void)XXH3_64bits_update(&chunk->hash, head, sizeof(head));
    snapshot_advance(lines->progress, SECTION_FRAME_BYTES + CHUNK_HEAD_BYTES,
                     0);
    if (chunk->runs > 0) {
        return read_runs(lines, chunk, ret_at);
    }
    *ret_at = chunk->offset + chunk->body_bytes;
    return read_lines(lines, chunk);
}

enum snapshot_status
lines_read(struct lines *lines, struct bloom *bloom, struct section *section,
           bool *ret_broken)
{
    enum snapshot_status status = SNAPSHOT_OK;
    struct chunk chunk = { .runs = 0 };

    *ret_broken = false;
    for (uint32_t i = 0;
         (chunk.layer = codec_layer_lines(bloom, i, &chunk.layer_bytes)) !=
         NULL;
         i++) {
        uint64_t at = 0;

        while (at < chunk.layer_bytes) {
            status = section_read_head(lines->file, section->next,
                                       section->ordinal + 1, section);
            if (status == SNAPSHOT_OK && section->type == SECTION_VOIDS) {
                *ret_broken = true;
                return SNAPSHOT_OK;
            }
            if (status == SNAPSHOT_OK && section->type != SECTION_LINES) {
                status =
                    section_damaged(lines->file, section->offset,
                                    "Here the next lines of a filter should "
                                    "be");
            }
            if (status == SNAPSHOT_OK) {
                status = read_chunk(lines, section, i, &chunk, &at);
            }
            if (status != SNAPSHOT_OK) {
                return status;
            }
        }
    }
    return SNAPSHOT_OK;
}

/* ---- pieces -------------------------------------------------------------- */

/* Returns how many pieces of at most `most` bytes a filter has; 0 if a block of
 * the filter is longer, or if `most` is above PIECES_BYTES_MAX. */
static uint64_t
count_pieces(const struct bloom *bloom, uint64_t most)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint64_t count = 0;

    for (uint32_t i = 0; i < bloom->count; i++) {
        size_t step = most <= PIECES_BYTES_MAX
                          ? collision_piece_bytes(&layers[i], (size_t)most)
                          : 0;

        if (step == 0) {
            return 0;
        }
        count += (collision_layer_bytes(&layers[i]) + step - 1) / step;
    }
    return count;
}

/* Decodes and checks the positions. Raises *last to the highest of them. */
static bool
take_positions(struct bloom_pieces *pieces, uint64_t first, uint64_t *last)
{
    for (uint64_t i = 0; i < pieces->count; i++) {
        uint64_t position = get_u64((const uint8_t *)&pieces->at[i]);

        if (position < first || position >= GROUP_POSITION_LIMIT) {
            return false;
        }
        pieces->at[i] = position;
        *last = position > *last ? position : *last;
    }
    return true;
}

/* Reads the positions to their final place, and checks the section's hash. */
static enum snapshot_status
read_positions(struct lines *lines, const struct section *section,
               const uint8_t *head, struct bloom_pieces *pieces)
{
    size_t bytes = (size_t)section->bytes - PIECES_HEAD_BYTES;
    uint64_t offset = section->offset + SECTION_HEAD_BYTES + PIECES_HEAD_BYTES;
    uint8_t stored[SECTION_HASH_BYTES];
    enum snapshot_status status =
        pieces != NULL
            ? section_read_bytes(lines->file, pieces->at, bytes, offset)
            : SNAPSHOT_OK;
    XXH3_state_t hash;

    if (status == SNAPSHOT_OK) {
        status = section_read_bytes(lines->file, stored, sizeof(stored),
                                    offset + bytes);
    }
    if (status != SNAPSHOT_OK) {
        return status;
    }
    XXH3_INITSTATE(&hash);
    (void)XXH3_64bits_reset_withSeed(&hash, section->seed);
    (void)XXH3_64bits_update(&hash, head, PIECES_HEAD_BYTES);
    if (pieces != NULL) {
        (void)XXH3_64bits_update(&hash, pieces->at, bytes);
    }
    return get_u64(stored) == XXH3_64bits_digest(&hash)
               ? SNAPSHOT_OK
               : section_bad_hash(lines->file, section->offset);
}

enum snapshot_status
lines_read_pieces(struct lines *lines, struct bloom *bloom,
                  const struct bloom_env *env, const struct section *section,
                  uint64_t first, uint64_t *last)
{
    uint8_t head[PIECES_HEAD_BYTES];
    uint64_t count =
        (section->bytes - PIECES_HEAD_BYTES) / PIECES_POSITION_BYTES;
    struct bloom_pieces *pieces = NULL;
    enum snapshot_status status = section_read_bytes(
        lines->file, head, sizeof(head), section->offset + SECTION_HEAD_BYTES);

    env = env_or_default(env);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (count != count_pieces(bloom, get_u64(head + PIECES_AT_MOST))) {
        return section_damaged(lines->file, section->offset,
                               "These pieces are not the filter's");
    }
    if (count > 0) {
        pieces = bloom_new_pieces(count, env);
        if (pieces == NULL) {
            return section_no_memory(lines->file, section->offset,
                                     section->bytes);
        }
        pieces->most_bytes = (size_t)get_u64(head + PIECES_AT_MOST);
        pieces->layers = bloom->count;
        bloom_set_pieces(bloom, pieces, env);
    }
    status = read_positions(lines, section, head, pieces);
    if (status == SNAPSHOT_OK && pieces != NULL &&
        !take_positions(pieces, first, last)) {
        status = section_damaged(lines->file, section->offset,
                                 "The position of a piece makes no sense");
    }
    return status;
}
