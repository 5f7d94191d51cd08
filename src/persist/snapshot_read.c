/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads what snapshot.c draws. Small filters are checked a section at a
 * time and then shown; the lines of a large one are read straight to where
 * they stay, and the filter is shown when all of them hold.
 */
#include "persist/snapshot_read.h"

#include <errno.h>

#include "persist/section.h"

struct reader {
    struct section_file file;
    const struct bloom_env *env;
    const struct snapshot_visitor *visitor;
    struct snapshot_progress *progress;
    uint64_t offset, ordinal; /* of the next section */
    bool ended;
    bool passed_over; /* something was */
    struct codec_memo memo;
};

/* A record's front: all but the lines. */
struct record {
    struct snapshot_record shown;
    struct codec_head head;
    const uint8_t *lines; /* where they would be */
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

/* Checks the record at `at`, of which `left` bytes are there: all but what
 * its lines say. */
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

/* One walk over a section of small filters: to check, or to show. Errors name
 * the record. */
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

/* Reads a chunk's lines to where they stay, hashing on the way. */
static enum snapshot_status
read_lines(struct reader *reader, const struct section *section,
           XXH3_state_t *hash, uint8_t *to)
{
    uint64_t offset = section->offset + SECTION_HEAD_BYTES + CHUNK_HEAD_BYTES;
    size_t left = (size_t)section->bytes - CHUNK_HEAD_BYTES;
    uint8_t stored[SECTION_HASH_BYTES];
    enum snapshot_status status = SNAPSHOT_OK;

    while (left > 0 && status == SNAPSHOT_OK) {
        size_t step = left < PIECE_BYTES ? left : PIECE_BYTES;

        status = section_read_bytes(&reader->file, to, step, offset);
        if (status == SNAPSHOT_OK) {
            (void)XXH3_64bits_update(hash, to, step);
            codec_to_host(to, step);
            snapshot_advance(reader->progress, step, 0);
        }
        to += step;
        offset += step;
        left -= step;
    }
    if (status == SNAPSHOT_OK) {
        status =
            section_read_bytes(&reader->file, stored, sizeof(stored), offset);
    }
    if (status == SNAPSHOT_OK && get_u64(stored) != XXH3_64bits_digest(hash)) {
        status = section_bad_hash(&reader->file, section->offset);
    }
    return status;
}

/* The chunk has to be the lines of this layer from `at` on. */
static enum snapshot_status
read_chunk(struct reader *reader, const struct section *section, uint32_t layer,
           uint64_t at, struct slice room)
{
    uint8_t head[CHUNK_HEAD_BYTES];
    XXH3_state_t hash;
    const union {
        const char *in;
        uint8_t *out;
    } to = { room.data };
    enum snapshot_status status =
        section_read_bytes(&reader->file, head, sizeof(head),
                           section->offset + SECTION_HEAD_BYTES);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (section->type != SECTION_LINES ||
        get_u32(head + CHUNK_AT_LAYER) != layer ||
        get_u32(head + CHUNK_AT_ZERO) != 0 ||
        get_u64(head + CHUNK_AT_OFFSET) != at ||
        section->bytes - CHUNK_HEAD_BYTES > room.len) {
        return section_damaged(&reader->file, section->offset,
                               "Here the next lines of a filter should be");
    }
    XXH3_INITSTATE(&hash);
    (void)XXH3_64bits_reset_withSeed(&hash, section->seed);
    (void)XXH3_64bits_update(&hash, head, sizeof(head));
    return read_lines(reader, section, &hash, to.out);
}

/* All lines. *section is the filter's own at first, its last one after. */
static enum snapshot_status
read_layers(struct reader *reader, struct bloom *bloom, struct section *section)
{
    enum snapshot_status status = SNAPSHOT_OK;
    size_t bytes = 0;
    uint8_t *lines;

    for (uint32_t i = 0; (lines = codec_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        size_t at = 0;

        while (at < bytes && status == SNAPSHOT_OK) {
            const struct slice room = { (const char *)lines + at, bytes - at };

            status = section_read_head(&reader->file, section->next,
                                       section->ordinal + 1, section);
            if (status == SNAPSHOT_OK) {
                status = read_chunk(reader, section, i, at, room);
                at += (size_t)section->bytes - CHUNK_HEAD_BYTES;
            }
        }
        if (status != SNAPSHOT_OK) {
            return status;
        }
    }
    return SNAPSHOT_OK;
}

/* The name stays in the buffer while the lines are read past it. */
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
    if (record.head.line_bytes > reader->file.bytes - section->next) {
        return section_damaged(&reader->file, section->next,
                               "The file ends within the lines of a filter");
    }
    status = new_filter(reader, &record, offset, &bloom);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    status = read_layers(reader, bloom, section);
    if (status != SNAPSHOT_OK) {
        bloom_free(bloom, reader->env);
        return status;
    }
    snapshot_advance(reader->progress,
                     section->next - offset - record.head.line_bytes +
                         SECTION_HEAD_BYTES,
                     1);
    return show(reader, &record, offset, bloom);
}

/* ---- the end, and all of it ---------------------------------------------- */

/* What follows the end is damage of its own. */
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

/* From reader->offset, where *reader->file.error is, to what is intact again.
 */
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

/* With a damaged header there may still be a key that fits: its own, or that
 * of the end. Without one, nothing can be told from garbage. */
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

/* A disk that cannot read some blocks is damage too. */
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
