/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a snapshot with only system calls and the caller's memory. Records and
 * voids are gathered in the payload until they fill a section; lines and
 * effects go to the file straight from the caller's memory.
 */
#include "snapshot/snapshot.h"

#include <errno.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/codec.h"
#include "snapshot/runs.h"
#include "snapshot/snapshot_format.h"

/* Starts writing pages to the disk each time this many bytes are written. So
 * the final sync has little left to do, and other writers' syncs do not wait
 * behind it. */
enum { WRITING_BYTES = 16 << 20 };

/* From this size on, a filter that is mostly zero is written as a large one. */
enum { SPARSE_FORM_BYTES = 4 << 10 };

/* Small writes are gathered, so that each costs no system call of its own. */
enum { TAIL_BYTES = 4 << 10 };

/* The large filter whose lines are being written. */
struct large {
    bool open;
    bool deletable;                   /* its pieces follow the lines */
    uint32_t layers, layer;           /* layer: whose lines come next */
    uint64_t at;                      /* bytes of that layer that have come */
    uint64_t reached;                 /* up to here the file has them */
    uint64_t bytes[BLOOM_LAYERS_MAX]; /* of each layer */
};

struct snapshot_writer {
    struct snapshot_progress *progress;
    int fd;
    int error; /* errno of the first failure */
    uint64_t file_key;
    uint64_t sections, bytes, records; /* written so far */
    uint64_t writing; /* bytes up to here go to the disk already */
    uint64_t counted_bytes, counted_records; /* already added to progress */
    size_t used;            /* bytes of payload that records or voids use */
    enum section_type type; /* the kind of section */
    size_t tail_bytes;      /* bytes in tail */
    struct large large;
    uint8_t head[SECTION_HEAD_BYTES];
    uint8_t tail[TAIL_BYTES];
    struct runs runs; /* of the present piece */
    uint8_t payload[RECORDS_BYTES_MAX + SECTION_HASH_BYTES];
};

_Static_assert(PIECE_BYTES <= RECORDS_BYTES_MAX, "scratch for codec_stored()");
_Static_assert((int)SPARSE_BYTES_MAX <= (int)RECORDS_BYTES_MAX, "put_sparse()");

struct snapshot_writer *
snapshot_writer_new(void)
{
    return mem_try_alloc(sizeof(struct snapshot_writer));
}

void
snapshot_writer_free(struct snapshot_writer *writer)
{
    mem_free(writer);
}

/* Writes the tail, and these bytes behind it. */
static void
write_out(struct snapshot_writer *writer, const void *data, size_t len)
{
    const union {
        const void *in;
        void *out;
    } from = { data }; /* writev does not write there */
    struct iovec parts[] = { { writer->tail, writer->tail_bytes },
                             { from.out, len } };
    uint64_t written = writer->bytes + len;

    writer->error = file_writev(writer->fd, parts, 2);
    writer->tail_bytes = 0;
    if (written - writer->writing >= WRITING_BYTES) {
        file_start_writing(writer->fd, writer->writing,
                           written - writer->writing);
        writer->writing = written;
    }
}

/* Writes bytes, through the tail; does nothing after a failure. */
static void
put_data(struct snapshot_writer *writer, const void *data, size_t len)
{
    if (writer->error != 0) {
        return;
    }
    if (len <= TAIL_BYTES - writer->tail_bytes) {
        memcpy(writer->tail + writer->tail_bytes, data, len);
        writer->tail_bytes += len;
    } else {
        write_out(writer, data, len);
    }
    writer->bytes += len;
    snapshot_advance(writer->progress, writer->bytes - writer->counted_bytes,
                     writer->records - writer->counted_records);
    writer->counted_bytes = writer->bytes;
    writer->counted_records = writer->records;
}

/* ---- sections ------------------------------------------------------------ */

/* Writes the head. Returns the seed for the payload's hash. */
static uint64_t
begin_section(struct snapshot_writer *writer, enum section_type type,
              uint64_t payload_bytes)
{
    uint8_t *head = writer->head;

    memcpy(head, SNAPSHOT_SECTION_MAGIC, SECTION_AT_TYPE);
    put_u16(head + SECTION_AT_TYPE, (uint16_t)type);
    put_u16(head + SECTION_AT_ZERO, 0);
    put_u64(head + SECTION_AT_ORDINAL, writer->sections++);
    put_u64(head + SECTION_AT_BYTES, payload_bytes);
    put_data(writer, head, SECTION_HEAD_BYTES);
    return section_seed(head, writer->file_key);
}

/* Writes a section whose whole payload is in writer->payload. */
static void
put_section(struct snapshot_writer *writer, enum section_type type, size_t len)
{
    uint64_t seed = begin_section(writer, type, len);

    put_u64(writer->payload + len,
            XXH3_64bits_withSeed(writer->payload, len, seed));
    put_data(writer, writer->payload, len + SECTION_HASH_BYTES);
}

static void
put_hashed(struct snapshot_writer *writer, XXH3_state_t *hash, const void *data,
           size_t len)
{
    (void)XXH3_64bits_update(hash, data, len);
    put_data(writer, data, len);
}

static void
end_section(struct snapshot_writer *writer, const XXH3_state_t *hash)
{
    uint8_t bytes[SECTION_HASH_BYTES];

    put_u64(bytes, XXH3_64bits_digest(hash));
    put_data(writer, bytes, sizeof(bytes));
}

/* Begins a section whose payload put_hashed writes; end_section ends it. */
static void
begin_hashed(struct snapshot_writer *writer, enum section_type type,
             uint64_t payload_bytes, XXH3_state_t *hash)
{
    uint64_t seed = begin_section(writer, type, payload_bytes);

    XXH3_INITSTATE(hash);
    (void)XXH3_64bits_reset_withSeed(hash, seed);
}

/* ---- records and voids, gathered in the payload -------------------------- */

static void
flush_gathered(struct snapshot_writer *writer)
{
    if (writer->used > 0) {
        put_section(writer, writer->type, writer->used);
        writer->used = 0;
    }
}

/* Returns where the next record or void is to be composed. */
static uint8_t *
gather(struct snapshot_writer *writer, enum section_type type)
{
    if (writer->type != type) {
        flush_gathered(writer);
        writer->type = type;
    }
    return writer->payload + writer->used;
}

static void
gathered(struct snapshot_writer *writer, const uint8_t *end)
{
    writer->used = (size_t)(end - writer->payload);
    if (writer->used >= SNAPSHOT_SECTION_BYTES) {
        flush_gathered(writer);
    }
}

/* Fails the save if the epoch is too high, after too many flushes. */
static void
make_record_head(struct snapshot_writer *writer, uint8_t *to,
                 const struct snapshot_record *record, uint64_t form_bytes)
{
    if (record->epoch >= SNAPSHOT_EPOCHS && writer->error == 0) {
        writer->error = EOVERFLOW;
    }
    put_u32(to + RECORD_AT_DB, record->db);
    put_u32(to + RECORD_AT_NAME_BYTES, (uint32_t)record->name.len);
    put_u64(to + RECORD_AT_EXPIRES, record->expires_at_ms);
    put_u64(to + RECORD_AT_FORM_BYTES, form_bytes);
    put_u64(to + RECORD_AT_COPIED, record->copied_at);
    put_u32(to + RECORD_AT_EPOCH, record->epoch);
}

static uint8_t *
add_lines(uint8_t *to, const void *lines, size_t bytes)
{
    const void *stored = codec_stored(lines, bytes, to);

    if (stored != to) {
        memcpy(to, stored, bytes);
    }
    return to + bytes;
}

static uint8_t *
begin_small(struct snapshot_writer *writer,
            const struct snapshot_record *record, uint64_t form_bytes)
{
    uint8_t *to = gather(writer, SECTION_RECORDS);

    make_record_head(writer, to, record, form_bytes);
    to += RECORD_HEAD_BYTES;
    if (record->name.len > 0) {
        memcpy(to, record->name.data, record->name.len);
    }
    return to + record->name.len;
}

/* ---- large filters ------------------------------------------------------- */

static void
make_chunk_head(uint8_t *to, uint32_t layer, uint32_t runs, uint64_t offset)
{
    put_u32(to + CHUNK_AT_LAYER, layer);
    put_u32(to + CHUNK_AT_RUNS, runs);
    put_u64(to + CHUNK_AT_OFFSET, offset);
}

/* Writes one chunk without runs, straight from the filter's memory. */
static void
put_chunk(struct snapshot_writer *writer, uint32_t layer, uint64_t offset,
          const uint8_t *lines, size_t len)
{
    uint8_t head[CHUNK_HEAD_BYTES];
    XXH3_state_t hash;

    begin_hashed(writer, SECTION_LINES, CHUNK_HEAD_BYTES + len, &hash);
    make_chunk_head(head, layer, 0, offset);
    put_hashed(writer, &hash, head, sizeof(head));
    put_hashed(writer, &hash, codec_stored(lines, len, writer->payload), len);
    end_section(writer, &hash);
}

/* Writes a chunk of several runs, which is composed in the payload. */
static void
put_sparse(struct snapshot_writer *writer, uint32_t layer, uint64_t offset,
           const uint8_t *lines, const struct runs *runs)
{
    const uint32_t first = runs->run[0].from;
    uint8_t *table = writer->payload + CHUNK_HEAD_BYTES;
    uint8_t *to = table + (size_t)runs->count * RUN_BYTES;

    make_chunk_head(writer->payload, layer, runs->count,
                    offset + (uint64_t)first * BLOOM_LINE_BYTES);
    for (uint32_t i = 0; i < runs->count; i++) {
        uint32_t from = runs->run[i].from;
        uint32_t end = runs->run[i].to;
        uint32_t next = i + 1 < runs->count ? runs->run[i + 1].from : end;

        put_u32(table + RUN_AT_LINES, end - from);
        put_u32(table + RUN_AT_ZERO_LINES, next - end);
        table += RUN_BYTES;
        to = add_lines(to, lines + (size_t)from * BLOOM_LINE_BYTES,
                       (size_t)(end - from) * BLOOM_LINE_BYTES);
    }
    put_section(writer, SECTION_LINES, (size_t)(to - writer->payload));
}

/* Writes the lines of a piece that are not zero. Leaves out the zero lines
 * between them only if they are more than an eighth of the others, since that
 * costs a copy. Returns where in the layer the written lines end, `reached` if
 * there are none. */
static uint64_t
put_piece(struct snapshot_writer *writer, uint32_t layer, uint64_t offset,
          const uint8_t *lines, size_t len, uint64_t reached)
{
    struct runs *runs = &writer->runs;
    uint32_t count = (uint32_t)(len / BLOOM_LINE_BYTES);
    uint32_t from;
    uint32_t to;

    runs_find(lines, count, runs);
    if (runs->count == 0) {
        return reached;
    }
    from = runs->run[0].from;
    to = runs->run[runs->count - 1].to;
    if (to - from - runs->lines > runs->lines / 8) {
        put_sparse(writer, layer, offset, lines, runs);
    } else {
        put_chunk(writer, layer, offset + (uint64_t)from * BLOOM_LINE_BYTES,
                  lines + (size_t)from * BLOOM_LINE_BYTES,
                  (size_t)(to - from) * BLOOM_LINE_BYTES);
    }
    return offset + (uint64_t)to * BLOOM_LINE_BYTES;
}

static void
put_large_head(struct snapshot_writer *writer,
               const struct snapshot_record *record, struct slice head,
               uint64_t form_bytes)
{
    uint8_t record_head[RECORD_HEAD_BYTES];
    XXH3_state_t hash;

    flush_gathered(writer);
    make_record_head(writer, record_head, record, form_bytes);
    begin_hashed(writer, SECTION_LARGE,
                 RECORD_HEAD_BYTES + record->name.len + head.len, &hash);
    put_hashed(writer, &hash, record_head, sizeof(record_head));
    put_hashed(writer, &hash, record->name.data, record->name.len);
    put_hashed(writer, &hash, head.data, head.len);
    end_section(writer, &hash);
}

static void
begin_large(struct snapshot_writer *writer,
            const struct snapshot_record *record, struct slice head)
{
    struct large *large = &writer->large;
    struct codec_head read;

    CHECK(!large->open &&
          codec_read_head(head.data, head.len, &read) == BLOOM_OK &&
          head.len == read.head_bytes);
    writer->records++;
    large->open = true;
    large->deletable = read.params.kind == BLOOM_DELETABLE;
    large->layers = read.layers;
    large->layer = 0;
    large->at = large->reached = 0;
    for (uint32_t i = 0; i < read.layers; i++) {
        large->bytes[i] = codec_layer_bytes(&read, i);
    }
    put_large_head(writer, record, head,
                   read.total_bytes - CODEC_CHECKSUM_BYTES);
}

static void
end_layer(struct snapshot_writer *writer)
{
    struct large *large = &writer->large;

    if (large->reached < large->at) {
        put_chunk(writer, large->layer, large->at, writer->payload, 0);
    }
    large->layer++;
    large->at = large->reached = 0;
    large->open = large->layer < large->layers || large->deletable;
}

static void
put_lines(struct snapshot_writer *writer, const uint8_t *lines, size_t bytes)
{
    struct large *large = &writer->large;

    CHECK(large->layer < large->layers &&
          bytes <= large->bytes[large->layer] - large->at &&
          bytes % BLOOM_LINE_BYTES == 0);
    while (bytes > 0 && writer->error == 0) {
        size_t step = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;

        large->reached = put_piece(writer, large->layer, large->at, lines, step,
                                   large->reached);
        large->at += step;
        lines += step;
        bytes -= step;
    }
    if (writer->error != 0) {
        large->open = false;
    } else if (large->at == large->bytes[large->layer]) {
        end_layer(writer);
    }
}

static void
put_pieces(struct snapshot_writer *writer, size_t most,
           const uint64_t *positions, size_t count)
{
    uint8_t head[PIECES_HEAD_BYTES];
    XXH3_state_t hash;

    CHECK(writer->large.open && writer->large.layer == writer->large.layers);
    put_u64(head + PIECES_AT_MOST, most);
    begin_hashed(writer, SECTION_PIECES,
                 PIECES_HEAD_BYTES + (uint64_t)count * PIECES_POSITION_BYTES,
                 &hash);
    put_hashed(writer, &hash, head, sizeof(head));
    for (size_t i = 0; i < count; i++) {
        put_u64(head, positions[i]);
        put_hashed(writer, &hash, head, PIECES_POSITION_BYTES);
    }
    end_section(writer, &hash);
    writer->large.open = false;
}

int
snapshot_put_pieces(struct snapshot_writer *writer, size_t most,
                    const uint64_t *positions, size_t count)
{
    if (writer->error == 0) {
        put_pieces(writer, most, positions, count);
    }
    return writer->error;
}

int
snapshot_put_head(struct snapshot_writer *writer,
                  const struct snapshot_record *record, struct slice head)
{
    if (writer->error == 0) {
        begin_large(writer, record, head);
    }
    return writer->error;
}

int
snapshot_put_lines(struct snapshot_writer *writer, const void *lines,
                   size_t bytes)
{
    if (writer->error == 0) {
        put_lines(writer, lines, bytes);
    }
    return writer->error;
}

/* ---- whole filters ------------------------------------------------------- */

/* Ends a large filter whose lines were all copied at the record's position. */
static void
end_whole(struct snapshot_writer *writer)
{
    if (writer->large.open && writer->error == 0) {
        put_pieces(writer, 0, NULL, 0);
    }
}

/* Writes a small filter that is mostly zero as a large one. */
static void
put_sparse_form(struct snapshot_writer *writer,
                const struct snapshot_record *record, struct slice form,
                size_t head_bytes)
{
    const uint8_t *lines = (const uint8_t *)form.data + head_bytes;

    begin_large(writer, record, (struct slice){ form.data, head_bytes });
    while (writer->large.open && writer->large.layer < writer->large.layers) {
        size_t bytes = (size_t)writer->large.bytes[writer->large.layer];

        put_lines(writer, lines, bytes);
        lines += bytes;
    }
    end_whole(writer);
}

int
snapshot_put(struct snapshot_writer *writer,
             const struct snapshot_record *record, struct slice form)
{
    struct codec_head head;
    const uint8_t *lines;
    uint8_t *to;

    CHECK(!writer->large.open &&
          RECORD_HEAD_BYTES + record->name.len + form.len <
              SNAPSHOT_DIRECT_BYTES &&
          codec_read_head(form.data, form.len, &head) == BLOOM_OK &&
          form.len == head.head_bytes + head.line_bytes);
    lines = (const uint8_t *)form.data + head.head_bytes;
    if (form.len >= SPARSE_FORM_BYTES &&
        runs_count_zero(lines, (size_t)head.line_bytes) >
            head.line_bytes / BLOOM_LINE_BYTES / 2) {
        put_sparse_form(writer, record, form, head.head_bytes);
        return writer->error;
    }
    writer->records++;
    to = begin_small(writer, record, form.len);
    memcpy(to, form.data, head.head_bytes);
    to = add_lines(to + head.head_bytes, lines, (size_t)head.line_bytes);
    gathered(writer, to);
    return writer->error;
}

/* Returns whether fewer than half of the lines have a bit. */
static bool
is_sparse(const struct bloom *bloom)
{
    const uint8_t *lines;
    uint64_t all = 0;
    uint64_t zero = 0;
    size_t bytes;

    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        zero += runs_count_zero(lines, bytes);
        all += bytes / BLOOM_LINE_BYTES;
    }
    return zero > all / 2;
}

static void
add_large(struct snapshot_writer *writer, const struct snapshot_record *record,
          const struct bloom *bloom)
{
    uint8_t form[CODEC_HEAD_BYTES_MAX];
    size_t form_bytes = codec_put_head(bloom, record->incarnation, form);
    const void *lines;
    size_t bytes;

    begin_large(writer, record,
                (struct slice){ (const char *)form, form_bytes });
    for (uint32_t i = 0; writer->large.open &&
                         (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        put_lines(writer, lines, bytes);
    }
    end_whole(writer);
}

/* Writes the same as snapshot_put(), or as snapshot_put_head() and its lines,
 * without another copy. Filters with long names are large ones, since those
 * need no buffer. */
int
snapshot_add(struct snapshot_writer *writer,
             const struct snapshot_record *record, const struct bloom *bloom)
{
    uint64_t form_bytes = codec_dump_bytes(bloom) - CODEC_CHECKSUM_BYTES;
    const void *lines;
    size_t bytes;
    uint8_t *to;

    CHECK(!writer->large.open);
    if (RECORD_HEAD_BYTES + record->name.len + form_bytes >=
            SNAPSHOT_DIRECT_BYTES ||
        (form_bytes >= SPARSE_FORM_BYTES && is_sparse(bloom))) {
        add_large(writer, record, bloom);
        return writer->error;
    }
    writer->records++;
    to = begin_small(writer, record, form_bytes);
    to += codec_put_head(bloom, record->incarnation, to);
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        to = add_lines(to, lines, bytes);
    }
    gathered(writer, to);
    return writer->error;
}

/* ---- voids and effects --------------------------------------------------- */

int
snapshot_void(struct snapshot_writer *writer,
              const struct snapshot_record *record)
{
    const struct slice name = record->name;
    uint8_t head[VOID_HEAD_BYTES];
    XXH3_state_t hash;
    uint8_t *to;

    writer->large.open = false;
    put_u32(head + VOID_AT_DB, record->db);
    put_u32(head + VOID_AT_EPOCH, record->epoch);
    put_u32(head + VOID_AT_NAME_BYTES, (uint32_t)name.len);
    if (name.len >= SNAPSHOT_DIRECT_BYTES - VOID_HEAD_BYTES) {
        flush_gathered(writer);
        begin_hashed(writer, SECTION_VOIDS, VOID_HEAD_BYTES + name.len, &hash);
        put_hashed(writer, &hash, head, sizeof(head));
        put_hashed(writer, &hash, name.data, name.len);
        end_section(writer, &hash);
        return writer->error;
    }
    to = gather(writer, SECTION_VOIDS);
    memcpy(to, head, sizeof(head));
    if (name.len > 0) {
        memcpy(to + sizeof(head), name.data, name.len);
    }
    gathered(writer, to + sizeof(head) + name.len);
    return writer->error;
}

int
snapshot_put_effects(struct snapshot_writer *writer,
                     const struct snapshot_effects *effects)
{
    const struct slice text = effects->commands;
    uint8_t head[EFFECTS_HEAD_BYTES];
    XXH3_state_t hash;

    CHECK(!writer->large.open && text.len > 0);
    flush_gathered(writer);
    put_u64(head + EFFECTS_AT_POSITION, effects->position);
    put_u64(head + EFFECTS_AT_SEQUENCE, effects->sequence);
    put_u64(head + EFFECTS_AT_BYTES, text.len);
    for (size_t at = 0; at < text.len && writer->error == 0;) {
        size_t left = text.len - at;
        size_t step =
            left < SNAPSHOT_SECTION_BYTES ? left : SNAPSHOT_SECTION_BYTES;

        put_u64(head + EFFECTS_AT_OFFSET, at);
        begin_hashed(writer, SECTION_EFFECTS, EFFECTS_HEAD_BYTES + step, &hash);
        put_hashed(writer, &hash, head, sizeof(head));
        put_hashed(writer, &hash, text.data + at, step);
        end_section(writer, &hash);
        at += step;
    }
    return writer->error;
}

/* ---- all of it ----------------------------------------------------------- */

static void
put_header(struct snapshot_writer *writer, uint32_t databases,
           const struct snapshot_stamp *stamp)
{
    uint8_t header[HEADER_BYTES] = { 0 };

    memcpy(header, SNAPSHOT_MAGIC, HEADER_AT_VERSION);
    put_u16(header + HEADER_AT_VERSION, SNAPSHOT_VERSION);
    put_u32(header + HEADER_AT_DATABASES, databases);
    memcpy(header + HEADER_AT_HISTORY, stamp->history,
           strnlen(stamp->history, SNAPSHOT_HISTORY_BYTES));
    put_u64(header + HEADER_AT_POSITION, stamp->position);
    put_u64(header + HEADER_AT_SEQUENCE, stamp->sequence);
    put_u64(header + HEADER_AT_CREATED, stamp->created_ms);
    put_u64(header + HEADER_AT_KEYS, stamp->keys);
    put_u64(header + HEADER_AT_FILE_KEY, writer->file_key);
    put_u64(header + HEADER_AT_HASH, XXH3_64bits(header, HEADER_AT_HASH));
    put_data(writer, header, sizeof(header));
}

static void
put_end(struct snapshot_writer *writer, const struct snapshot_stamp *end)
{
    uint8_t *to = writer->payload;

    memset(to, 0, END_BYTES);
    put_u64(to + END_AT_RECORDS, writer->records);
    put_u64(to + END_AT_SECTIONS, writer->sections);
    put_u64(to + END_AT_BYTES, writer->bytes);
    put_u64(to + END_AT_FILE_KEY, writer->file_key);
    put_u64(to + END_AT_POSITION, end->position);
    put_u64(to + END_AT_SEQUENCE, end->sequence);
    put_u64(to + END_AT_KEYS, end->keys);
    memcpy(to + END_AT_HISTORY, end->history,
           strnlen(end->history, SNAPSHOT_HISTORY_BYTES));
    put_section(writer, SECTION_END, END_BYTES);
}

int
snapshot_begin(struct snapshot_writer *writer,
               const struct snapshot_stamp *begin, uint32_t databases, int fd,
               struct snapshot_progress *progress)
{
    memset(writer, 0, offsetof(struct snapshot_writer, head));
    writer->fd = fd;
    writer->progress = progress;
    writer->type = SECTION_RECORDS;
    random_bytes(&writer->file_key, sizeof(writer->file_key));
    put_header(writer, databases, begin);
    return writer->error;
}

int
snapshot_end(struct snapshot_writer *writer, const struct snapshot_stamp *end)
{
    CHECK(!writer->large.open);
    flush_gathered(writer);
    put_end(writer, end);
    if (writer->error == 0) {
        write_out(writer, NULL, 0);
    }
    return writer->error;
}
