/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots as hostile bytes: damage is found whatever it is and named where
 * it is, sizes are believed only when the file has the bytes, nothing leaks.
 *
 * tests/data/golden-v1/snapshot.bin and its like have to load for ever. They
 * hold what snapshot_help.h lists; that of the present version was written by
 *     BLOOMERY_WRITE_GOLDEN=1 \
 *         build/release/tests/unit/snapshot/test_snapshot_read
 */
#include "snapshot_help.h"

#include "journal/group.h"
#include "snapshot/section.h"
#include "snapshot/snapshot_format.h"

#include <errno.h>
#include <fcntl.h>

#define GOLDEN_NAME "tests/data/golden-v%u/snapshot.bin"

enum {
    SMALL_BYTES_MIN = 16 << 10,
    AT_FIRST_RUN = CHUNK_HEAD_BYTES,
    LEFT_OUT_BYTES = 256 << 10
};

static struct bytes
mixed_snapshot(void)
{
    struct keyspace *ks = mixed_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);

    keyspace_free(ks);
    return content;
}

/* ---- sections of a snapshot in memory ------------------------------------ */

/* Where the nth section (0: the first) of a type begins. */
static size_t
find_type(struct bytes content, enum section_type type, unsigned nth)
{
    size_t at = HEADER_BYTES;

    while (get_u16(content.data + at + SECTION_AT_TYPE) != type || nth-- > 0) {
        at += section_bytes(content, at);
        assert_true(at < content.len);
    }
    return at;
}

static void
seal_header(struct bytes content)
{
    put_u64(content.data + HEADER_AT_HASH,
            XXH3_64bits(content.data, HEADER_AT_HASH));
}

static void
seal_section(struct bytes content, size_t at)
{
    uint8_t *payload = content.data + at + SECTION_HEAD_BYTES;
    size_t bytes = section_bytes(content, at) - SECTION_FRAME_BYTES;
    uint64_t key = get_u64(content.data + HEADER_AT_FILE_KEY);

    put_u64(payload + bytes,
            XXH3_64bits_withSeed(payload, bytes,
                                 section_seed(content.data + at, key)));
}

/* ---- a heap that counts, for the sizes that are asked for ---------------- */

struct heap {
    size_t out, most_out;
    size_t limit;
    bool refused;
};

static void *
heap_alloc(void *ctx, size_t bytes)
{
    struct heap *heap = ctx;

    if (bytes > heap->limit - heap->out) {
        heap->refused = true;
        return NULL;
    }
    heap->out += bytes;
    heap->most_out = heap->out > heap->most_out ? heap->out : heap->most_out;
    return mem_try_lines((bytes + 63) / 64 * 64);
}

static void
heap_free(void *ctx, void *ptr, size_t bytes)
{
    struct heap *heap = ctx;

    heap->out -= bytes;
    mem_free_lines(ptr, (bytes + 63) / 64 * 64);
}

struct look {
    struct heap heap;
    struct bloom_env env;
    uint64_t keys;
};

static bool
free_it(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct look *look = ctx;

    assert_true(record->name.len <= NAME_BYTES_MAX);
    bloom_fini(bloom, &look->env);
    look->keys++;
    return true;
}

static struct snapshot_visitor
visitor_of(struct look *look, size_t limit)
{
    *look = (struct look){ .heap = { .limit = limit } };
    look->env = (struct bloom_env){ .alloc = heap_alloc,
                                    .free = heap_free,
                                    .alloc_lines = heap_alloc,
                                    .free_lines = heap_free,
                                    .ctx = &look->heap,
                                    .size_limit_bytes = UINT64_MAX };
    return (struct snapshot_visitor){ .filter = free_it, .ctx = look };
}

/* The same bytes as a stream give the same result, unless they lie about what
 * follows: then memory was refused. */
static void
read_as_stream(int fd, size_t limit, const struct look *seen,
               const struct snapshot_error *error,
               enum snapshot_status expected)
{
    struct stream stream = { .fd = fd };
    const struct snapshot_source source = stream_source(&stream);
    struct look look;
    const struct snapshot_visitor visitor = visitor_of(&look, limit);
    struct snapshot_error here = { .text = "" };
    enum snapshot_status status =
        snapshot_read_source(&source, &look.env, &visitor, NULL, &here);

    assert_int_equal(0, look.heap.out);
    assert_int_equal(seen->keys, look.keys);
    if (status != expected) {
        assert_int_equal(SNAPSHOT_NOMEM, status);
        assert_int_equal(SNAPSHOT_DAMAGED, expected);
        assert_true(look.heap.refused);
    } else if (status != SNAPSHOT_OK) {
        assert_int_equal(status, here.status);
        assert_int_equal(error->record, here.record);
        assert_true(here.offset >= error->offset);
        assert_true(here.offset <= stream.at);
    }
}

/* Reads content and throws the filters away. No filter may ask for more than
 * the file has, but for the zero lines that it leaves out. */
static enum snapshot_status
read_bounded(int fd, size_t file_bytes, struct snapshot_error *error)
{
    /* The layers' structs are larger than their stored form. */
    const size_t limit = 4 * file_bytes + LEFT_OUT_BYTES;
    struct look look;
    const struct snapshot_visitor visitor = visitor_of(&look, limit);
    enum snapshot_status status =
        snapshot_read(fd, &look.env, &visitor, NULL, error);

    assert_int_equal(0, look.heap.out);
    assert_false(look.heap.refused);
    read_as_stream(fd, limit, &look, error, status);
    return status;
}

static enum snapshot_status
read_content(struct bytes content, struct snapshot_error *error)
{
    int fd = memory_file(content);
    enum snapshot_status status = read_bounded(fd, content.len, error);

    file_close(fd);
    return status;
}

/* ---- golden -------------------------------------------------------------- */

static void
check_golden(unsigned version)
{
    struct loading loading = { .ks = test_keyspace(1) };
    struct keyspace *expected = mixed_keyspace();
    struct snapshot_stamp stamp, golden = test_stamp();
    char name[64];
    int fd = -1;

    (void)snprintf(name, sizeof(name), GOLDEN_NAME, version);
    if (file_open(AT_FDCWD, name, &fd) != 0) {
        print_error("%s: not found; run from the top folder\n", name);
        fail();
    }
    assert_int_equal(SNAPSHOT_OK,
                     snapshot_read_stamp(fd, &stamp, &loading.error));
    golden.keys = MIXED;
    assert_int_equal(version, stamp.version);
    assert_string_equal(golden.history, stamp.history);
    assert_int_equal(golden.position, stamp.position);
    assert_int_equal(golden.sequence, stamp.sequence);
    assert_int_equal(golden.created_ms, stamp.created_ms);
    assert_int_equal(golden.keys, stamp.keys);
    assert_int_equal(SNAPSHOT_OK, load_fd(&loading, fd, false));
    assert_same_keyspaces(expected, loading.ks);
    file_close(fd);
    keyspace_free(expected);
    keyspace_free(loading.ks);
}

TEST(the_golden_snapshots_of_all_versions_load)
{
    for (unsigned version = 1; version <= SNAPSHOT_VERSION; version++) {
        check_golden(version);
    }
}

/* Runs before main when asked for, so that the case above finds the file. */
__attribute__((constructor)) static void
write_golden(void)
{
    struct bytes content;
    char name[64];
    int fd = -1;

    if (getenv("BLOOMERY_WRITE_GOLDEN") != NULL) {
        (void)snprintf(name, sizeof(name), GOLDEN_NAME,
                       (unsigned)SNAPSHOT_VERSION);
        content = mixed_snapshot();
        CHECK(file_create(AT_FDCWD, name, &fd) == 0);
        CHECK(file_write(fd, content.data, content.len) == 0);
        file_close(fd);
        mem_free(content.data);
    }
}

/* ---- damage -------------------------------------------------------------- */

static void
write_at(int fd, const uint8_t *data, size_t len, size_t at)
{
    assert_int_equal(len, pwrite(fd, data, len, (off_t)at));
}

/* Three ways: cut off, one bit, garbage up to the end. */
static void
damage_at(int fd, struct bytes content, size_t at, uint64_t *random)
{
    const size_t left = content.len - at;
    uint8_t *garbage = mem_alloc(left);
    struct snapshot_error error;

    garbage[0] =
        content.data[at] ^ (uint8_t)(1U << test_random_below(random, 8));
    write_at(fd, garbage, 1, at);
    assert_int_equal(SNAPSHOT_DAMAGED, read_bounded(fd, content.len, &error));
    assert_true(error.offset <= at);

    fill_random(random, garbage + 1, left - 1); /* the first byte differs */
    write_at(fd, garbage, left, at);
    assert_int_equal(SNAPSHOT_DAMAGED, read_bounded(fd, content.len, &error));
    assert_true(error.offset <= at);

    assert_int_equal(0, ftruncate(fd, (off_t)at));
    assert_int_equal(SNAPSHOT_DAMAGED, read_bounded(fd, at, &error));
    assert_true(error.offset <= at);
    write_at(fd, content.data + at, left, at);
    mem_free(garbage);
}

TEST(damage_of_every_byte_is_found)
{
    uint64_t random = test_seed() + 1;
    struct keyspace *ks = first_specs(MIXED - 1); /* the small ones */
    struct bytes content = snapshot_of_keyspace(ks);
    int fd = memory_file(content);
    struct snapshot_error error;

    assert_true(content.len > SMALL_BYTES_MIN);
    for (size_t at = 0; at < content.len; at++) {
        damage_at(fd, content, at, &random);
    }
    assert_int_equal(SNAPSHOT_OK, read_bounded(fd, content.len, &error));
    file_close(fd);
    keyspace_free(ks);
    mem_free(content.data);
}

/* The frames of its sections, and some of its lines. */
TEST(damage_of_a_large_filter_is_found)
{
    uint64_t random = test_seed() + 2;
    struct bytes content = mixed_snapshot();
    size_t large = find_type(content, SECTION_LARGE, 0);
    size_t lines = find_type(content, SECTION_LINES, 0);
    size_t next = lines + section_bytes(content, lines);
    int fd = memory_file(content);

    for (size_t at = large; at < content.len; at++) {
        if (at < lines + 100 || at + 20 > next || at % 4001 == 0) {
            damage_at(fd, content, at, &random);
        }
    }
    file_close(fd);
    mem_free(content.data);
}

TEST(what_follows_the_end_is_damage)
{
    struct bytes content = mixed_snapshot();
    struct bytes longer = { mem_zalloc(content.len + 1), content.len + 1 };
    struct snapshot_error error;

    memcpy(longer.data, content.data, content.len);
    assert_int_equal(SNAPSHOT_DAMAGED, read_content(longer, &error));
    assert_int_equal(content.len, error.offset);
    mem_free(longer.data);
    mem_free(content.data);
}

/* Moves, drops, doubles and exchanges sections; each is intact by itself. */
TEST(sections_in_another_order_are_damage)
{
    struct bytes content = mixed_snapshot();
    struct bytes other = mixed_snapshot(); /* of another file key */
    struct bytes changed = { mem_alloc(2 * content.len), 0 };
    struct snapshot_error error;
    size_t next;

    for (size_t at = HEADER_BYTES; at < content.len; at = next) {
        size_t bytes = section_bytes(content, at);

        next = at + bytes;
        memcpy(changed.data, content.data, at);
        memcpy(changed.data + at, content.data + next, content.len - next);
        changed.len = content.len - bytes;
        assert_int_equal(SNAPSHOT_DAMAGED, read_content(changed, &error));
        assert_int_equal(at, error.offset);

        memcpy(changed.data + at, content.data + at, bytes);
        memcpy(changed.data + next, content.data + at, content.len - at);
        changed.len = content.len + bytes;
        assert_int_equal(SNAPSHOT_DAMAGED, read_content(changed, &error));
        assert_int_equal(next, error.offset);

        memcpy(changed.data, content.data, content.len);
        memcpy(changed.data + at, other.data + at, bytes);
        changed.len = content.len;
        assert_int_equal(SNAPSHOT_DAMAGED, read_content(changed, &error));
        assert_int_equal(at, error.offset);
    }
    mem_free(content.data);
    mem_free(other.data);
    mem_free(changed.data);
}

/* ---- fields that lie ----------------------------------------------------- */

struct lie {
    enum section_type type; /* 0: the header */
    size_t at;              /* in the payload, or in the header */
    unsigned width;
    enum snapshot_status expected;
    uint64_t value;
};

static void
put_width(uint8_t *at, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* With valid hashes, so that only the fields are wrong. */
TEST(fields_that_lie_are_found)
{
    static const struct lie lies[] = {
        { 0, HEADER_AT_VERSION, 2, SNAPSHOT_NEWER, SNAPSHOT_VERSION + 1 },
        { 0, HEADER_AT_VERSION, 2, SNAPSHOT_DAMAGED, 1 }, /* has no runs */
        { 0, HEADER_AT_VERSION, 2, SNAPSHOT_NEWER, 65535 },
        { 0, HEADER_AT_VERSION, 2, SNAPSHOT_DAMAGED, 0 },
        { 0, HEADER_AT_FLAGS, 2, SNAPSHOT_NEWER, 1 },
        { 0, HEADER_AT_DATABASES, 4, SNAPSHOT_DAMAGED, 0 },
        { 0, HEADER_AT_DATABASES, 4, SNAPSHOT_DAMAGED, 15 },
        { 0, HEADER_AT_DATABASES, 4, SNAPSHOT_DAMAGED, 65536 },
        { 0, HEADER_AT_HISTORY, 1, SNAPSHOT_DAMAGED, 0 },
        { 0, HEADER_AT_HISTORY, 1, SNAPSHOT_DAMAGED, '\n' },
        { 0, HEADER_AT_POSITION, 8, SNAPSHOT_DAMAGED, GROUP_POSITION_LIMIT },
        { 0, HEADER_AT_POSITION, 8, SNAPSHOT_DAMAGED, UINT64_C(1) << 63 },
        { 0, HEADER_AT_POSITION, 8, SNAPSHOT_DAMAGED, UINT64_MAX },
        { 0, HEADER_AT_SEQUENCE, 8, SNAPSHOT_DAMAGED, GROUP_NUMBER_LIMIT },
        { 0, HEADER_AT_SEQUENCE, 8, SNAPSHOT_DAMAGED, UINT64_MAX },
        { 0, HEADER_AT_KEYS, 8, SNAPSHOT_OK, UINT64_MAX }, /* a hint */
        { 0, HEADER_AT_POSITION, 8, SNAPSHOT_DAMAGED, 1 }, /* no effects */
        { 0, HEADER_AT_SEQUENCE, 8, SNAPSHOT_DAMAGED, 1 },
        { SECTION_RECORDS, RECORD_AT_DB, 4, SNAPSHOT_DAMAGED, 16 },
        { SECTION_RECORDS, RECORD_AT_DB, 4, SNAPSHOT_DAMAGED, UINT32_MAX },
        { SECTION_RECORDS, RECORD_AT_NAME_BYTES, 4, SNAPSHOT_DAMAGED, 7 },
        { SECTION_RECORDS, RECORD_AT_NAME_BYTES, 4, SNAPSHOT_DAMAGED,
          UINT32_MAX },
        { SECTION_RECORDS, RECORD_AT_EXPIRES, 8, SNAPSHOT_DAMAGED,
          UINT64_C(1) << 63 },
        { SECTION_RECORDS, RECORD_AT_FORM_BYTES, 8, SNAPSHOT_DAMAGED, 0 },
        { SECTION_RECORDS, RECORD_AT_FORM_BYTES, 8, SNAPSHOT_DAMAGED,
          UINT64_MAX },
        { SECTION_RECORDS, RECORD_AT_COPIED, 8, SNAPSHOT_DAMAGED, 1 },
        { SECTION_RECORDS, RECORD_AT_COPIED, 8, SNAPSHOT_DAMAGED,
          GROUP_POSITION_LIMIT - 1 },
        { SECTION_RECORDS, RECORD_AT_COPIED, 8, SNAPSHOT_DAMAGED, UINT64_MAX },
        { SECTION_RECORDS, RECORD_AT_EPOCH, 4, SNAPSHOT_DAMAGED,
          SNAPSHOT_EPOCHS },
        { SECTION_LARGE, RECORD_AT_DB, 4, SNAPSHOT_DAMAGED, 16 },
        { SECTION_LARGE, RECORD_AT_NAME_BYTES, 4, SNAPSHOT_DAMAGED, 4 },
        { SECTION_LARGE, RECORD_AT_NAME_BYTES, 4, SNAPSHOT_DAMAGED, 1 << 29 },
        { SECTION_LARGE, RECORD_AT_FORM_BYTES, 8, SNAPSHOT_DAMAGED, 100 },
        { SECTION_LARGE, RECORD_AT_FORM_BYTES, 8, SNAPSHOT_DAMAGED,
          UINT64_MAX - 7 },
        /* "large", then the head of core/codec.c */
        { SECTION_LARGE, 36 + 5 + 4, 2, SNAPSHOT_NEWER, 2 },
        { SECTION_LARGE, 36 + 5 + 12, 4, SNAPSHOT_DAMAGED, 1024 },
        { SECTION_LARGE, 36 + 5 + 12, 4, SNAPSHOT_DAMAGED, 0 },
        { SECTION_LARGE, 36 + 5 + 72, 8, SNAPSHOT_DAMAGED, 1 },
        { SECTION_LARGE, 36 + 5 + 72 + 16, 4, SNAPSHOT_DAMAGED, 0 },
        { SECTION_LARGE, 36 + 5 + 72 + 24, 8, SNAPSHOT_DAMAGED,
          UINT64_C(1) << 56 },
        { SECTION_LARGE, 36 + 5 + 72 + 24, 8, SNAPSHOT_DAMAGED, UINT64_MAX },
        { SECTION_LINES, CHUNK_AT_LAYER, 4, SNAPSHOT_DAMAGED, 1 },
        { SECTION_LINES, CHUNK_AT_RUNS, 4, SNAPSHOT_DAMAGED, 0 },
        { SECTION_LINES, CHUNK_AT_RUNS, 4, SNAPSHOT_DAMAGED, 1 },
        { SECTION_LINES, CHUNK_AT_RUNS, 4, SNAPSHOT_DAMAGED, PIECE_LINES },
        { SECTION_LINES, CHUNK_AT_RUNS, 4, SNAPSHOT_DAMAGED, UINT32_MAX },
        { SECTION_LINES, CHUNK_AT_OFFSET, 8, SNAPSHOT_DAMAGED, 1 },
        { SECTION_LINES, AT_FIRST_RUN + RUN_AT_LINES, 4, SNAPSHOT_DAMAGED, 0 },
        { SECTION_LINES, AT_FIRST_RUN + RUN_AT_LINES, 4, SNAPSHOT_DAMAGED,
          UINT32_MAX },
        { SECTION_LINES, AT_FIRST_RUN + RUN_AT_ZERO_LINES, 4, SNAPSHOT_DAMAGED,
          0 },
        { SECTION_LINES, AT_FIRST_RUN + RUN_AT_ZERO_LINES, 4, SNAPSHOT_DAMAGED,
          UINT32_MAX },
        { SECTION_LINES, AT_FIRST_RUN + RUN_AT_ZERO_LINES, 4, SNAPSHOT_DAMAGED,
          2000 },
        { SECTION_LINES, CHUNK_AT_OFFSET, 8, SNAPSHOT_DAMAGED, 64 * 2000 },
        { SECTION_LINES, CHUNK_AT_OFFSET, 8, SNAPSHOT_DAMAGED,
          UINT64_MAX - 63 },
        { SECTION_END, END_AT_RECORDS, 8, SNAPSHOT_DAMAGED, MIXED + 1 },
        { SECTION_END, END_AT_POSITION, 8, SNAPSHOT_DAMAGED, 1 },
        { SECTION_END, END_AT_POSITION, 8, SNAPSHOT_DAMAGED, UINT64_MAX },
        { SECTION_END, END_AT_POSITION, 8, SNAPSHOT_DAMAGED,
          GROUP_POSITION_LIMIT - 1 },
        { SECTION_END, END_AT_SEQUENCE, 8, SNAPSHOT_DAMAGED, 4712 },
        { SECTION_END, END_AT_HISTORY, 1, SNAPSHOT_DAMAGED, '\n' },
        { SECTION_END, END_AT_SECTIONS, 8, SNAPSHOT_DAMAGED, 0 },
        { SECTION_END, END_AT_BYTES, 8, SNAPSHOT_DAMAGED, 0 },
        { SECTION_END, END_AT_FILE_KEY, 8, SNAPSHOT_DAMAGED, 0 },
    };
    struct bytes content = mixed_snapshot();
    struct bytes changed = { mem_alloc(content.len), content.len };

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        const struct lie *lie = &lies[i];
        struct snapshot_error error;
        enum snapshot_status status;
        size_t at = 0;

        memcpy(changed.data, content.data, content.len);
        if (lie->type == 0) {
            put_width(changed.data + lie->at, lie->value, lie->width);
            seal_header(changed);
        } else {
            at = find_type(content, lie->type, 0);
            put_width(changed.data + at + SECTION_HEAD_BYTES + lie->at,
                      lie->value, lie->width);
            seal_section(changed, at);
        }
        status = read_content(changed, &error);
        if (status != lie->expected ||
            (status != SNAPSHOT_OK && error.status != status)) {
            print_error("lie %zu: status %d: %s\n", i, status, error.text);
            fail();
        }
    }
    mem_free(content.data);
    mem_free(changed.data);
}

/* Lengths that no file has, and types and numbers that are none. */
TEST(section_heads_that_lie_are_found)
{
    static const uint64_t sizes[] = { 0,
                                      1,
                                      63,
                                      1U << 20,
                                      UINT32_MAX,
                                      INT64_MAX,
                                      UINT64_MAX,
                                      UINT64_MAX - 31,
                                      UINT64_MAX - 24 };
    struct bytes content = mixed_snapshot();
    size_t next;

    for (size_t at = HEADER_BYTES; at < content.len; at = next) {
        uint8_t *head = content.data + at;
        uint64_t bytes = get_u64(head + SECTION_AT_BYTES);
        uint16_t type = get_u16(head + SECTION_AT_TYPE);
        struct snapshot_error error;

        next = at + section_bytes(content, at);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            put_u64(head + SECTION_AT_BYTES, sizes[i]);
            assert_int_equal(SNAPSHOT_DAMAGED, read_content(content, &error));
            assert_int_equal(at, error.offset);
        }
        put_u64(head + SECTION_AT_BYTES, bytes);
        for (uint16_t wrong = 0; wrong < 12; wrong++) {
            if (wrong != type) {
                put_u16(head + SECTION_AT_TYPE, wrong);
                seal_section(content, at);
                assert_int_equal(SNAPSHOT_DAMAGED,
                                 read_content(content, &error));
            }
        }
        put_u16(head + SECTION_AT_TYPE, type);
        put_u16(head + SECTION_AT_ZERO, 1);
        seal_section(content, at);
        assert_int_equal(SNAPSHOT_DAMAGED, read_content(content, &error));
        put_u16(head + SECTION_AT_ZERO, 0);
        seal_section(content, at);
        assert_int_equal(SNAPSHOT_OK, read_content(content, &error));
    }
    mem_free(content.data);
}

/* Random bytes in a section with a valid hash: filters that load are complete,
 * the rest is reported, and neither asks for bytes that the file does not have.
 */
TEST(sealed_garbage_does_no_harm)
{
    uint64_t random = test_seed() + 6;
    struct bytes content = mixed_snapshot();
    struct bytes changed = { mem_alloc(content.len), content.len };
    unsigned damaged = 0;

    for (unsigned round = 0; round < 3000 * test_rounds(); round++) {
        size_t at = HEADER_BYTES;
        struct snapshot_error error;
        enum snapshot_status status;

        for (uint64_t n = test_random_below(&random, 5); n > 0; n--) {
            size_t next = at + section_bytes(content, at);

            at = next < content.len ? next : at;
        }
        memcpy(changed.data, content.data, content.len);
        for (uint64_t n = test_random_below(&random, 4) + 1; n > 0; n--) {
            size_t bytes = section_bytes(content, at) - SECTION_FRAME_BYTES;
            size_t place =
                test_random_below(&random, bytes < 200 ? bytes : 200);

            changed.data[at + SECTION_HEAD_BYTES + place] =
                (uint8_t)test_random_below(&random, 256);
        }
        seal_section(changed, at);
        status = read_content(changed, &error);
        assert_true(status == SNAPSHOT_OK || status == SNAPSHOT_DAMAGED ||
                    status == SNAPSHOT_NEWER);
        damaged += status != SNAPSHOT_OK;
    }
    assert_true(damaged > 1000);
    mem_free(content.data);
    mem_free(changed.data);
}

/* The stamp is the one of the end, so a file without an end has none. */
TEST(a_stamp_is_read_from_header_and_end)
{
    struct bytes content = mixed_snapshot();
    struct snapshot_stamp stamp = { .keys = 4711 };
    struct snapshot_error error;
    size_t whole = content.len;
    size_t end = find_type(content, SECTION_END, 0);
    int fd;

    for (content.len = 0; content.len <= whole; content.len++) {
        bool complete = content.len == whole;

        if (content.len == 2 * HEADER_BYTES) {
            content.len = end;
        }
        fd = memory_file(content);
        assert_int_equal(complete ? SNAPSHOT_OK : SNAPSHOT_DAMAGED,
                         snapshot_read_stamp(fd, &stamp, &error));
        assert_int_equal(complete ? MIXED : 4711, stamp.keys);
        file_close(fd);
    }
    mem_free(content.data);
    assert_int_equal(SNAPSHOT_IO, snapshot_read_stamp(-1, &stamp, &error));
    assert_int_equal(EBADF, error.error);
}

/* ---- what else may fail -------------------------------------------------- */

TEST(every_allocation_may_fail)
{
    struct bytes content = mixed_snapshot();
    uint64_t used = mem_used();
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct loading loading = { 0 };
        int fd = memory_file(content);
        enum snapshot_status status;

        mem_fail_at(nth);
        status = load_fd(&loading, fd, nth % 2 == 0);
        fired = mem_fail_clear();
        assert_int_equal(fired ? SNAPSHOT_NOMEM : SNAPSHOT_OK, status);
        assert_int_equal(used, mem_used());
        file_close(fd);
    }
    mem_free(content.data);
}

TEST(every_read_may_fail)
{
    struct bytes content = mixed_snapshot();
    uint64_t used = mem_used();
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct loading loading = { 0 };
        int fd = memory_file(content);
        enum snapshot_status status;

        file_fail_at(FILE_CALL_READ, nth, EIO, true);
        status = load_fd(&loading, fd, false);
        fired = file_fail_clear();
        assert_int_equal(fired ? SNAPSHOT_IO : SNAPSHOT_OK, status);
        assert_int_equal(used, mem_used());
        if (fired) {
            assert_int_equal(EIO, loading.error.error);
        }
        file_fail_at(FILE_CALL_READ, nth, EINTR, false);
        loading = (struct loading){ 0 };
        assert_int_equal(SNAPSHOT_OK, load_fd(&loading, fd, false));
        (void)file_fail_clear();
        file_close(fd);
    }
    mem_free(content.data);
}

/* The header is shown before all filters, and may be refused. */
struct greeting {
    struct snapshot_stamp stamp;
    uint32_t databases;
    unsigned filters;
    bool refuse;
};

static bool
greet(void *ctx, const struct snapshot_stamp *stamp, uint32_t databases)
{
    struct greeting *greeting = ctx;

    assert_int_equal(0, greeting->filters);
    greeting->stamp = *stamp;
    greeting->databases = databases;
    return !greeting->refuse;
}

static bool
count_filter(void *ctx, const struct snapshot_record *record,
             struct bloom *bloom)
{
    struct greeting *greeting = ctx;
    const struct bloom_env env = test_env();

    assert_true(record->db < greeting->databases);
    greeting->filters++;
    bloom_fini(bloom, &env);
    return true;
}

TEST(the_header_comes_first_and_may_be_refused)
{
    struct bytes content = mixed_snapshot();
    int fd = memory_file(content);
    const struct bloom_env env = test_env();
    struct snapshot_stamp stamp;
    struct snapshot_error error;

    assert_int_equal(SNAPSHOT_OK, snapshot_read_stamp(fd, &stamp, &error));
    for (unsigned i = 0; i < 4; i++) {
        struct greeting greeting = { .refuse = i % 2 == 1 };
        const struct snapshot_visitor visitor = { .header = greet,
                                                  .filter = count_filter,
                                                  .ctx = &greeting };
        struct stream stream = { .fd = fd };
        const struct snapshot_source source = stream_source(&stream);
        enum snapshot_status status =
            i < 2 ? snapshot_read(fd, &env, &visitor, NULL, &error)
                  : snapshot_read_source(&source, &env, &visitor, NULL, &error);

        assert_int_equal(greeting.refuse ? SNAPSHOT_STOPPED : SNAPSHOT_OK,
                         status);
        assert_int_equal(greeting.refuse ? 0 : MIXED, greeting.filters);
        assert_int_equal(16, greeting.databases);
        assert_memory_equal(&stamp, &greeting.stamp, sizeof(stamp));
    }
    file_close(fd);
    mem_free(content.data);
}

static void
note_keys(void *ctx, uint64_t keys)
{
    uint64_t *told = ctx;

    *told = keys;
}

static bool
look_away(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    const struct bloom_env env = test_env();

    (void)ctx;
    (void)record;
    bloom_fini(bloom, &env);
    return true;
}

/* A header that lies makes no larger tables than the file could fill. */
TEST(as_many_keys_are_told_as_the_file_can_hold)
{
    struct bytes content = mixed_snapshot();
    const uint64_t most = content.len / RECORD_BYTES_MIN;
    const uint64_t says[] = { 0, MIXED, most, most + 1, UINT64_MAX };
    const struct bloom_env env = test_env();

    for (unsigned i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        uint64_t told = 12345;
        const struct snapshot_visitor visitor = { .expect = note_keys,
                                                  .filter = look_away,
                                                  .ctx = &told };
        struct snapshot_error error;
        struct stream stream;
        const struct snapshot_source source = stream_source(&stream);
        int fd;

        put_u64(content.data + HEADER_AT_KEYS, says[i]);
        seal_header(content);
        fd = memory_file(content);
        assert_int_equal(SNAPSHOT_OK,
                         snapshot_read(fd, &env, &visitor, NULL, &error));
        assert_int_equal(told, says[i] < most ? says[i] : most);
        told = 12345;
        stream = (struct stream){ .fd = fd };
        assert_int_equal(
            SNAPSHOT_OK,
            snapshot_read_source(&source, &env, &visitor, NULL, &error));
        assert_int_equal(told, 12345);
        file_close(fd);
    }
    mem_free(content.data);
}

TEST(a_stream_that_fails_says_how)
{
    struct bytes content = mixed_snapshot();
    int fd = memory_file(content);
    uint64_t used = mem_used();

    for (uint64_t at = 1; at <= content.len; at += at < 500 ? 1 : 1000) {
        struct stream stream = { fd, 0, at, ETIMEDOUT };
        const struct snapshot_source source = stream_source(&stream);
        struct look look;
        const struct snapshot_visitor visitor = visitor_of(&look, SIZE_MAX / 2);
        struct snapshot_error error;

        assert_int_equal(
            SNAPSHOT_IO,
            snapshot_read_source(&source, &look.env, &visitor, NULL, &error));
        assert_int_equal(ETIMEDOUT, error.error);
        assert_int_equal(stream.at, error.offset);
        assert_int_equal(0, look.heap.out);
        assert_int_equal(used, mem_used());
    }
    file_close(fd);
    mem_free(content.data);
}

TEST(the_visitor_may_stop_at_any_filter)
{
    struct bytes content = mixed_snapshot();

    for (uint64_t nth = 1; nth <= MIXED; nth++) {
        struct loading loading = { .ks = test_keyspace(1), .stop_at = nth };

        assert_int_equal(SNAPSHOT_STOPPED,
                         load_bytes(&loading, content, nth % 2 == 0));
        assert_int_equal(nth, loading.shown);
        assert_int_equal(nth - 1, count_all(loading.ks));
        keyspace_free(loading.ks);
    }
    mem_free(content.data);
}
