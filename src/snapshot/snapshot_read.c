/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the format that snapshot_format.h draws. It checks small filters and
 * voids a section at a time, and then shows them to the visitor. It shows a
 * large filter when all its lines were right, and a group of effects when it is
 * whole.
 */
#include "snapshot/snapshot_read.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "journal/group.h"
#include "snapshot/lines.h"
#include "snapshot/parts.h"
#include "snapshot/records.h"

struct reader {
    struct section_file file;
    const struct bloom_env *env;
    const struct snapshot_visitor *visitor;
    struct snapshot_progress *progress;
    uint64_t offset, ordinal; /* of the next section */
    bool ended;
    bool passed_over; /* a stretch was skipped */
    struct records records;
    struct lines lines;
    struct snapshot_stamp begin; /* the header's; zeros if that is damaged */
    bool in_effects;
    struct parts parts;
};

_Static_assert(SECTION_SCAN_BYTES + PIECE_BYTES <= RECORDS_BYTES_MAX,
               "a buffer for records is one for section_find()");

enum snapshot_status
snapshot_read_stamp(int fd, struct snapshot_stamp *ret_stamp,
                    struct snapshot_error *ret_error)
{
    struct section_file file = { .fd = fd, .error = ret_error };
    uint8_t header[HEADER_BYTES];
    enum snapshot_status status = section_open(&file, header);
    struct snapshot_stamp stamp;
    struct section end;

    if (status == SNAPSHOT_OK) {
        section_begin_stamp(header, &stamp);
    }
    if (status == SNAPSHOT_OK && stamp.version > 2) {
        status = section_read_end(&file, &end);
        status = status == SNAPSHOT_OK ? section_end_stamp(&file, &end, &stamp)
                                       : status;
    }
    section_close(&file);
    if (status == SNAPSHOT_OK) {
        *ret_stamp = stamp;
    }
    return status;
}

static enum snapshot_status
stopped(struct reader *reader, uint64_t offset)
{
    return section_fail(&reader->file, SNAPSHOT_STOPPED, offset,
                        "Reading was stopped here.");
}

/* Shows the records that were read, but not shown yet. */
static enum snapshot_status
settle_records(struct reader *reader)
{
    uint64_t keys = reader->file.records;
    enum snapshot_status status = records_settle(&reader->records);

    snapshot_advance(reader->progress, 0, reader->file.records - keys);
    return status;
}

/* Shows the records before this section. Returns their error, if there is one,
 * since it comes first in the file; else `status`. */
static enum snapshot_status
first_error(struct reader *reader, enum snapshot_status status)
{
    enum snapshot_status before = settle_records(reader);

    if (before == SNAPSHOT_OK) { /* now they are counted */
        reader->file.error->record = reader->file.records;
    }
    return before != SNAPSHOT_OK ? before : status;
}

static enum snapshot_status
read_records(struct reader *reader, const struct section *section)
{
    uint64_t keys = reader->file.records;
    enum snapshot_status status = section_read_payload(&reader->file, section);

    if (status != SNAPSHOT_OK) {
        return first_error(reader, status);
    }
    status = records_take(&reader->records, section);
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes,
                     reader->file.records - keys);
    return status;
}

/* ---- voids --------------------------------------------------------------- */

/* Returns a hash that stands for a key: that is enough to find a writer's
 * mistake. */
static uint64_t
name_of(const struct snapshot_record *record)
{
    return XXH3_64bits_withSeed(record->name.data, record->name.len,
                                (uint64_t)record->db << 32 | record->epoch);
}

/* Checks the void at `at`. The section has `left` more bytes. */
static enum snapshot_status
parse_void(struct reader *reader, const uint8_t *at, size_t left,
           uint64_t offset, struct snapshot_record *ret_gone)
{
    struct snapshot_record gone = { .db = 0 };

    if (left >= VOID_HEAD_BYTES) {
        gone.db = get_u32(at + VOID_AT_DB);
        gone.epoch = get_u32(at + VOID_AT_EPOCH);
        gone.name = (struct slice){ (const char *)at + VOID_HEAD_BYTES,
                                    get_u32(at + VOID_AT_NAME_BYTES) };
    }
    if (left < VOID_HEAD_BYTES || gone.db >= reader->file.databases ||
        gone.epoch >= SNAPSHOT_EPOCHS || gone.name.len > NAME_BYTES_MAX ||
        gone.name.len > left - VOID_HEAD_BYTES) {
        return section_damaged(&reader->file, offset, "A void makes no sense");
    }
    *ret_gone = gone;
    return SNAPSHOT_OK;
}

/* Walks over a section of voids, to check them or to show them. expected: the
 * key that the first must be of; NULL: any. */
static enum snapshot_status
walk_voids(struct reader *reader, const struct section *section,
           const uint64_t *expected, bool to_show)
{
    const struct snapshot_visitor *visitor = reader->visitor;
    size_t at = 0;
    size_t bytes = (size_t)section->bytes;

    while (at < bytes) {
        uint64_t offset = section->offset + SECTION_HEAD_BYTES + at;
        struct snapshot_record gone;
        enum snapshot_status status = parse_void(
            reader, reader->file.buffer + at, bytes - at, offset, &gone);

        if (status != SNAPSHOT_OK) {
            return status;
        }
        if (at == 0 && expected != NULL && name_of(&gone) != *expected) {
            return section_damaged(&reader->file, offset,
                                   "Here the next lines of a filter should "
                                   "be");
        }
        if (to_show && visitor->gone != NULL &&
            !visitor->gone(visitor->ctx, &gone)) {
            return stopped(reader, offset);
        }
        at += VOID_HEAD_BYTES + gone.name.len;
    }
    return SNAPSHOT_OK;
}

static enum snapshot_status
read_voids(struct reader *reader, const struct section *section,
           const uint64_t *expected)
{
    enum snapshot_status status = section_read_payload(&reader->file, section);

    if (status == SNAPSHOT_OK) {
        status = walk_voids(reader, section, expected, false);
    }
    if (status == SNAPSHOT_OK) {
        status = walk_voids(reader, section, expected, true);
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes, 0);
    return status;
}

/* ---- large filters ------------------------------------------------------- */

/* Reads the positions of a deletable filter's pieces, behind its lines. */
static enum snapshot_status
read_pieces(struct reader *reader, const struct record *record,
            struct section *section, struct bloom *bloom)
{
    enum snapshot_status status = section_read_head(
        &reader->file, section->next, section->ordinal + 1, section);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes, 0);
    return section->type == SECTION_PIECES
               ? lines_read_pieces(&reader->lines, bloom, reader->env, section,
                                   record->shown.copied_at,
                                   &reader->records.parser.copied_last)
               : section_damaged(&reader->file, section->offset,
                                 "Here the pieces of a filter should be");
}

/* Reads the lines, and shows the filter if they are complete. */
static enum snapshot_status
fill_large(struct reader *reader, const struct record *record, uint64_t offset,
           struct section *section)
{
    const uint64_t name = name_of(&record->shown);
    struct bloom bloom;
    bool broken = false;
    enum snapshot_status status = records_make(
        &reader->records.parser, reader->env, record, offset, &bloom);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes, 0);
    status = lines_read(&reader->lines, &bloom, section, &broken);
    if (status == SNAPSHOT_OK && !broken &&
        record->head.params.kind == BLOOM_DELETABLE) {
        status = read_pieces(reader, record, section, &bloom);
    }
    if (status != SNAPSHOT_OK || broken) {
        bloom_fini(&bloom, reader->env);
    }
    if (status != SNAPSHOT_OK) {
        return status;
    }
    snapshot_advance(reader->progress, 0, 1);
    if (broken) {
        reader->file.records++;
        return read_voids(reader, section, &name);
    }
    return records_show(&reader->records, &record->shown, offset, &bloom);
}

/* Reads a large filter. Its name stays in the buffer meanwhile. */
static enum snapshot_status
read_large(struct reader *reader, struct section *section)
{
    const uint64_t offset = section->offset + SECTION_HEAD_BYTES;
    enum snapshot_status status = section_read_payload(&reader->file, section);
    struct record record = { .front_bytes = 0 };

    if (status == SNAPSHOT_OK) {
        status =
            records_parse(&reader->records.parser, reader->file.buffer,
                          (size_t)section->bytes,
                          section->type == SECTION_LARGE_2, offset, &record);
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
    return fill_large(reader, &record, offset, section);
}

/* ---- effects ------------------------------------------------------------- */

static enum snapshot_status
read_effects(struct reader *reader, const struct section *section)
{
    const struct snapshot_visitor *visitor = reader->visitor;
    enum snapshot_status status = section_read_payload(&reader->file, section);
    struct snapshot_effects effects;

    if (status != SNAPSHOT_OK) {
        return status;
    }
    reader->in_effects = true;
    reader->parts.gaps = reader->passed_over;
    switch (parts_put(&reader->parts, reader->file.buffer,
                      (size_t)section->bytes, &effects)) {
    case PARTS_WRONG:
        return section_damaged(&reader->file, section->offset,
                               "These effects do not fit those before them");
    case PARTS_NOMEM:
        return section_no_memory(&reader->file, section->offset,
                                 section->bytes);
    case PARTS_WHOLE:
        if (visitor->effects != NULL &&
            !visitor->effects(visitor->ctx, &effects)) {
            return stopped(reader, section->offset);
        }
        break;
    case PARTS_MORE:
        break;
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes, 0);
    return SNAPSHOT_OK;
}

/* ---- the end, and all of it ---------------------------------------------- */

/* Checks what the end section says about everything before it. */
static bool
end_fits(const struct reader *reader, const struct section *section,
         const struct snapshot_stamp *end)
{
    const uint8_t *at = reader->file.buffer;

    if (get_u64(at + END_AT_BYTES) != section->offset ||
        get_u64(at + END_AT_RECORDS) != reader->file.records) {
        return false;
    }
    if (section->type == SECTION_END_2) {
        return reader->file.keys_announced == reader->file.records;
    }
    return parts_end_at(&reader->parts, end->position, end->sequence) &&
           records_copied_last(&reader->records) <= end->position;
}

static enum snapshot_status
show_end(struct reader *reader, const struct section *section,
         const struct snapshot_stamp *end)
{
    const struct snapshot_visitor *visitor = reader->visitor;

    if (visitor->end != NULL && !visitor->end(visitor->ctx, end)) {
        return stopped(reader, section->offset);
    }
    return SNAPSHOT_OK;
}

/* Reads the end section. Bytes behind it are damage of their own. */
static enum snapshot_status
read_end(struct reader *reader, const struct section *section)
{
    enum snapshot_status status = section_read_payload(&reader->file, section);
    const uint8_t *at = reader->file.buffer;
    struct snapshot_stamp end = reader->begin;

    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (get_u64(at + END_AT_FILE_KEY) != reader->file.key ||
        get_u64(at + END_AT_SECTIONS) != section->ordinal) {
        return section_damaged(&reader->file, section->offset,
                               "The end section makes no sense");
    }
    status = section_end_stamp(&reader->file, section, &end);
    if (status == SNAPSHOT_OK && !reader->passed_over &&
        !end_fits(reader, section, &end)) {
        status = section_damaged(
            &reader->file, section->offset,
            "The end section does not fit what stands before it");
    }
    if (status == SNAPSHOT_OK) {
        status = show_end(reader, section, &end);
    }
    if (status != SNAPSHOT_OK) {
        return status;
    }
    snapshot_advance(reader->progress, SECTION_FRAME_BYTES + section->bytes, 0);
    reader->ended = true;
    reader->offset = section->next;
    return section_expect_end(&reader->file, section->next);
}

static enum snapshot_status
read_section(struct reader *reader, struct section *section)
{
    enum snapshot_status status;

    if (section->type == SECTION_RECORDS_2 ||
        section->type == SECTION_RECORDS) {
        return read_records(reader, section);
    }
    status = settle_records(reader);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    switch (section->type) {
    case SECTION_LARGE_2:
    case SECTION_LARGE:
        return read_large(reader, section);
    case SECTION_VOIDS:
        return read_voids(reader, section, NULL);
    case SECTION_EFFECTS:
        return read_effects(reader, section);
    case SECTION_END_2:
    case SECTION_END:
        return read_end(reader, section);
    default:
        return section_damaged(&reader->file, section->offset,
                               "Here are lines that belong to no filter");
    }
}

static enum snapshot_status
read_next(struct reader *reader)
{
    struct section section = { .offset = reader->offset };
    enum snapshot_status status = section_read_head(
        &reader->file, reader->offset, reader->ordinal, &section);

    if (status == SNAPSHOT_OK && reader->in_effects &&
        section.type != SECTION_EFFECTS && section.type != SECTION_END) {
        status = section_damaged(&reader->file, section.offset,
                                 "Here are keys behind the effects");
    }
    if (status != SNAPSHOT_OK) {
        return first_error(reader, status);
    }
    status = read_section(reader, &section);
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
    parts_drop(&reader->parts);
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

/* Finds the first section that fits the file key in the end section, whose
 * length is said to be `end_bytes`.
 */
static bool
find_with_key(struct reader *reader, size_t end_bytes,
              struct section *ret_section)
{
    uint8_t key[8];

    if (section_read_bytes(&reader->file, key, sizeof(key),
                           reader->file.bytes - SECTION_HASH_BYTES - end_bytes +
                               END_AT_FILE_KEY) != SNAPSHOT_OK) {
        return false;
    }
    reader->file.key = get_u64(key);
    return section_find(&reader->file, 1, 0, ret_section);
}

/* Skips a damaged header. The key of the sections may still be intact there, or
 * in the end section. Without a key, sections cannot be distinguished from
 * garbage. */
static enum snapshot_status
pass_over_header(struct reader *reader)
{
    const struct snapshot_error why = *reader->file.error;
    struct section section;

    reader->file.databases = DATABASES_MAX;
    if (reader->file.bytes < HEADER_BYTES + SECTION_FRAME_BYTES + END_BYTES_2) {
        return why.status;
    }
    if (!section_reserve(&reader->file, SECTION_SCAN_BYTES + PIECE_BYTES)) {
        return section_no_memory(&reader->file, 0,
                                 SECTION_SCAN_BYTES + PIECE_BYTES);
    }
    if (!section_find(&reader->file, 1, 0, &section) &&
        !find_with_key(reader, END_BYTES, &section) &&
        !find_with_key(reader, END_BYTES_2, &section)) {
        *reader->file.error = why;
        return why.status;
    }
    reader->passed_over = true;
    reader->offset = section.offset;
    reader->ordinal = section.ordinal;
    reader->visitor->passed_over(reader->visitor->ctx, &why, 0, section.offset);
    return SNAPSHOT_OK;
}

/* Blocks that the disk cannot read count as damage, and so does the missing end
 * of a file that was cut while it was read. */
static bool
may_pass_over(const struct reader *reader, enum snapshot_status status)
{
    int error = reader->file.error->error;

    return reader->visitor->passed_over != NULL &&
           (status == SNAPSHOT_DAMAGED || status == SNAPSHOT_NEWER ||
            (status == SNAPSHOT_IO && (error == EIO || error == ENODATA)));
}

/* Tells how many keys may come. A header can say anything, but each key takes
 * bytes. */
static void
tell_keys(const struct reader *reader)
{
    const struct snapshot_visitor *visitor = reader->visitor;
    const struct section_file *file = &reader->file;
    uint64_t most = file->bytes / RECORD_BYTES_MIN;

    if (visitor->expect != NULL && file->source == NULL) {
        visitor->expect(visitor->ctx, file->keys_announced < most
                                          ? file->keys_announced
                                          : most);
    }
}

static enum snapshot_status
read_header(struct reader *reader)
{
    const struct snapshot_visitor *visitor = reader->visitor;
    uint8_t header[HEADER_BYTES];
    enum snapshot_status status = section_open(&reader->file, header);

    reader->offset = HEADER_BYTES;
    reader->records = (struct records){ .parser = { .file = &reader->file,
                                                    .begin = &reader->begin },
                                        .env = reader->env,
                                        .visitor = reader->visitor };
    reader->lines =
        (struct lines){ .file = &reader->file, .progress = reader->progress };
    if (status == SNAPSHOT_OK) {
        section_begin_stamp(header, &reader->begin);
        reader->parts.position = reader->begin.position;
        reader->parts.sequence = reader->begin.sequence;
    }
    if (status != SNAPSHOT_NEWER && may_pass_over(reader, status)) {
        status = pass_over_header(reader);
    } else if (status == SNAPSHOT_OK && visitor->header != NULL &&
               !visitor->header(visitor->ctx, &reader->begin,
                                reader->file.databases)) {
        status = stopped(reader, 0);
    } else if (status == SNAPSHOT_OK) {
        tell_keys(reader);
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
    records_fini(&reader->records);
    section_close(&reader->file);
    lines_fini(&reader->lines);
    parts_fini(&reader->parts);
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
