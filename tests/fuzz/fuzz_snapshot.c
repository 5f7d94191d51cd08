/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as a snapshot, each input in two ways: as it is, and with the
 * hashes of its header and of all its sections made right, so that the fields
 * are what is tested. Read strictly, salvaged, and as a stream. What is refused
 * leaves nothing behind, nobody asks for memory that the file does not justify,
 * what is accepted strictly is salvaged without a loss, and a stream comes to
 * the same end as a file, but where it promised filters that never came. Keys,
 * voids and effects that are shown have the figures that the format allows.
 */
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "core/bloom.h"
#include "core/filter.h"
#include "foreign.h"
#include "journal/group.h"
#include "snapshot/snapshot_format.h"
#include "snapshot/snapshot_read.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILTERS_MAX = 8, ITEMS = 50, LEFT_OUT_BYTES = 1 << 20 };

struct heap {
    size_t out;
    size_t limit;
    bool refused;
};

/* What a file of this size gets: the layers' structs are larger than their
 * stored form, and zero lines may be left out. */
static size_t
justified(size_t size)
{
    return 4 * size + LEFT_OUT_BYTES;
}

static void *
heap_alloc(void *ctx, size_t bytes)
{
    struct heap *heap = ctx;

    if (bytes > heap->limit - heap->out) {
        heap->refused = true;
        return NULL;
    }
    heap->out += bytes;
    return malloc(bytes);
}

static void *
heap_alloc_lines(void *ctx, size_t bytes)
{
    void *counted = heap_alloc(ctx, bytes); /* freed by its own name */
    void *lines;

    if (counted == NULL) {
        return NULL;
    }
    free(counted);
    lines = aligned_alloc(BLOOM_LINE_BYTES, bytes);
    CHECK(lines != NULL);
    return memset(lines, 0, bytes);
}

static void
heap_free(void *ctx, void *ptr, size_t bytes)
{
    struct heap *heap = ctx;

    CHECK(heap->out >= bytes);
    heap->out -= bytes;
    free(ptr);
}

/* ---- reading ------------------------------------------------------------- */

struct visit {
    struct bloom_env env;
    uint64_t keys, hash, stretches;
    uint64_t at;                 /* where the last stretch ended */
    uint64_t position, sequence; /* of the last effects */
};

static void
note(struct visit *visit, struct slice text)
{
    visit->hash = XXH3_64bits_withSeed(text.data, text.len, visit->hash);
}

static void
note_key(struct visit *visit, const struct snapshot_record *record)
{
    CHECK(record->db < DATABASES_MAX && record->epoch < SNAPSHOT_EPOCHS);
    CHECK(record->name.len <= NAME_BYTES_MAX);
    note(visit, record->name);
}

static bool
on_gone(void *ctx, const struct snapshot_record *record)
{
    note_key(ctx, record);
    return true;
}

static bool
on_effects(void *ctx, const struct snapshot_effects *effects)
{
    struct visit *visit = ctx;

    CHECK(effects->commands.len > 0);
    CHECK(effects->position >= visit->position);
    CHECK(effects->sequence > visit->sequence);
    visit->position = effects->position + effects->commands.len;
    visit->sequence = effects->sequence;
    note(visit, effects->commands);
    return true;
}

static bool
on_end(void *ctx, const struct snapshot_stamp *end)
{
    const struct visit *visit = ctx;

    CHECK(end->begins <= end->position && visit->position <= end->position);
    CHECK(visit->sequence <= end->sequence);
    return true;
}

/* Whoever shows a filter shows all of it: it dumps to what it says it is. */
static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct visit *visit = ctx;
    size_t len = (size_t)codec_dump_bytes(bloom);
    uint8_t *dump = mem_alloc(len);
    struct bloom *again = NULL;
    uint64_t incarnation = 0;

    note_key(visit, record);
    codec_dump(bloom, record->incarnation, dump);
    CHECK(codec_load(dump, len, NULL, &incarnation, &again) == BLOOM_OK);
    CHECK(incarnation == record->incarnation);
    bloom_free(again, NULL);
    note(visit, (struct slice){ (const char *)dump, len });
    visit->keys++;
    mem_free(dump);
    bloom_fini(bloom, &visit->env);
    return true;
}

static void
on_stretch(void *ctx, const struct snapshot_error *error, uint64_t from,
           uint64_t to)
{
    struct visit *visit = ctx;

    CHECK(error->text[0] != '\0' && error->status != SNAPSHOT_OK);
    CHECK(visit->at <= from && from <= to);
    visit->at = to;
    visit->stretches++;
}

static void
begin_visit(struct visit *visit, struct heap *heap)
{
    *visit = (struct visit){ .env = { .alloc = heap_alloc,
                                      .free = heap_free,
                                      .alloc_lines = heap_alloc_lines,
                                      .free_lines = heap_free,
                                      .ctx = heap,
                                      .size_limit_bytes = UINT64_MAX } };
}

static enum snapshot_status
play_once(int fd, size_t size, bool salvage, struct visit *visit)
{
    struct heap heap = { .limit = justified(size) };
    struct snapshot_error error;
    const struct snapshot_visitor visitor = {
        .filter = on_filter,
        .gone = on_gone,
        .effects = on_effects,
        .end = salvage ? NULL : on_end,
        .passed_over = salvage ? on_stretch : NULL,
        .ctx = visit,
    };
    enum snapshot_status status;

    begin_visit(visit, &heap);
    status = snapshot_read(fd, &visit->env, &visitor, NULL, &error);
    CHECK(heap.out == 0 && (heap.refused || status != SNAPSHOT_NOMEM));
    CHECK(status == SNAPSHOT_OK || error.offset <= size);
    return status;
}

struct stream {
    const uint8_t *data;
    size_t left;
};

static int
read_stream(void *ctx, void *to, size_t len, size_t *ret_len)
{
    struct stream *stream = ctx;
    size_t step = len < stream->left ? len : stream->left;

    if (step > 0) {
        memcpy(to, stream->data, step);
    }
    stream->data += step;
    stream->left -= step;
    *ret_len = step;
    return 0;
}

/* As strictly as the file. */
static void
play_stream(const uint8_t *data, size_t size, enum snapshot_status expected,
            const struct visit *seen)
{
    struct heap heap = { .limit = justified(size) };
    struct stream stream = { data, size };
    const struct snapshot_source source = { .read = read_stream,
                                            .ctx = &stream };
    struct snapshot_error error;
    struct visit visit;
    const struct snapshot_visitor visitor = { .filter = on_filter,
                                              .gone = on_gone,
                                              .effects = on_effects,
                                              .end = on_end,
                                              .ctx = &visit };
    enum snapshot_status status;

    begin_visit(&visit, &heap);
    status = snapshot_read_source(&source, &visit.env, &visitor, NULL, &error);
    CHECK(heap.out == 0);
    CHECK(status == expected || (status == SNAPSHOT_NOMEM && heap.refused &&
                                 expected == SNAPSHOT_DAMAGED));
    CHECK(visit.keys == seen->keys && visit.hash == seen->hash);
    CHECK(status == SNAPSHOT_OK || error.offset <= size);
    CHECK(status != SNAPSHOT_OK || stream.left == 0);
}

static void
play(const uint8_t *data, size_t size)
{
    int fd = memfd_create("snapshot", MFD_CLOEXEC);
    struct visit strict, salvage;
    struct snapshot_stamp stamp;
    struct snapshot_error error;
    enum snapshot_status status;

    CHECK(fd >= 0 && file_write(fd, data, size) == 0);
    status = play_once(fd, size, false, &strict);
    CHECK(status == SNAPSHOT_OK || status == SNAPSHOT_DAMAGED ||
          status == SNAPSHOT_NEWER || status == SNAPSHOT_NOMEM);
    CHECK(status != SNAPSHOT_OK ||
          snapshot_read_stamp(fd, &stamp, &error) == SNAPSHOT_OK);
    CHECK(status != SNAPSHOT_OK || stamp.version > 2 ||
          stamp.keys == strict.keys);
    play_stream(data, size, status, &strict);
    if (play_once(fd, size, true, &salvage) == SNAPSHOT_OK) {
        CHECK(salvage.keys >= strict.keys);
        CHECK((status == SNAPSHOT_OK) == (salvage.stretches == 0));
        CHECK(status != SNAPSHOT_OK || salvage.hash == strict.hash);
    } else {
        CHECK(status != SNAPSHOT_OK);
    }
    file_close(fd);
}

/* Makes all hashes right that can be found; the rest stays as it is. */
static void
seal(uint8_t *data, size_t size)
{
    size_t at = HEADER_BYTES;
    uint64_t key;

    if (size < HEADER_BYTES) {
        return;
    }
    put_u64(data + HEADER_AT_HASH, XXH3_64bits(data, HEADER_AT_HASH));
    key = get_u64(data + HEADER_AT_FILE_KEY);
    while (size - at >= SECTION_FRAME_BYTES) {
        uint64_t bytes = get_u64(data + at + SECTION_AT_BYTES);
        uint8_t *payload = data + at + SECTION_HEAD_BYTES;

        if (bytes > size - at - SECTION_FRAME_BYTES) {
            break;
        }
        put_u64(payload + bytes,
                XXH3_64bits_withSeed(payload, (size_t)bytes,
                                     section_seed(data + at, key)));
        at += SECTION_FRAME_BYTES + (size_t)bytes;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = mem_alloc(size);

    play(data, size);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    seal(copy, size);
    play(copy, size);
    mem_free(copy);
    return 0;
}

/* ---- inputs for replay.c: snapshots of random filters, most of them damaged.
 * Put together here, since a large filter need not be large. -------------- */

struct maker {
    uint64_t random;
    uint8_t *to;
    size_t at; /* the next byte */
    size_t section;
    uint64_t sections, records;
    uint16_t version;
    bool old; /* version 1 or 2 */
};

enum { BEGIN = 100, BEGIN_SEQUENCE = 5, REGION = 2 };

static void
open_section(struct maker *maker, enum section_type type)
{
    uint8_t *head = maker->to + maker->at;

    maker->section = maker->at;
    memcpy(head, SNAPSHOT_SECTION_MAGIC, SECTION_AT_TYPE);
    put_u16(head + SECTION_AT_TYPE, (uint16_t)type);
    put_u16(head + SECTION_AT_ZERO, 0);
    put_u64(head + SECTION_AT_ORDINAL, maker->sections++);
    maker->at += SECTION_HEAD_BYTES;
}

static void
close_section(struct maker *maker)
{
    put_u64(maker->to + maker->section + SECTION_AT_BYTES,
            maker->at - maker->section - SECTION_HEAD_BYTES);
    maker->at += SECTION_HASH_BYTES; /* sealed at the end */
}

static void
add_bytes(struct maker *maker, const void *data, size_t len)
{
    memcpy(maker->to + maker->at, data, len);
    maker->at += len;
}

static struct bloom *
random_filter(struct maker *maker)
{
    static const enum bloom_kind kinds[] = { BLOOM_NATIVE, BLOOM_NATIVE,
                                             BLOOM_DELETABLE, BLOOM_AGEING };
    struct bloom_params params = {
        .struct_size = sizeof(params),
        .capacity = 1 + fuzz_next(&maker->random) % 60,
        .error_rate = fuzz_next(&maker->random) % 2 == 0 ? 0.01 : 1e-7,
        .tightening = 0.5,
        .expansion = (uint32_t)(fuzz_next(&maker->random) % 3),
    };
    struct bloom *bloom = NULL;

    foreign_set_kind(&params, kinds[fuzz_next(&maker->random) % 4]);
    CHECK(bloom_new(&params, NULL, &bloom) == BLOOM_OK);
    for (uint64_t n = fuzz_next(&maker->random) % ITEMS; n > 0; n--) {
        bool added;

        (void)bloom_add(bloom, NULL, bloom_hash(bloom, &n, sizeof(n)), &added);
    }
    return bloom;
}

#define NAMES "SECT a name and more"

static void
add_front(struct maker *maker, const struct bloom *bloom, size_t name_bytes)
{
    uint8_t head[RECORD_HEAD_BYTES];

    put_u32(head + RECORD_AT_DB, 1);
    put_u32(head + RECORD_AT_NAME_BYTES, (uint32_t)name_bytes);
    put_u64(head + RECORD_AT_EXPIRES, fuzz_next(&maker->random) % 3);
    put_u64(head + RECORD_AT_FORM_BYTES,
            codec_dump_bytes(bloom) - CODEC_CHECKSUM_BYTES);
    put_u64(head + RECORD_AT_COPIED, BEGIN + fuzz_next(&maker->random) % 2);
    put_u32(head + RECORD_AT_EPOCH, 0);
    add_bytes(maker, head, maker->old ? RECORD_HEAD_BYTES_2 : sizeof(head));
    add_bytes(maker, NAMES, name_bytes);
    maker->records++;
    maker->at +=
        codec_put_head(bloom, fuzz_next(&maker->random), maker->to + maker->at);
}

static void
open_chunk(struct maker *maker, uint32_t layer, uint32_t runs, uint64_t offset)
{
    uint8_t head[CHUNK_HEAD_BYTES] = { 0 };

    open_section(maker, SECTION_LINES);
    put_u32(head + CHUNK_AT_LAYER, layer);
    put_u32(head + CHUNK_AT_RUNS, runs);
    put_u64(head + CHUNK_AT_OFFSET, offset);
    add_bytes(maker, head, sizeof(head));
}

/* Two lines and none in between. */
static void
add_runs(struct maker *maker, uint32_t layer, const uint8_t *lines,
         uint64_t offset)
{
    uint8_t runs[2 * RUN_BYTES] = { 0 };

    put_u32(runs + RUN_AT_LINES, 1);
    put_u32(runs + RUN_AT_ZERO_LINES, 1);
    put_u32(runs + RUN_BYTES + RUN_AT_LINES, 1);
    open_chunk(maker, layer, 2, offset);
    add_bytes(maker, runs, sizeof(runs));
    add_bytes(maker, lines, BLOOM_LINE_BYTES);
    add_bytes(maker, lines + 2 * BLOOM_LINE_BYTES, BLOOM_LINE_BYTES);
    close_section(maker);
}

/* The lines of a layer, without some in versions that allow it. */
static void
add_layer(struct maker *maker, uint32_t layer, const uint8_t *lines,
          size_t bytes)
{
    size_t reached = 0;

    for (size_t at = 0; at < bytes; at += BLOOM_LINE_BYTES) {
        uint64_t way = maker->version == 1 ? 3 : fuzz_next(&maker->random) % 4;

        if (way == 0) {
            continue;
        }
        if (way == 1 && bytes - at >= 3 * (size_t)BLOOM_LINE_BYTES) {
            add_runs(maker, layer, lines + at, at);
            at += 2 * (size_t)BLOOM_LINE_BYTES;
        } else {
            open_chunk(maker, layer, 0, at);
            add_bytes(maker, lines + at, BLOOM_LINE_BYTES);
            close_section(maker);
        }
        reached = at + BLOOM_LINE_BYTES;
    }
    if (reached < bytes) {
        open_chunk(maker, layer, 0, bytes);
        close_section(maker);
    }
}

/* Where lines would be: this key's, and then another one's. */
static void
add_voids(struct maker *maker, size_t name_bytes)
{
    uint8_t head[VOID_HEAD_BYTES];

    open_section(maker, SECTION_VOIDS);
    for (uint32_t n = 0; n < 2; n++) {
        put_u32(head + VOID_AT_DB, 1);
        put_u32(head + VOID_AT_EPOCH, n);
        put_u32(head + VOID_AT_NAME_BYTES, (uint32_t)name_bytes);
        add_bytes(maker, head, sizeof(head));
        add_bytes(maker, NAMES, name_bytes);
    }
    close_section(maker);
}

/* A piece for each block, or none. */
static void
add_pieces(struct maker *maker, const struct bloom *bloom)
{
    const uint64_t most = (REGION + 1) * BLOOM_LINE_BYTES;
    uint8_t figure[PIECES_POSITION_BYTES];
    uint64_t count = 0;
    size_t bytes;

    for (uint32_t i = 0; bloom_layer_lines(bloom, i, &bytes) != NULL; i++) {
        count += bytes / most;
    }
    if (fuzz_next(&maker->random) % 4 == 0) {
        count = 0;
    }
    open_section(maker, SECTION_PIECES);
    put_u64(figure, count > 0 ? most : 0);
    add_bytes(maker, figure, sizeof(figure));
    for (; count > 0; count--) {
        put_u64(figure, BEGIN + 1 + fuzz_next(&maker->random) % 9);
        add_bytes(maker, figure, sizeof(figure));
    }
    close_section(maker);
}

static void
add_large(struct maker *maker, const struct bloom *bloom)
{
    size_t name_bytes = (size_t)(fuzz_next(&maker->random) % sizeof(NAMES));
    bool broken = !maker->old && fuzz_next(&maker->random) % 6 == 0;
    const uint8_t *lines;
    size_t bytes;

    open_section(maker, maker->old ? SECTION_LARGE_2 : SECTION_LARGE);
    add_front(maker, bloom, name_bytes);
    close_section(maker);
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        if (broken) {
            add_voids(maker, name_bytes);
            return;
        }
        add_layer(maker, i, lines, bytes);
        broken = broken || (!maker->old && fuzz_next(&maker->random) % 9 == 0);
    }
    if (!maker->old && bloom_kind(bloom) == BLOOM_DELETABLE &&
        fuzz_next(&maker->random) % 8 != 0) {
        add_pieces(maker, bloom);
    }
}

static void
add_small(struct maker *maker, const struct bloom *bloom, bool first)
{
    const uint8_t *lines;
    size_t bytes;

    if (first) {
        open_section(maker, maker->old ? SECTION_RECORDS_2 : SECTION_RECORDS);
    }
    add_front(maker, bloom,
              (size_t)(fuzz_next(&maker->random) % sizeof(NAMES)));
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        add_bytes(maker, lines, bytes);
    }
}

static void
add_keys(struct maker *maker, uint64_t keys)
{
    bool open = false;

    for (uint64_t i = 0; i < keys; i++) {
        struct bloom *bloom = random_filter(maker);
        bool large = fuzz_next(&maker->random) % 3 == 0;

        if (large && open) {
            close_section(maker);
        }
        if (large) {
            add_large(maker, bloom);
        } else {
            add_small(maker, bloom, !open);
        }
        open = !large;
        bloom_free(bloom, NULL);
    }
    if (open) {
        close_section(maker);
    }
}

/* Groups, each in parts of at most PART bytes; moves position and sequence
 * behind them. */
static void
add_effects(struct maker *maker, uint64_t *position, uint64_t *sequence)
{
    static const char text[] = "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$1\r\na\r\n";

    for (uint64_t n = 1 + fuzz_next(&maker->random) % 3; n > 0; n--) {
        size_t step = 1 + (size_t)(fuzz_next(&maker->random) % sizeof(text));
        size_t len = sizeof(text) - 1;

        ++*sequence;
        for (size_t at = 0; at < len; at += step) {
            uint8_t head[EFFECTS_HEAD_BYTES];

            open_section(maker, SECTION_EFFECTS);
            put_u64(head + EFFECTS_AT_POSITION, *position);
            put_u64(head + EFFECTS_AT_SEQUENCE, *sequence);
            put_u64(head + EFFECTS_AT_BYTES, len);
            put_u64(head + EFFECTS_AT_OFFSET, at);
            add_bytes(maker, head, sizeof(head));
            add_bytes(maker, text + at, len - at < step ? len - at : step);
            close_section(maker);
        }
        *position += len + GROUP_SEAL_BYTES;
    }
}

static void
add_header(struct maker *maker, uint64_t keys)
{
    uint8_t *header = maker->to;

    memset(header, 0, HEADER_BYTES);
    memcpy(header, SNAPSHOT_MAGIC, HEADER_AT_VERSION);
    put_u16(header + HEADER_AT_VERSION, maker->version);
    put_u32(header + HEADER_AT_DATABASES, 16);
    put_u64(header + HEADER_AT_POSITION, BEGIN);
    put_u64(header + HEADER_AT_SEQUENCE, BEGIN_SEQUENCE);
    put_u64(header + HEADER_AT_KEYS, keys);
    put_u64(header + HEADER_AT_FILE_KEY, fuzz_next(&maker->random));
    maker->at = HEADER_BYTES;
}

static void
make_snapshot(struct maker *maker)
{
    uint64_t keys = fuzz_next(&maker->random) % FILTERS_MAX;
    uint64_t position = BEGIN;
    uint64_t sequence = BEGIN_SEQUENCE;
    uint8_t *end;

    maker->version =
        (uint16_t)(1 + fuzz_next(&maker->random) % SNAPSHOT_VERSION);
    maker->old = maker->version < 3;
    add_header(maker, keys);
    add_keys(maker, keys);
    if (!maker->old) {
        add_voids(maker, 4);
        add_effects(maker, &position, &sequence);
        if (fuzz_next(&maker->random) % 8 == 0) { /* behind the effects */
            add_voids(maker, 4);
        }
    }
    open_section(maker, maker->old ? SECTION_END_2 : SECTION_END);
    end = maker->to + maker->at;
    memset(end, 0, END_BYTES);
    put_u64(end + END_AT_RECORDS, maker->records);
    put_u64(end + END_AT_SECTIONS, maker->sections - 1);
    put_u64(end + END_AT_BYTES, maker->section);
    memcpy(end + END_AT_FILE_KEY, maker->to + HEADER_AT_FILE_KEY, 8);
    put_u64(end + END_AT_POSITION, position);
    put_u64(end + END_AT_SEQUENCE, sequence);
    put_u64(end + END_AT_KEYS, keys);
    maker->at += maker->old ? END_BYTES_2 : END_BYTES;
    close_section(maker);
}

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    struct maker maker = { .random = seed, .to = to };

    make_snapshot(&maker);
    CHECK(maker.at <= max);
    seal(to, maker.at);
    for (uint64_t n = fuzz_next(&maker.random) % 4; n > 0; n--) {
        to[fuzz_next(&maker.random) % maker.at] ^=
            (uint8_t)(1U << (fuzz_next(&maker.random) % 8));
    }
    if (fuzz_next(&maker.random) % 8 == 0) {
        maker.at -= fuzz_next(&maker.random) % maker.at;
    }
    return maker.at;
}
