/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the format that snapshot.c draws. It checks small filters a section at
 * a time, and then shows them to the visitor. It reads the lines of a large
 * filter straight to their final place, and shows the filter when all of them
 * hold.
 */
#include "persist/snapshot_read.h"

#include <errno.h>

#include "base/mem.h"
#include "persist/section.h"

struct reader {
    struct section_file file;
    const struct bloom_env *env;
    const struct snapshot_visitor *visitor;
    struct snapshot_progress *progress;
    uint64_t offset, ordinal; /* of the next section */
    bool ended;
    bool passed_over; /* a stretch was skipped */
    struct codec_memo memo;
    uint8_t *piece; /* SPARSE_BYTES_MAX + SECTION_HASH_BYTES, once needed */
};

/* The front of a record: everything but the lines. */
struct record {
    struct snapshot_record shown;
    struct codec_head head;
    const uint8_t *lines; /* where lines would begin */
    size_t front_bytes;
};

_Static_assert(SECTION_SCAN_BYTES + PIECE_BYTES <= RECORDS_BYTES_MAX,
               "a buffer for records is one for section_find()");

static void
fill_stamp(struct snapshot_stamp *stamp, const uint8_t *header)
{
    memset(stamp, 0, sizeof(*stamp));
    memcpy(stamp->history, header + HEADER_AT_HISTORY, SNAPSHOT_HISTORY_BYTES);
    stamp->position = get_u64(header + HEADER_AT_POSITION);
    stamp->sequence = get_u64(header + HEADER_AT_SEQUENCE);
    stamp->created_ms = get_u64(header + HEADER_AT_CREATED);
    stamp->keys = get_u64(header + HEADER_AT_KEYS);
    stamp->version = get_u16(header + HEADER_AT_VERSION);
}

enum snapshot_status
snapshot_read_stamp(int fd, struct snapshot_stamp *ret_stamp,
                    struct snapshot_error *ret_error)
{
    struct section_file file = { .fd = fd, .error = ret_error };
    uint8_t header[HEADER_BYTES];
    enum snapshot_status status = section_open(&file, header);

    if (status == SNAPSHOT_OK) {
        fill_stamp(ret_stamp, header);
    }
    return status;
}

/* ---- records ------------------------------------------------------------- */

/* Checks the record at `at`, of which `left` bytes are there; does not check
 * its lines. */
static enum snapshot_status
parse_record(struct reader *reader, const uint8_t *at, size_t left,
             uint64_t offset, struct record *ret_record)
{
    struct record record;
    uint64_t form_bytes;
    size_t name_bytes;
    enum bloom_status status;

    if (left < RECORD_BYTES_MIN) {
        return section_damaged(&reader->file, offset,
                               "The section ends within a record");
    }
    record.shown.db = get_u32(at + RECORD_AT_DB);
    record.shown.expires_at_ms = get_u64(at + RECORD_AT_EXPIRES);
    form_bytes = get_u64(at + RECORD_AT_FORM_BYTES);
    name_bytes = get_u32(at + RECORD_AT_NAME_BYTES);
    left -= RECORD_HEAD_BYTES;
    at += RECORD_HEAD_BYTES;
    if (record.shown.db >= reader->file.databases ||
        record.shown.expires_at_ms > INT64_MAX || name_bytes > NAME_BYTES_MAX ||
        name_bytes > left) {
        return section_damaged(&reader->file, offset,
                               "The head of a record makes no sense");
    }
    record.shown.name = (struct slice){ (const char *)at, name_bytes };
    at += name_bytes;
    left -= name_bytes;
    status = codec_read_head(at, left, &record.head);
    if (status == BLOOM_VERSION) {
        return section_fail(
            &reader->file, SNAPSHOT_NEWER, offset,
            "A filter is of a version or kind that this program does "
            "not know.");
    }
    if (status != BLOOM_OK ||
        record.head.total_bytes - CODEC_CHECKSUM_BYTES != form_bytes ||
        codec_check_head_known(&record.head, &reader->memo) != BLOOM_OK) {
        return section_damaged(&reader->file, offset,
                               "The head of a filter makes no sense");
    }
    record.shown.incarnation = record.head.incarnation;
    record.lines = at + record.head.head_bytes;
    record.front_bytes =
        RECORD_HEAD_BYTES + name_bytes + record.head.head_bytes;
    *ret_record = record;
    return SNAPSHOT_OK;
}

static enum snapshot_status
new_filter(struct reader *reader, const struct record *record, uint64_t offset,
           struct bloom **ret_bloom)
{
    if (codec_new(&record->head, reader->env, ret_bloom) != BLOOM_OK) {
        return section_no_memory(&reader->file, offset,
                                 record->head.line_bytes);
    }
    return SNAPSHOT_OK;
}

static enum snapshot_status
stopped(struct reader *reader, uint64_t offset)
{
    return section_fail(&reader->file, SNAPSHOT_STOPPED, offset,
                        "Reading was stopped here.");
}

static enum snapshot_status
show(struct reader *reader, const struct record *record, uint64_t offset,
     struct bloom *bloom)
{
    const struct snapshot_visitor *visitor = reader->visitor;

    if (!visitor->filter(visitor->ctx, &record->shown, bloom)) {
        return stopped(reader, offset);
    }
    reader->file.records++;
    return SNAPSHOT_OK;
}

/* Walks over a section of small filters, to check them or to show them. Errors
 * name the record. */
static enum snapshot_status
walk_records(struct reader *reader, const struct section *section, bool to_show)
{
    const uint64_t before = reader->file.records;
    size_t at = 0;
    size_t bytes = (size_t)section->bytes;

    for (uint64_t i = 0; at < bytes; i++) {
        uint64_t offset = section->offset + SECTION_HEAD_BYTES + at;
        struct record record = { .front_bytes = 0 };
        struct bloom *bloom = NULL;
        enum snapshot_status status = parse_record(
            reader, reader->file.buffer + at, bytes - at, offset, &record);

        if (status == SNAPSHOT_OK &&
            record.head.line_bytes > bytes - at - record.front_bytes) {
            status = section_damaged(&reader->file, offset,
                                     "The section ends within a filter");
        }
        if (status != SNAPSHOT_OK) {
            reader->file.error->record = before + i;
            return status;
        }
        at += record.front_bytes + (size_t)record.head.line_bytes;
        if (!to_show) {
            continue;
        }
        status = new_filter(reader, &record, offset, &bloom);
        if (status == SNAPSHOT_OK) {
            codec_fill(bloom, record.lines);
            status = show(reader, &record, offset, bloom);
        }
        if (status != SNAPSHOT_OK) {
            return status;
        }
    }
    return SNAPSHOT_OK;
}

static enum snapshot_status
read_records(struct reader *reader, const struct section *section)
{
    uint64_t keys = reader->file.records;
    enum snapshot_status status = section_read_payload(&reader->file, section);

    if (status == SNAPSHOT_OK) {
        status = walk_records(reader, section, false);
    }
    if (status == SNAPSHOT_OK) {
        status = walk_records(reader, section, true);
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes,
                     reader->file.records - keys);
    return status;
}

/* ---- large filters ------------------------------------------------------- */

/* The place of a chunk, from its head. */
struct chunk {
    struct section *section;
    uint32_t runs;
    uint64_t offset; /* in the layer */
    size_t body_bytes;
    uint8_t *layer; /* its lines */
    size_t layer_bytes;
    XXH3_state_t hash; /* so far */
};

static bool
has_piece(struct reader *reader)
{
    if (reader->piece == NULL) {
        reader->piece = mem_try_alloc(SPARSE_BYTES_MAX + SECTION_HASH_BYTES);
    }
    return reader->piece != NULL;
}

static bool
is_zero(const uint8_t *bytes, size_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Reads a part of a chunk without runs. Version 1 does not leave zeros out:
 * they must not use memory here, so they go through the piece. */
static enum snapshot_status
read_step(struct reader *reader, struct chunk *chunk, uint8_t *to, size_t len,
          uint64_t offset)
{
    bool direct = reader->file.version > 1;
    uint8_t *in = direct ? to : reader->piece;
    enum snapshot_status status =
        section_read_bytes(&reader->file, in, len, offset);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    (void)XXH3_64bits_update(&chunk->hash, in, len);
    if (!direct && !is_zero(in, len)) {
        memcpy(to, in, len);
    }
    if (direct || !is_zero(in, len)) {
        codec_to_host(to, len);
    }
    snapshot_advance(reader->progress, len, 0);
    return SNAPSHOT_OK;
}

/* Reads lines without runs to their final place, and hashes them. */
static enum snapshot_status
read_lines(struct reader *reader, struct chunk *chunk)
{
    uint64_t offset =
        chunk->section->offset + SECTION_HEAD_BYTES + CHUNK_HEAD_BYTES;
    uint8_t *to = chunk->layer + chunk->offset;
    size_t left = chunk->body_bytes;
    uint8_t stored[SECTION_HASH_BYTES];
    enum snapshot_status status = SNAPSHOT_OK;

    if (reader->file.version == 1 && !has_piece(reader)) {
        return section_no_memory(&reader->file, chunk->section->offset,
                                 SPARSE_BYTES_MAX);
    }
    while (left > 0 && status == SNAPSHOT_OK) {
        size_t step = left < PIECE_BYTES ? left : PIECE_BYTES;

        status = read_step(reader, chunk, to, step, offset);
        to += step;
        offset += step;
        left -= step;
    }
    if (status == SNAPSHOT_OK) {
        status =
            section_read_bytes(&reader->file, stored, sizeof(stored), offset);
    }
    if (status == SNAPSHOT_OK &&
        get_u64(stored) != XXH3_64bits_digest(&chunk->hash)) {
        status = section_bad_hash(&reader->file, chunk->section->offset);
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
read_runs(struct reader *reader, struct chunk *chunk, uint64_t *ret_end)
{
    const struct section *section = chunk->section;
    enum snapshot_status status;

    if (!has_piece(reader)) {
        return section_no_memory(&reader->file, section->offset,
                                 SPARSE_BYTES_MAX);
    }
    status = section_read_bytes(
        &reader->file, reader->piece, chunk->body_bytes + SECTION_HASH_BYTES,
        section->offset + SECTION_HEAD_BYTES + CHUNK_HEAD_BYTES);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    (void)XXH3_64bits_update(&chunk->hash, reader->piece, chunk->body_bytes);
    if (get_u64(reader->piece + chunk->body_bytes) !=
        XXH3_64bits_digest(&chunk->hash)) {
        return section_bad_hash(&reader->file, section->offset);
    }
    if (!spread_runs(chunk, reader->piece, ret_end)) {
        return section_damaged(&reader->file, section->offset,
                               "The runs of these lines make no sense");
    }
    snapshot_advance(reader->progress, chunk->body_bytes, 0);
    return SNAPSHOT_OK;
}

/* Whether the chunk may be the next of its layer, which is known up to `at`. */
static bool
chunk_fits(const struct reader *reader, const struct chunk *chunk, uint64_t at)
{
    if (chunk->offset < at || chunk->offset > chunk->layer_bytes ||
        chunk->offset % BLOOM_LINE_BYTES != 0 ||
        (reader->file.version == 1 &&
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

/* Reads a chunk, which must be of this layer, from *ret_at on. What it leaves
 * out stays zero. */
static enum snapshot_status
read_chunk(struct reader *reader, struct section *section, uint32_t layer,
           struct chunk *chunk, uint64_t *ret_at)
{
    uint8_t head[CHUNK_HEAD_BYTES];
    enum snapshot_status status =
        section_read_bytes(&reader->file, head, sizeof(head),
                           section->offset + SECTION_HEAD_BYTES);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    chunk->section = section;
    chunk->runs = get_u32(head + CHUNK_AT_RUNS);
    chunk->offset = get_u64(head + CHUNK_AT_OFFSET);
    chunk->body_bytes = (size_t)section->bytes - CHUNK_HEAD_BYTES;
    if (get_u32(head + CHUNK_AT_LAYER) != layer ||
        !chunk_fits(reader, chunk, *ret_at)) {
        return section_damaged(&reader->file, section->offset,
                               "Here the next lines of a filter should be");
    }
    XXH3_INITSTATE(&chunk->hash);
    (void)XXH3_64bits_reset_withSeed(&chunk->hash, section->seed);
    (void)XXH3_64bits_update(&chunk->hash, head, sizeof(head));
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + CHUNK_HEAD_BYTES,
                     0);
    if (chunk->runs > 0) {
        return read_runs(reader, chunk, ret_at);
    }
    *ret_at = chunk->offset + chunk->body_bytes;
    return read_lines(reader, chunk);
}

/* Reads all lines. *section is the filter's own section at first, and its last
 * one afterwards. */
static enum snapshot_status
read_layers(struct reader *reader, struct bloom *bloom, struct section *section)
{
    enum snapshot_status status = SNAPSHOT_OK;
    struct chunk chunk = { .runs = 0 };

    for (uint32_t i = 0;
         (chunk.layer = codec_layer_lines(bloom, i, &chunk.layer_bytes)) !=
         NULL;
         i++) {
        uint64_t at = 0;

        while (at < chunk.layer_bytes) {
            status = section_read_head(&reader->file, section->next,
                                       section->ordinal + 1, section);
            if (status == SNAPSHOT_OK && section->type != SECTION_LINES) {
                status =
                    section_damaged(&reader->file, section->offset,
                                    "Here the next lines of a filter should "
                                    "be");
            }
            if (status == SNAPSHOT_OK) {
                status = read_chunk(reader, section, i, &chunk, &at);
            }
            if (status != SNAPSHOT_OK) {
                return status;
            }
        }
    }
    return SNAPSHOT_OK;
}

/* Reads a large filter. Its name stays in the buffer meanwhile. */
static enum snapshot_status
read_large(struct reader *reader, struct section *section)
{
    const uint64_t offset = section->offset + SECTION_HEAD_BYTES;
    enum snapshot_status status = section_read_payload(&reader->file, section);
    struct bloom *bloom = NULL;
    struct record record = { .front_bytes = 0 };

    if (status == SNAPSHOT_OK) {
        status = parse_record(reader, reader->file.buffer,
                              (size_t)section->bytes, offset, &record);
    }
    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (record.front_bytes != section->bytes) {
        return section_damaged(&reader->file, offset,
                               "The section is longer than its record");
    }
    /* In later versions lines may be left out as zero: env limits their memory.
     */
    if (reader->file.version == 1 &&
        record.head.line_bytes > reader->file.bytes - section->next) {
        return section_damaged(&reader->file, section->next,
                               "The file ends within the lines of a filter");
    }
    status = new_filter(reader, &record, offset, &bloom);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes, 0);
    status = read_layers(reader, bloom, section);
    if (status != SNAPSHOT_OK) {
        bloom_free(bloom, reader->env);
        return status;
    }
    snapshot_advance(reader->progress, 0, 1);
    return show(reader, &record, offset, bloom);
}

/* ---- the end, and all of it ---------------------------------------------- */

/* Reads the end section. Bytes behind it are damage of their own. */
static enum snapshot_status
read_end(struct reader *reader, const struct section *section)
{
    enum snapshot_status status = section_read_payload(&reader->file, section);
    const uint8_t *at = reader->file.buffer;

    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (get_u64(at + END_AT_FILE_KEY) != reader->file.key ||
        get_u64(at + END_AT_SECTIONS) != section->ordinal) {
        return section_damaged(&reader->file, section->offset,
                               "The end section makes no sense");
    }
    if (!reader->passed_over &&
        (get_u64(at + END_AT_BYTES) != section->offset ||
         get_u64(at + END_AT_KEYS) != reader->file.records ||
         reader->file.keys_announced != reader->file.records)) {
        return section_damaged(
            &reader->file, section->offset,
            "The end section does not fit what stands before it");
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes, 0);
    reader->ended = true;
    reader->offset = section->next;
    return section_expect_end(&reader->file, section->next);
}

static enum snapshot_status
read_next(struct reader *reader)
{
    struct section section = { .offset = reader->offset };
    enum snapshot_status status = section_read_head(
        &reader->file, reader->offset, reader->ordinal, &section);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    switch (section.type) {
    case SECTION_RECORDS:
        status = read_records(reader, &section);
        break;
    case SECTION_LARGE:
        status = read_large(reader, &section);
        break;
    case SECTION_END:
        status = read_end(reader, &section);
        break;
    default:
        status = section_damaged(&reader->file, section.offset,
                                 "Here are lines that belong to no filter");
    }
    if (status == SNAPSHOT_OK) {
        reader->offset = section.next;
        reader->ordinal = section.ordinal + 1;
    }
    return status;
}

/* ---- damage that is passed over ------------------------------------------ */

/* Skips from reader->offset, where *reader->file.error is, to the next intact
 * section. */
static enum snapshot_status
pass_over(struct reader *reader)
{
    const struct snapshot_visitor *visitor = reader->visitor;
    const struct snapshot_error why = *reader->file.error;
    uint64_t from = reader->offset;
    struct section section;

    if (!section_reserve(&reader->file, SECTION_SCAN_BYTES + PIECE_BYTES)) {
        return section_no_memory(&reader->file, from,
                                 SECTION_SCAN_BYTES + PIECE_BYTES);
    }
    reader->passed_over = true;
    if (!reader->ended && from < reader->file.bytes &&
        section_find(&reader->file, from + 1, reader->ordinal, &section)) {
        reader->offset = section.offset;
        reader->ordinal = section.ordinal;
    } else {
        reader->offset = reader->file.bytes;
        reader->ended = true;
    }
    visitor->passed_over(visitor->ctx, &why, from, reader->offset);
    return SNAPSHOT_OK;
}

/* Skips a damaged header. The key of the sections may still be intact there, or
 * in the end section. Without a key, sections cannot be distinguished from
 * garbage. */
static enum snapshot_status
pass_over_header(struct reader *reader)
{
    const struct snapshot_error why = *reader->file.error;
    const uint64_t end_bytes = SECTION_FRAME_BYTES + END_BYTES;
    struct section section;
    uint8_t key[8];

    reader->file.databases = DATABASES_MAX;
    if (reader->file.bytes < HEADER_BYTES + end_bytes) {
        return why.status;
    }
    if (!section_reserve(&reader->file, SECTION_SCAN_BYTES + PIECE_BYTES)) {
        return section_no_memory(&reader->file, 0,
                                 SECTION_SCAN_BYTES + PIECE_BYTES);
    }
    if (!section_find(&reader->file, 1, 0, &section)) {
        if (section_read_bytes(&reader->file, key, sizeof(key),
                               reader->file.bytes - end_bytes +
                                   SECTION_HEAD_BYTES + END_AT_FILE_KEY) ==
            SNAPSHOT_OK) {
            reader->file.key = get_u64(key);
        }
        if (!section_find(&reader->file, 1, 0, &section)) {
            *reader->file.error = why;
            return why.status;
        }
    }
    reader->passed_over = true;
    reader->offset = section.offset;
    reader->ordinal = section.ordinal;
    reader->visitor->passed_over(reader->visitor->ctx, &why, 0, section.offset);
    return SNAPSHOT_OK;
}

/* Blocks that the disk cannot read count as damage. */
static bool
may_pass_over(const struct reader *reader, enum snapshot_status status)
{
    return reader->visitor->passed_over != NULL &&
           (status == SNAPSHOT_DAMAGED || status == SNAPSHOT_NEWER ||
            (status == SNAPSHOT_IO && reader->file.error->error == EIO));
}

static enum snapshot_status
read_header(struct reader *reader)
{
    const struct snapshot_visitor *visitor = reader->visitor;
    uint8_t header[HEADER_BYTES];
    enum snapshot_status status = section_open(&reader->file, header);
    struct snapshot_stamp stamp;

    reader->offset = HEADER_BYTES;
    if (status != SNAPSHOT_NEWER && may_pass_over(reader, status)) {
        status = pass_over_header(reader);
    } else if (status == SNAPSHOT_OK && visitor->header != NULL) {
        fill_stamp(&stamp, header);
        if (!visitor->header(visitor->ctx, &stamp, reader->file.databases)) {
            status = stopped(reader, 0);
        }
    }
    snapshot_advance(reader->progress, HEADER_BYTES, 0);
    return status;
}

static enum snapshot_status
read_all(struct reader *reader)
{
    enum snapshot_status status = read_header(reader);

    while (status == SNAPSHOT_OK && !reader->ended) {
        status = read_next(reader);
        if (may_pass_over(reader, status)) {
            status = pass_over(reader);
        }
    }
    section_close(&reader->file);
    mem_free(reader->piece);
    return status;
}

enum snapshot_status
snapshot_read(int fd, const struct bloom_env *env,
              const struct snapshot_visitor *visitor,
              struct snapshot_progress *progress,
              struct snapshot_error *ret_error)
{
    struct reader reader = { .file = { .fd = fd, .error = ret_error },
                             .env = env,
                             .visitor = visitor,
                             .progress = progress };

    return read_all(&reader);
}

enum snapshot_status
snapshot_read_source(const struct snapshot_source *source,
                     const struct bloom_env *env,
                     const struct snapshot_visitor *visitor,
                     struct snapshot_progress *progress,
                     struct snapshot_error *ret_error)
{
    struct reader reader = {
        .file = { .fd = -1, .source = source, .error = ret_error },
        .env = env,
        .visitor = visitor,
        .progress = progress
    };

    CHECK(visitor->passed_over == NULL); /* a stream cannot be searched */
    return read_all(&reader);
}
