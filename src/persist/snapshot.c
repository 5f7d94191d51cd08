/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a snapshot. It may run in a child forked from a process with many
 * threads: system calls and the caller's memory only. All figures are
 * little-endian.
 *
 *   header, 104 bytes; in every later version magic, version and hash keep
 *   their places, so that a newer file can be distinguished from a damaged
 *   one
 *      0   8  magic "BLMYSNAP"
 *      8   2  version of this format: 2
 *     10   2  flags: 0
 *     12   4  databases, 1..65535
 *     16  40  id of the history that the position is of, zeros behind it
 *     56   8  position in the log
 *     64   8  sequence of the last journal group that is in it
 *     72   8  when it was written, unix ms
 *     80   8  keys
 *     88   8  file key: random, so that a section of another file does not fit
 *     96   8  XXH3-64 of bytes 0..95
 *
 *   then sections up to the end of the file
 *      0   4  magic "SECT"
 *      4   2  type
 *      6   2  0
 *      8   8  ordinal: 0, 1, 2 ...
 *     16   8  bytes of the payload
 *     24   .  payload
 *      .   8  XXH3-64 of the payload, its seed being XXH3-64 of the 24 bytes
 *             above with the file key as seed: what is moved, left out or
 *             exchanged never fits
 *
 *   type 1: small filters, whole records one after the other, at least one
 *      0   4  database
 *      4   4  bytes of the name
 *      8   8  when it expires, unix ms; 0: never
 *     16   8  bytes of the stored form
 *     24   .  name
 *      .   .  stored form (core/codec.c) without its last 8 bytes, the
 *             checksum: the section has one
 *
 *   type 2: a large filter. One record of the same form, that ends with the
 *   head of the stored form; "bytes of the stored form" counts the lines too.
 *   They follow at once in sections of
 *   type 3: a chunk of the lines of the layers, in order. Lines between two
 *   chunks of a layer, and before its first, are zero; the last chunk reaches
 *   the layer's end
 *      0   4  layer
 *      4   4  n: number of runs, 0 if none is drawn
 *      8   8  where in the layer's bytes these lines begin
 *     16  8n  runs, in a chunk that spans 256 KiB at most:
 *               0  4  lines that are here, at least one
 *               4  4  zero lines behind them that are not; 0 of the last run
 *      .   .  whole lines, of this layer only, 16 MiB at most; with no run
 *             there may be none, at the end of what is zero
 *
 *   type 4: the end, and the last bytes of the file
 *      0   8  keys
 *      8   8  sections before this one
 *     16   8  bytes before this one
 *     24   8  file key, once more: without it nothing could be salvaged
 *
 * Whether a filter is small or large is the writer's choice, and so is which
 * zero lines it leaves out.
 *
 * Version 1 is the same without runs and without anything left out.
 */
#include "persist/snapshot.h"

#include <errno.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "keyspace/scan.h"
#include "persist/snapshot_format.h"

/* Starts writing pages to the disk each time so many bytes were written. So the
 * final sync has little left to do, and other writers' syncs do not wait behind
 * it. */
enum { WRITING_BYTES = 16 << 20 };

/* Millions of small filters are spread over the memory, each in three places.
 * So an entry waits until two batches of later ones were seen, while its
 * filter, then its lines, are fetched: PENDING is two batches. */
enum { PENDING = 32, FETCHED_LINES = 4 };

/* From this size on, a filter that is mostly zero is written as a large one. */
enum { SPARSE_FORM_BYTES = 4 << 10 };

/* Small writes are gathered, so that each costs no system call of its own. */
enum { TAIL_BYTES = 4 << 10 };

struct pending {
    struct snapshot_record record;
    const struct bloom *bloom;
};

/* The lines of a piece that are not all zero, as runs. */
struct runs {
    uint32_t count, lines; /* lines: of all runs */
    struct {
        uint32_t from, to;
    } run[PIECE_LINES / 2];
};

struct snapshot_writer {
    struct snapshot_progress *progress;
    int fd;
    int error; /* errno of the first failure */
    uint64_t file_key;
    uint64_t sections, bytes, keys; /* written so far; keys: visited */
    uint64_t keys_announced;        /* by the header */
    uint64_t writing; /* bytes up to here go to the disk already */
    uint64_t counted_bytes, counted_keys; /* already added to progress */
    size_t used;       /* bytes of payload that records use */
    size_t tail_bytes; /* bytes in tail */
    uint64_t seen;     /* entries; the last PENDING wait */
    struct pending pending[PENDING];
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
put(struct snapshot_writer *writer, const void *data, size_t len)
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
                     writer->keys - writer->counted_keys);
    writer->counted_bytes = writer->bytes;
    writer->counted_keys = writer->keys;
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
    put(writer, head, SECTION_HEAD_BYTES);
    return section_seed(head, writer->file_key);
}

/* Writes a section whose whole payload is in writer->payload. */
static void
put_section(struct snapshot_writer *writer, enum section_type type, size_t len)
{
    uint64_t seed = begin_section(writer, type, len);

    put_u64(writer->payload + len,
            XXH3_64bits_withSeed(writer->payload, len, seed));
    put(writer, writer->payload, len + SECTION_HASH_BYTES);
}

static void
put_hashed(struct snapshot_writer *writer, XXH3_state_t *hash, const void *data,
           size_t len)
{
    (void)XXH3_64bits_update(hash, data, len);
    put(writer, data, len);
}

static void
end_section(struct snapshot_writer *writer, const XXH3_state_t *hash)
{
    uint8_t bytes[SECTION_HASH_BYTES];

    put_u64(bytes, XXH3_64bits_digest(hash));
    put(writer, bytes, sizeof(bytes));
}

/* ---- filters ------------------------------------------------------------- */

static void
flush_records(struct snapshot_writer *writer)
{
    if (writer->used > 0) {
        put_section(writer, SECTION_RECORDS, writer->used);
        writer->used = 0;
    }
}

static void
make_record_head(uint8_t *to, const struct snapshot_record *record,
                 uint64_t form_bytes)
{
    put_u32(to + RECORD_AT_DB, record->db);
    put_u32(to + RECORD_AT_NAME_BYTES, (uint32_t)record->name.len);
    put_u64(to + RECORD_AT_EXPIRES, record->expires_at_ms);
    put_u64(to + RECORD_AT_FORM_BYTES, form_bytes);
}

/* Adds a small filter; its record head is at the end of the payload already. */
static void
add_small(struct snapshot_writer *writer, const struct snapshot_record *record,
          const struct bloom *bloom)
{
    uint8_t *to = writer->payload + writer->used + RECORD_HEAD_BYTES;
    const void *lines;
    size_t bytes;

    memcpy(to, record->name.data, record->name.len);
    to += record->name.len;
    to += codec_put_head(bloom, record->incarnation, to);
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        const void *stored = codec_stored(lines, bytes, to);

        if (stored != to) {
            memcpy(to, stored, bytes);
        }
        to += bytes;
    }
    writer->used = (size_t)(to - writer->payload);
    if (writer->used >= SNAPSHOT_SECTION_BYTES) {
        flush_records(writer);
    }
}

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
    uint64_t seed =
        begin_section(writer, SECTION_LINES, CHUNK_HEAD_BYTES + len);
    uint8_t head[CHUNK_HEAD_BYTES];
    XXH3_state_t hash;

    XXH3_INITSTATE(&hash);
    (void)XXH3_64bits_reset_withSeed(&hash, seed);
    make_chunk_head(head, layer, 0, offset);
    put_hashed(writer, &hash, head, sizeof(head));
    put_hashed(writer, &hash, codec_stored(lines, len, writer->payload), len);
    end_section(writer, &hash);
}

static bool
is_zero_line(const uint8_t *line)
{
    uint64_t words[BLOOM_LINE_BYTES / sizeof(uint64_t)];

    memcpy(words, line, sizeof(words));
    return words[0] == 0 && (words[1] | words[2] | words[3] | words[4] |
                             words[5] | words[6] | words[7]) == 0;
}

/* Returns the first line from `at` on that is not zero (or that is, without
 * `zero`). */
static uint32_t
skip(const uint8_t *lines, uint32_t at, uint32_t count, bool zero)
{
    while (at < count &&
           is_zero_line(lines + (size_t)at * BLOOM_LINE_BYTES) == zero) {
        at++;
    }
    return at;
}

static void
find_runs(const uint8_t *lines, uint32_t count, struct runs *ret_runs)
{
    uint32_t at = skip(lines, 0, count, true);

    ret_runs->count = ret_runs->lines = 0;
    while (at < count) {
        uint32_t end = skip(lines, at, count, false);

        ret_runs->run[ret_runs->count].from = at;
        ret_runs->run[ret_runs->count].to = end;
        ret_runs->count++;
        ret_runs->lines += end - at;
        at = skip(lines, end, count, true);
    }
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
        size_t bytes = (size_t)(end - from) * BLOOM_LINE_BYTES;
        const void *stored =
            codec_stored(lines + (size_t)from * BLOOM_LINE_BYTES, bytes, to);

        put_u32(table + RUN_AT_LINES, end - from);
        put_u32(table + RUN_AT_ZERO_LINES, next - end);
        table += RUN_BYTES;
        if (stored != to) {
            memcpy(to, stored, bytes);
        }
        to += bytes;
    }
    put_section(writer, SECTION_LINES, (size_t)(to - writer->payload));
}

/* Writes the lines of a piece that are not zero. To copy sparse lines must save
 * at least an eighth of them. Returns where in the layer the written lines end,
 * *reached if there are none. */
static uint64_t
put_piece(struct snapshot_writer *writer, uint32_t layer, uint64_t offset,
          const uint8_t *lines, size_t len, uint64_t reached)
{
    struct runs *runs = &writer->runs;
    uint32_t count = (uint32_t)(len / BLOOM_LINE_BYTES);
    uint32_t from;
    uint32_t to;

    find_runs(lines, count, runs);
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
put_layer(struct snapshot_writer *writer, uint32_t layer, const uint8_t *lines,
          size_t bytes)
{
    uint64_t reached = 0;

    for (size_t at = 0; at < bytes && writer->error == 0;) {
        size_t left = bytes - at;
        size_t step = left < PIECE_BYTES ? left : PIECE_BYTES;

        reached = put_piece(writer, layer, at, lines + at, step, reached);
        at += step;
    }
    if (reached < bytes) {
        put_chunk(writer, layer, bytes, lines + bytes, 0);
    }
}

static void
put_large(struct snapshot_writer *writer, const uint8_t *record_head,
          const struct snapshot_record *record, const struct bloom *bloom)
{
    uint8_t *form = writer->payload;
    size_t form_bytes = codec_put_head(bloom, record->incarnation, form);
    uint64_t seed =
        begin_section(writer, SECTION_LARGE,
                      RECORD_HEAD_BYTES + record->name.len + form_bytes);
    const uint8_t *lines;
    XXH3_state_t hash;
    size_t bytes;

    XXH3_INITSTATE(&hash);
    (void)XXH3_64bits_reset_withSeed(&hash, seed);
    put_hashed(writer, &hash, record_head, RECORD_HEAD_BYTES);
    put_hashed(writer, &hash, record->name.data, record->name.len);
    put_hashed(writer, &hash, form, form_bytes);
    end_section(writer, &hash);
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        put_layer(writer, i, lines, bytes);
    }
}

/* Whether fewer than half of the lines have a bit. */
static bool
is_sparse(const struct bloom *bloom)
{
    const uint8_t *lines;
    uint64_t all = 0;
    uint64_t zero = 0;
    size_t bytes;

    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        for (size_t at = 0; at < bytes; at += BLOOM_LINE_BYTES) {
            zero += is_zero_line(lines + at);
        }
        all += bytes / BLOOM_LINE_BYTES;
    }
    return zero > all / 2;
}

/* Filters with long names are written as large ones, since those need no
 * buffer. */
int
snapshot_add(struct snapshot_writer *writer,
             const struct snapshot_record *record, const struct bloom *bloom)
{
    uint64_t form_bytes = codec_dump_bytes(bloom) - CODEC_CHECKSUM_BYTES;
    uint8_t head[RECORD_HEAD_BYTES];

    writer->keys++;
    make_record_head(head, record, form_bytes);
    if (RECORD_HEAD_BYTES + record->name.len + form_bytes <
            SNAPSHOT_DIRECT_BYTES &&
        (form_bytes < SPARSE_FORM_BYTES || !is_sparse(bloom))) {
        memcpy(writer->payload + writer->used, head, sizeof(head));
        add_small(writer, record, bloom);
    } else {
        flush_records(writer);
        put_large(writer, head, record, bloom);
    }
    return writer->error;
}

/* ---- the walk ------------------------------------------------------------ */

static void
fetch(const void *at, size_t lines)
{
    for (size_t i = 0; i < lines; i++) {
        __builtin_prefetch((const char *)at + i * BLOOM_LINE_BYTES);
    }
}

static void
fetch_lines(const struct bloom *bloom)
{
    size_t bytes;
    const void *lines = bloom_layer_lines(bloom, 0, &bytes);
    size_t count = bytes / BLOOM_LINE_BYTES;

    fetch(lines, count < FETCHED_LINES ? count : FETCHED_LINES);
}

static bool
on_entry(void *ctx, uint32_t db, const struct entry *entry,
         uint64_t expires_at_ms)
{
    struct snapshot_writer *writer = ctx;
    struct pending *slot = &writer->pending[writer->seen % PENDING];

    if (writer->seen >= PENDING &&
        snapshot_add(writer, &slot->record, slot->bloom) != 0) {
        return false;
    }
    *slot = (struct pending){
        .record = { .name = entry_name(entry),
                    .db = db,
                    .expires_at_ms = expires_at_ms,
                    .incarnation = entry->incarnation },
        .bloom = &entry->bloom,
    };
    fetch(&entry->bloom, 2);
    writer->seen++;
    if (writer->seen >= PENDING / 2) {
        slot = &writer->pending[(writer->seen - PENDING / 2) % PENDING];
        fetch_lines(slot->bloom);
    }
    return true;
}

static int
add_pending(struct snapshot_writer *writer)
{
    uint64_t i = writer->seen > PENDING ? writer->seen - PENDING : 0;
    int error = writer->error;

    for (; i < writer->seen && error == 0; i++) {
        const struct pending *slot = &writer->pending[i % PENDING];

        error = snapshot_add(writer, &slot->record, slot->bloom);
    }
    return error;
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
    put(writer, header, sizeof(header));
}

static void
put_end(struct snapshot_writer *writer)
{
    put_u64(writer->payload + END_AT_KEYS, writer->keys);
    put_u64(writer->payload + END_AT_SECTIONS, writer->sections);
    put_u64(writer->payload + END_AT_BYTES, writer->bytes);
    put_u64(writer->payload + END_AT_FILE_KEY, writer->file_key);
    put_section(writer, SECTION_END, END_BYTES);
}

int
snapshot_begin(struct snapshot_writer *writer,
               const struct snapshot_stamp *stamp, uint32_t databases, int fd,
               struct snapshot_progress *progress)
{
    memset(writer, 0, offsetof(struct snapshot_writer, head));
    writer->fd = fd;
    writer->progress = progress;
    writer->keys_announced = stamp->keys;
    random_bytes(&writer->file_key, sizeof(writer->file_key));
    put_header(writer, databases, stamp);
    return writer->error;
}

int
snapshot_end(struct snapshot_writer *writer)
{
    flush_records(writer);
    if (writer->error == 0 && writer->keys != writer->keys_announced) {
        writer->error = EBADMSG; /* our bug; such a file would never load */
    }
    put_end(writer);
    if (writer->error == 0) {
        write_out(writer, NULL, 0);
    }
    return writer->error;
}

int
snapshot_write(struct snapshot_writer *writer, const struct keyspace *ks,
               const struct snapshot_stamp *stamp, int fd,
               struct snapshot_progress *progress)
{
    struct snapshot_stamp counted = *stamp;

    counted.keys = keyspace_count_keys(ks);
    if (snapshot_begin(writer, &counted, keyspace_databases(ks), fd,
                       progress) == 0 &&
        keyspace_each(ks, on_entry, writer)) {
        (void)add_pending(writer); /* snapshot_end() returns the error */
    }
    return snapshot_end(writer);
}
