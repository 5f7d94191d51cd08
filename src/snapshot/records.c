/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All threads make filters, each a few records at a time. Only the reader's
 * thread shows them to the visitor, in the file's order, so that the later
 * record of a key wins, in any epoch. While the other threads make the filters
 * of a section, the reader's thread shows those of the section before it, and
 * reads and hashes the section behind it. Then it helps them.
 */
#include "snapshot/records.h"

#include "base/err.h"
#include "base/mem.h"
#include "journal/group.h"
#include "keyspace/key_hash.h"
#include "snapshot/crew.h"

#include <inttypes.h>

enum {
    SOON = 16,    /* how many records ahead to prefetch */
    CLAIMED = 32, /* records that a thread makes before it asks again */
    FORM_BYTES_MIN = CODEC_FIXED_BYTES + CODEC_LAYER_BYTES,
    ITEMS_MAX = RECORDS_BYTES_MAX / RECORD_BYTES_MIN + 1
};

struct record_item {
    uint32_t at; /* in the payload */
    bool made;
    uint64_t hash; /* of the name */
    struct snapshot_record shown;
    struct bloom bloom;
};

/* What a thread needs for making filters: its own memo, counts and error. From
 * `file` it uses only what the header says. */
struct maker {
    struct record_parser parser;
    struct section_file file;
    struct snapshot_error error; /* of the present section */
};

enum snapshot_status
records_parse(struct record_parser *parser, const uint8_t *at, size_t left,
              bool old, uint64_t offset, struct record *ret_record)
{
    const size_t head_bytes = old ? RECORD_HEAD_BYTES_2 : RECORD_HEAD_BYTES;
    struct record record;
    uint64_t form_bytes;
    size_t name_bytes;
    enum bloom_status status;

    if (left < head_bytes + CODEC_FIXED_BYTES + CODEC_LAYER_BYTES) {
        return section_damaged(parser->file, offset,
                               "The section ends within a record");
    }
    record.shown.db = get_u32(at + RECORD_AT_DB);
    record.shown.expires_at_ms = get_u64(at + RECORD_AT_EXPIRES);
    record.shown.copied_at =
        old ? parser->begin->position : get_u64(at + RECORD_AT_COPIED);
    record.shown.epoch = old ? 0 : get_u32(at + RECORD_AT_EPOCH);
    form_bytes = get_u64(at + RECORD_AT_FORM_BYTES);
    name_bytes = get_u32(at + RECORD_AT_NAME_BYTES);
    left -= head_bytes;
    at += head_bytes;
    if (record.shown.db >= parser->file->databases ||
        record.shown.epoch >= SNAPSHOT_EPOCHS ||
        record.shown.expires_at_ms > INT64_MAX || name_bytes > NAME_BYTES_MAX ||
        record.shown.copied_at < parser->begin->position ||
        record.shown.copied_at >= GROUP_POSITION_LIMIT || name_bytes > left) {
        return section_damaged(parser->file, offset,
                               "The head of a record makes no sense");
    }
    record.shown.name = (struct slice){ (const char *)at, name_bytes };
    at += name_bytes;
    left -= name_bytes;
    status = codec_read_head(at, left, &record.head);
    if (status == BLOOM_VERSION) {
        return section_fail(
            parser->file, SNAPSHOT_NEWER, offset,
            "A filter is of a version or kind that this program does "
            "not know.");
    }
    if (status != BLOOM_OK ||
        record.head.total_bytes - CODEC_CHECKSUM_BYTES != form_bytes ||
        codec_check_head_known(&record.head, &parser->memo) != BLOOM_OK) {
        return section_damaged(parser->file, offset,
                               "The head of a filter makes no sense");
    }
    record.shown.incarnation = record.head.incarnation;
    record.lines = at + record.head.head_bytes;
    record.front_bytes = head_bytes + name_bytes + record.head.head_bytes;
    if (parser->copied_last < record.shown.copied_at) {
        parser->copied_last = record.shown.copied_at;
    }
    *ret_record = record;
    return SNAPSHOT_OK;
}

enum snapshot_status
records_make(const struct record_parser *parser, const struct bloom_env *env,
             const struct record *record, uint64_t offset, struct bloom *bloom)
{
    switch (codec_init(bloom, &record->head, env)) {
    case BLOOM_OK:
        return SNAPSHOT_OK;
    case BLOOM_SECRET:
        return section_fail(parser->file, SNAPSHOT_SECRET, offset,
                            "A filter needs the hash-secret-file of "
                            "fingerprint %016" PRIx64 ", which is not here.",
                            record->head.params.fingerprint);
    default:
        return section_no_memory(parser->file, offset, record->head.line_bytes);
    }
}

enum snapshot_status
records_show(const struct records *records, const struct snapshot_record *shown,
             uint64_t offset, struct bloom *bloom)
{
    const struct snapshot_visitor *visitor = records->visitor;
    struct section_file *file = records->parser.file;

    if (!visitor->filter(visitor->ctx, shown, bloom)) {
        return section_fail(file, SNAPSHOT_STOPPED, offset,
                            "Reading was stopped here.");
    }
    file->records++;
    return SNAPSHOT_OK;
}

static bool
is_old(const struct section *section)
{
    return section->type == SECTION_RECORDS_2;
}

static uint64_t
offset_of(const struct section *section, size_t at)
{
    return section->offset + SECTION_HEAD_BYTES + at;
}

/* ---- a section before its filters are made ------------------------------- */

/* Allocates what all sections need. */
static enum snapshot_status
reserve(struct records *records, const struct section *section)
{
    const size_t bytes = ITEMS_MAX * sizeof(struct record_item);
    struct crew *crew = records->crew;

    if (records->makers != NULL) {
        return SNAPSHOT_OK;
    }
    if (crew == NULL) {
        crew = crew_new(records->visitor->threads);
    }
    for (unsigned i = 0; i < (crew != NULL ? 2 : 1); i++) {
        records->batches[i].items = mem_try_alloc(bytes);
    }
    records->crew = crew;
    if (records->batches[0].items != NULL &&
        (crew == NULL || records->batches[1].items != NULL)) {
        records->makers =
            mem_try_zalloc(crew_size(crew) * sizeof(*records->makers));
    }
    if (records->makers == NULL) {
        return section_no_memory(records->parser.file, section->offset, bytes);
    }
    for (unsigned i = 0; i < crew_size(crew); i++) {
        struct maker *maker = &records->makers[i];

        maker->file = *records->parser.file;
        maker->file.error = &maker->error;
        maker->parser.file = &maker->file;
        maker->parser.begin = records->parser.begin;
    }
    return SNAPSHOT_OK;
}

/* Reads a record, whose lines must be there too. */
static enum snapshot_status
parse_whole(struct record_parser *parser, const struct section *section,
            const uint8_t *payload, size_t at, struct record *ret_record)
{
    const size_t left = (size_t)section->bytes - at;
    struct record record = { .front_bytes = 0 };
    enum snapshot_status status =
        records_parse(parser, payload + at, left, is_old(section),
                      offset_of(section, at), &record);

    if (status == SNAPSHOT_OK &&
        record.head.line_bytes > left - record.front_bytes) {
        status = section_damaged(parser->file, offset_of(section, at),
                                 "The section ends within a filter");
    }
    if (status == SNAPSHOT_OK) {
        *ret_record = record;
    }
    return status;
}

/* Returns the length of a record, as its head says; 0 if that cannot be. */
static size_t
length_of(const uint8_t *at, size_t left, bool old)
{
    const size_t head_bytes = old ? RECORD_HEAD_BYTES_2 : RECORD_HEAD_BYTES;
    uint64_t name_bytes;
    uint64_t form_bytes;

    if (left < head_bytes) {
        return 0;
    }
    left -= head_bytes;
    name_bytes = get_u32(at + RECORD_AT_NAME_BYTES);
    form_bytes = get_u64(at + RECORD_AT_FORM_BYTES);
    if (name_bytes > left || form_bytes > left - name_bytes ||
        form_bytes < FORM_BYTES_MIN) {
        return 0;
    }
    return head_bytes + (size_t)(name_bytes + form_bytes);
}

/* Returns the error of the first wrong record of a section that has one. */
static enum snapshot_status
first_wrong(struct records *records, const struct record_batch *batch)
{
    struct section_file *file = records->parser.file;
    enum snapshot_status status = SNAPSHOT_OK;
    struct record record;
    size_t i = 0;

    while (status == SNAPSHOT_OK) {
        CHECK(i <= batch->count);
        status = parse_whole(&records->parser, &batch->section, file->buffer,
                             batch->items[i++].at, &record);
    }
    file->error->record = batch->first + i - 1;
    return status;
}

/* Finds where the records of a section begin. */
static enum snapshot_status
list_items(struct records *records, struct record_batch *batch)
{
    const uint8_t *payload = records->parser.file->buffer;
    const struct section *section = &batch->section;
    size_t bytes = (size_t)section->bytes;
    size_t len;

    batch->count = 0;
    for (size_t at = 0; at < bytes; at += len) {
        CHECK(batch->count < ITEMS_MAX);
        batch->items[batch->count].at = (uint32_t)at;
        batch->items[batch->count].made = false;
        len = length_of(payload + at, bytes - at, is_old(section));
        if (len == 0) {
            return first_wrong(records, batch);
        }
        batch->count++;
    }
    return SNAPSHOT_OK;
}

/* ---- making -------------------------------------------------------------- */

static enum snapshot_status
make_item(const struct records *records, struct maker *maker,
          const struct record_batch *batch, struct record_item *item)
{
    struct record record;
    enum snapshot_status status = parse_whole(&maker->parser, &batch->section,
                                              batch->buffer, item->at, &record);

    if (status == SNAPSHOT_OK) {
        status =
            records_make(&maker->parser, records->env, &record,
                         offset_of(&batch->section, item->at), &item->bloom);
    }
    if (status == SNAPSHOT_OK) {
        codec_fill(&item->bloom, record.lines);
        item->shown = record.shown;
        item->hash = key_hash(record.shown.name);
        item->made = true;
    }
    return status;
}

/* Makes filters until all records are claimed. After a failure other threads
 * still make what they have claimed: it may have the first wrong record. */
static void
make_filters(void *ctx, unsigned number)
{
    const struct records *records = ctx;
    struct record_batch *batch = records->making;
    struct maker *maker = &records->makers[number];
    size_t count = batch->count;

    maker->error.status = SNAPSHOT_OK;
    while (!atomic_load(&batch->failed)) {
        size_t i = atomic_fetch_add(&batch->claimed, CLAIMED);
        size_t end = i + CLAIMED < count ? i + CLAIMED : count;

        if (i >= count) {
            return;
        }
        for (; i < end; i++) {
            if (make_item(records, maker, batch, &batch->items[i]) !=
                SNAPSHOT_OK) {
                maker->error.record = batch->first + i;
                atomic_store(&batch->failed, true);
                return;
            }
        }
    }
}

static void
begin_making(struct records *records, struct record_batch *batch)
{
    atomic_store(&batch->claimed, 0);
    atomic_store(&batch->failed, false);
    records->making = batch;
    crew_begin(records->crew, make_filters, records);
}

/* Frees the filters from one record on. */
static void
drop_batch(const struct records *records, struct record_batch *batch,
           size_t from)
{
    for (size_t i = from; i < batch->count; i++) {
        if (batch->items[i].made) {
            bloom_fini(&batch->items[i].bloom, records->env);
        }
    }
}

/* Helps to make the filters, and waits for the other threads. If one failed,
 * frees all filters of the section. */
static enum snapshot_status
end_making(struct records *records)
{
    const struct maker *first = NULL;

    crew_end(records->crew, make_filters, records);
    for (unsigned i = 0; i < crew_size(records->crew); i++) {
        const struct maker *maker = &records->makers[i];

        if (maker->error.status != SNAPSHOT_OK &&
            (first == NULL || maker->error.offset < first->error.offset)) {
            first = maker;
        }
    }
    if (first != NULL) {
        *records->parser.file->error = first->error;
        drop_batch(records, records->making, 0);
    }
    records->making = NULL;
    return first != NULL ? first->error.status : SNAPSHOT_OK;
}

/* ---- showing ------------------------------------------------------------- */

/* Shows the filters of a section, or frees them once the visitor stops. */
static enum snapshot_status
show_batch(const struct records *records, struct record_batch *batch)
{
    const struct snapshot_visitor *visitor = records->visitor;
    struct record_item *items = batch->items;
    size_t count = batch->count;

    for (size_t i = 0; i < count; i++) {
        enum snapshot_status status;

        if (visitor->soon != NULL && count - i > SOON) {
            visitor->soon(visitor->ctx, items[i + SOON].hash,
                          items[i + SOON].shown.db);
        }
        status = records_show(records, &items[i].shown,
                              offset_of(&batch->section, items[i].at),
                              &items[i].bloom);
        if (status != SNAPSHOT_OK) {
            records->parser.file->error->record = batch->first + i;
            drop_batch(records, batch, i + 1);
            return status;
        }
    }
    return SNAPSHOT_OK;
}

enum snapshot_status
records_settle(struct records *records)
{
    struct record_batch *batch = records->making;
    enum snapshot_status status =
        batch != NULL ? end_making(records) : SNAPSHOT_OK;

    return batch != NULL && status == SNAPSHOT_OK ? show_batch(records, batch)
                                                  : status;
}

/* Gives the batch the payload that is in the file's buffer. */
static void
take_payload(struct section_file *file, struct record_batch *batch)
{
    uint8_t *buffer = batch->buffer;
    size_t bytes = batch->buffer_bytes;

    batch->buffer = file->buffer;
    batch->buffer_bytes = file->buffer_bytes;
    file->buffer = buffer;
    file->buffer_bytes = bytes;
}

enum snapshot_status
records_take(struct records *records, const struct section *section)
{
    struct section_file *file = records->parser.file;
    struct record_batch *before = records->making;
    struct record_batch *batch =
        &records->batches[records->crew != NULL ? records->turn % 2 : 0];
    enum snapshot_status listed = reserve(records, section);
    enum snapshot_status status = SNAPSHOT_OK;

    batch->section = *section;
    batch->first = file->records + (before != NULL ? before->count : 0);
    if (listed == SNAPSHOT_OK) {
        listed = list_items(records, batch);
    }
    if (before != NULL) {
        status = end_making(records);
    }
    if (status == SNAPSHOT_OK && listed == SNAPSHOT_OK) {
        take_payload(file, batch);
        begin_making(records, batch);
        records->turn++;
    }
    if (status == SNAPSHOT_OK && before != NULL) {
        status = show_batch(records, before);
    }
    if (status != SNAPSHOT_OK || listed != SNAPSHOT_OK) {
        return status != SNAPSHOT_OK ? status : listed;
    }
    return records->crew == NULL || records->visitor->passed_over != NULL
               ? records_settle(records)
               : SNAPSHOT_OK;
}

uint64_t
records_copied_last(const struct records *records)
{
    uint64_t last = records->parser.copied_last;

    for (unsigned i = 0;
         records->makers != NULL && i < crew_size(records->crew); i++) {
        uint64_t copied = records->makers[i].parser.copied_last;

        last = last < copied ? copied : last;
    }
    return last;
}

void
records_fini(struct records *records)
{
    struct record_batch *batch = records->making;

    if (batch != NULL && end_making(records) == SNAPSHOT_OK) {
        drop_batch(records, batch, 0);
    }
    crew_free(records->crew);
    for (unsigned i = 0; i < 2; i++) {
        mem_free(records->batches[i].buffer);
        mem_free(records->batches[i].items);
    }
    mem_free(records->makers);
}
