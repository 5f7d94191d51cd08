/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every filter that is written reads back to the byte, in whatever form;
 * failing writes are reported.
 */
#include "keyspace/databases.h"
#include "snapshot_help.h"

#include "base/machine.h"
#include "core/codec.h"
#include "journal/group.h"
#include "snapshot/snapshot_format.h"

#include <errno.h>
#include <stdarg.h>

static void
check_round_trip(struct keyspace *ks)
{
    struct loading loading = { .ks = test_keyspace(1) };
    struct bytes content = snapshot_of_keyspace(ks);

    assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, content, false));
    assert_int_equal(count_all(ks), loading.shown);
    assert_int_equal(content.len, loading.progress.bytes);
    assert_int_equal(loading.shown, loading.progress.keys);
    assert_same_keyspaces(ks, loading.ks);
    keyspace_free(loading.ks);
    mem_free(content.data);
}

TEST(an_empty_keyspace_comes_back)
{
    struct keyspace *ks = test_keyspace(1);
    struct bytes content = snapshot_of_keyspace(ks);

    assert_int_equal(HEADER_BYTES + SECTION_FRAME_BYTES + END_BYTES,
                     content.len);
    mem_free(content.data);
    check_round_trip(ks);
    keyspace_free(ks);
}

TEST(filters_of_all_kinds_come_back_to_the_byte)
{
    struct keyspace *ks = mixed_keyspace();

    check_round_trip(ks);
    keyspace_free(ks);
}

static struct bloom *
random_filter(uint64_t *random)
{
    static const double rates[] = { 0.01, 0.3, 1e-6, 1e-15, 0.001 };
    static const uint32_t expansions[] = { 2, 0, 1, 4 };
    struct bloom_params params = {
        .struct_size = sizeof(params),
        .capacity = 1 + test_random_below(random, 500),
        .error_rate = rates[test_random_below(random, 5)],
        .tightening = 0.5,
        .expansion = expansions[test_random_below(random, 4)],
    };

    if (test_random_below(random, 40) == 0) {
        params.capacity = 50000 + test_random_below(random, 200000);
    }
    for (size_t i = 0; i < sizeof(params.seed); i++) {
        params.seed[i] = (uint8_t)test_random_below(random, 256);
    }
    return make_filter(&params, (unsigned)test_random_below(random, 600));
}

TEST(random_keyspaces_come_back_to_the_byte)
{
    for (unsigned round = 0; round < 5 * test_rounds(); round++) {
        uint64_t random = test_seed() + round;
        struct keyspace *ks = test_keyspace(1);
        uint64_t keys = test_random_below(&random, 3000);

        for (uint64_t i = 0; i < keys; i++) {
            struct test_key key;
            uint64_t expires_at_ms = test_random_below(&random, 3) > 0
                                         ? 0
                                         : 1 + test_random_below(&random, 99);
            const struct key *name =
                test_key_set(&key, (uint32_t)test_random_below(&random, 16), i);

            put_filter(ks, name, random_filter(&random),
                       test_random_below(&random, UINT64_MAX), expires_at_ms);
        }
        check_round_trip(ks);
        keyspace_free(ks);
    }
}

TEST(a_layer_of_several_chunks_comes_back)
{
    struct keyspace *ks = test_keyspace(1);
    const struct filter_spec spec = {
        "big", 0, 0, 1, PARAMS(20000000, 0.01, 0.5, 2), 5000
    };

    put_spec(ks, &spec);
    check_round_trip(ks);
    keyspace_free(ks);
}

/* ---- what is zero -------------------------------------------------------- */

/* Sets the lines of the filter's first layer that pick() names, and no other.
 */
static void
set_lines(struct bloom *bloom, bool (*pick)(size_t line, size_t count))
{
    size_t bytes;
    uint8_t *lines = codec_layer_lines(bloom, 0, &bytes);
    size_t count = bytes / BLOOM_LINE_BYTES;

    for (size_t i = 0; i < count; i++) {
        if (pick(i, count)) {
            lines[i * BLOOM_LINE_BYTES + i % BLOOM_LINE_BYTES] = 1;
        }
    }
}

static bool
pick_none(size_t line, size_t count)
{
    return line == count;
}

static bool
pick_first(size_t line, size_t count)
{
    return line == 0 && count > 0;
}

static bool
pick_last(size_t line, size_t count)
{
    return line + 1 == count;
}

static bool
pick_around_pieces(size_t line, size_t count)
{
    return count > 0 &&
           (line % PIECE_LINES == 0 || line % PIECE_LINES == PIECE_LINES - 1);
}

static bool
pick_every_other(size_t line, size_t count)
{
    return count > 0 && line % 2 == 1;
}

static bool
pick_every_tenth(size_t line, size_t count)
{
    return count > 0 && line % 10 == 3;
}

static bool
pick_all_but_some(size_t line, size_t count)
{
    return count > 0 && line % 1000 != 999;
}

static bool
pick_all(size_t line, size_t count)
{
    return line < count;
}

/* Small filters, and filters of several pieces: the size is that of the lines
 * that are not zero, with a run of 8 bytes a line at most, and half a kilobyte
 * a piece. */
TEST(zero_lines_are_left_out_wherever_they_are)
{
    static const struct {
        bool (*pick)(size_t line, size_t count);
        unsigned percent; /* of the lines' bytes, at most */
    } cases[] = {
        { pick_none, 0 },           { pick_first, 1 },
        { pick_last, 1 },           { pick_around_pieces, 1 },
        { pick_every_other, 57 },   { pick_every_tenth, 12 },
        { pick_all_but_some, 100 }, { pick_all, 100 },
    };
    static const uint64_t capacities[] = { 4000, 60000, 130000, 1000000 };

    for (size_t i = 0; i < 4 * sizeof(cases) / sizeof(cases[0]); i++) {
        const struct bloom_params params =
            PARAMS(capacities[i % 4], 0.01, 0.5, 2);
        struct keyspace *ks = test_keyspace(1);
        struct bloom *bloom = make_filter(&params, 0);
        uint64_t form = codec_dump_bytes(bloom);
        struct bytes content;
        struct test_key key;
        /* Half of a small one is not worth a section. */
        unsigned percent = form < SNAPSHOT_DIRECT_BYTES && i / 4 == 4
                               ? 100
                               : cases[i / 4].percent;

        set_lines(bloom, cases[i / 4].pick);
        put_filter(ks, test_key_set(&key, 0, i), bloom, i, 0);
        content = snapshot_of_keyspace(ks);
        assert_in_range(content.len, HEADER_BYTES,
                        form * percent / 100 + 1000 + form / PIECE_BYTES * 512);
        mem_free(content.data);
        check_round_trip(ks);
        keyspace_free(ks);
    }
}

/* The machine's memory bounds the sizes that a file may declare, not the size
 * of the file; so a load must not touch lines that the file leaves out. */
TEST(reserved_filters_take_no_memory_when_they_are_saved_and_loaded)
{
    struct keyspace *ks = test_keyspace(1);
    struct loading loading = { .ks = test_keyspace(1) };
    const struct filter_spec spec = {
        "big", 0, 0, 1, PARAMS(200000000, 0.01, 0.5, 2), 0
    };
    uint64_t before = machine_resident_bytes();
    struct bytes content;

    put_spec(ks, &spec);
    content = snapshot_of_keyspace(ks);
    assert_in_range(content.len, HEADER_BYTES, 1000);
    assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, content, false));
    assert_int_equal(1, loading.shown);
    assert_in_range(machine_resident_bytes(), 0, before + (32 << 20));
    mem_free(content.data);
    keyspace_free(loading.ks);
    keyspace_free(ks);
}

TEST(names_of_any_length_come_back)
{
    static const size_t lengths[] = { SNAPSHOT_DIRECT_BYTES - 400,
                                      SNAPSHOT_DIRECT_BYTES, RECORDS_BYTES_MAX,
                                      5 << 20 };
    const struct bloom_params params = PARAMS(100, 0.01, 0.5, 2);
    struct keyspace *ks = test_keyspace(1);

    for (size_t i = 0; i < 4; i++) {
        char *name = mem_zalloc(lengths[i]);
        struct key key = key_of((struct slice){ name, lengths[i] }, 2);

        put_filter(ks, &key, make_filter(&params, 10), i, 0);
        mem_free(name);
    }
    check_round_trip(ks);
    keyspace_free(ks);
}

/* Around both limits: the size of a section, and that of a large filter. */
TEST(sections_are_of_about_the_size_that_is_promised)
{
    struct keyspace *ks = test_keyspace(1);
    const struct bloom_params params = PARAMS(90000, 0.01, 0.5, 0);
    struct bytes content;
    size_t at = HEADER_BYTES;
    size_t largest = 0;

    for (uint64_t i = 0; i < 40; i++) {
        struct test_key key;

        put_filter(ks, test_key_set(&key, 0, i), make_filter(&params, 5000), i,
                   0);
    }
    content = snapshot_of_keyspace(ks);
    while (at < content.len) {
        size_t bytes = get_u64(content.data + at + SECTION_AT_BYTES);

        assert_int_equal(at + SECTION_FRAME_BYTES + bytes < content.len
                             ? SECTION_RECORDS
                             : SECTION_END,
                         get_u16(content.data + at + SECTION_AT_TYPE));
        largest = bytes > largest ? bytes : largest;
        at += SECTION_FRAME_BYTES + bytes;
    }
    assert_true(largest >= SNAPSHOT_SECTION_BYTES);
    assert_true(largest < RECORDS_BYTES_MAX);
    mem_free(content.data);
    check_round_trip(ks);
    keyspace_free(ks);
}

TEST(two_snapshots_differ_in_their_key_only_in_size_not_at_all)
{
    struct keyspace *ks = mixed_keyspace();
    struct bytes a = snapshot_of_keyspace(ks);
    struct bytes b = snapshot_of_keyspace(ks);

    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, HEADER_AT_FILE_KEY);
    assert_memory_not_equal(a.data + HEADER_AT_FILE_KEY,
                            b.data + HEADER_AT_FILE_KEY, 8);
    mem_free(a.data);
    mem_free(b.data);
    keyspace_free(ks);
}

/* Failing writes are reported, nothing is allocated, and the next snapshot of
 * the same writer is complete. Interrupted writes change nothing. */
TEST(every_write_may_fail)
{
    static const int errors[] = { ENOSPC, EIO, EINTR };
    struct keyspace *ks = mixed_keyspace();
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = test_stamp();
    uint64_t used = mem_used();

    for (size_t i = 0; i < 3; i++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct loading loading = { 0 };
            int fd = memory_file((struct bytes){ NULL, 0 });
            int result;

            file_fail_at(FILE_CALL_WRITE, nth, errors[i], errors[i] != EINTR);
            result = snapshot_write(writer, ks, &stamp, fd, NULL);
            fired = file_fail_clear();
            assert_int_equal(fired && errors[i] != EINTR ? errors[i] : 0,
                             result);
            assert_int_equal(used, mem_used());
            assert_int_equal(result == 0 ? SNAPSHOT_OK : SNAPSHOT_DAMAGED,
                             load_fd(&loading, fd, false));
            file_close(fd);
            assert_true(nth < 1000);
        }
    }
    snapshot_writer_free(writer);
    keyspace_free(ks);
}

TEST(without_memory_there_is_no_writer)
{
    mem_fail_at(1);
    assert_null(snapshot_writer_new());
    assert_true(mem_fail_clear());
}

/* ---- filter by filter ---------------------------------------------------- */

struct adding {
    struct snapshot_writer *writer;
    struct bloom_env env;
};

static bool
add_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct adding *adding = ctx;

    assert_int_equal(0, snapshot_add(adding->writer, record, bloom));
    bloom_fini(bloom, &adding->env);
    return true;
}

TEST(a_snapshot_of_filters_is_as_one_of_their_keyspace)
{
    struct keyspace *ks = mixed_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);
    struct adding adding = { snapshot_writer_new(), test_env() };
    struct snapshot_visitor visitor = { .filter = add_filter, .ctx = &adding };
    struct snapshot_stamp stamp = test_stamp();
    struct loading loading = { .ks = test_keyspace(1) };
    struct snapshot_error error;
    int from = memory_file(content);
    int to = memory_file((struct bytes){ NULL, 0 });
    struct bytes second;

    stamp.keys = MIXED;
    assert_int_equal(0, snapshot_begin(adding.writer, &stamp, 16, to, NULL));
    assert_int_equal(SNAPSHOT_OK,
                     snapshot_read(from, &adding.env, &visitor, NULL, &error));
    assert_int_equal(0, snapshot_end(adding.writer, &stamp));
    second = read_all(to);
    assert_int_equal(content.len, second.len);
    assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, second, false));
    assert_same_keyspaces(ks, loading.ks);
    keyspace_free(loading.ks);
    keyspace_free(ks);
    snapshot_writer_free(adding.writer);
    file_close(from);
    file_close(to);
    mem_free(content.data);
    mem_free(second.data);
}

/* ---- copies, voids and effects ------------------------------------------- */

/* What a reader is shown, one line each. */
struct shown {
    char text[4096];
    struct bloom_env env;
    struct snapshot_stamp begin, end;
};

__attribute__((format(printf, 2, 3))) static bool
say(struct shown *shown, const char *format, ...)
{
    size_t len = strlen(shown->text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(shown->text + len, sizeof(shown->text) - len, format, args);
    va_end(args);
    return true;
}

static bool
on_header(void *ctx, const struct snapshot_stamp *begin, uint32_t databases)
{
    struct shown *shown = ctx;

    assert_int_equal(16, databases);
    shown->begin = *begin;
    return true;
}

static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct shown *shown = ctx;
    unsigned long long items = bloom_items(bloom);

    bloom_fini(bloom, &shown->env);
    return say(shown, "%.*s/%u/%u@%llu:%llu ", (int)record->name.len,
               record->name.data, record->db, record->epoch,
               (unsigned long long)record->copied_at, items);
}

static bool
on_gone(void *ctx, const struct snapshot_record *record)
{
    return say(ctx, "-%.*s/%u/%u ",
               record->name.len < 9 ? (int)record->name.len : 1,
               record->name.data, record->db, record->epoch);
}

static bool
on_effects(void *ctx, const struct snapshot_effects *effects)
{
    return say(ctx, "+%llu#%llu:%.5s*%zu ",
               (unsigned long long)effects->position,
               (unsigned long long)effects->sequence, effects->commands.data,
               effects->commands.len);
}

static bool
on_end(void *ctx, const struct snapshot_stamp *end)
{
    struct shown *shown = ctx;

    shown->end = *end;
    return true;
}

static struct snapshot_visitor
show_all(struct shown *shown)
{
    shown->env = test_env();
    return (struct snapshot_visitor){ .header = on_header,
                                      .filter = on_filter,
                                      .gone = on_gone,
                                      .effects = on_effects,
                                      .end = on_end,
                                      .ctx = shown };
}

/* Puts a filter as a walk does: the head, then lines in pieces of any size, the
 * last of them missing if `broken`. */
static void
put_pieces(struct snapshot_writer *writer, const struct snapshot_record *record,
           const struct bloom *bloom, bool broken)
{
    uint8_t head[CODEC_HEAD_BYTES_MAX];
    size_t len = codec_put_head(bloom, record->incarnation, head);
    const char *lines;
    size_t bytes;

    assert_int_equal(
        0, snapshot_put_head(writer, record,
                             (struct slice){ (const char *)head, len }));
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        bool last = i + 1 == bloom->count;
        size_t end = broken && last ? bytes - BLOOM_LINE_BYTES : bytes;

        for (size_t at = 0; at < end;) {
            size_t step = end - at < 1000 * BLOOM_LINE_BYTES
                              ? end - at
                              : 1000 * BLOOM_LINE_BYTES;

            assert_int_equal(0, snapshot_put_lines(writer, lines + at, step));
            at += step;
        }
    }
}

static void
put_form(struct snapshot_writer *writer, const struct snapshot_record *record,
         const struct bloom *bloom)
{
    size_t len = (size_t)codec_dump_bytes(bloom) - CODEC_CHECKSUM_BYTES;
    char *form = mem_alloc(len);
    size_t at = codec_put_head(bloom, record->incarnation, form);
    const void *lines;
    size_t bytes;

    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        memcpy(form + at, lines, bytes);
        at += bytes;
    }
    assert_int_equal(len, at);
    assert_int_equal(0,
                     snapshot_put(writer, record, (struct slice){ form, len }));
    mem_free(form);
}

static void
put_effects(struct snapshot_writer *writer, uint64_t position,
            uint64_t sequence, size_t bytes)
{
    char *text = mem_alloc(bytes);
    struct snapshot_effects effects = { .position = position,
                                        .sequence = sequence,
                                        .commands = { text, bytes } };

    memset(text, 'x', bytes);
    memcpy(text, "begin", 5);
    assert_int_equal(0, snapshot_put_effects(writer, &effects));
    mem_free(text);
}

/* A file as a walk writes one: copies of different positions, a void in every
 * place where one may be, groups of effects of one part and of several. */
static int
walked_file(void)
{
    static const struct bloom_params params[] = { PARAMS(100, 0.01, 0.5, 2),
                                                  PARAMS(30000, 1e-9, 0.5, 2),
                                                  PARAMS(2000, 0.01, 0.5, 2) };
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp begin = { .history = "b", .position = 1000 };
    struct snapshot_stamp end = { .history = "e", .sequence = 3, .keys = 2 };
    char *name = mem_zalloc(200000);
    int fd = memory_file((struct bytes){ NULL, 0 });
    const struct bloom_env env = test_env();
    struct bloom *bloom[3];

    for (size_t i = 0; i < 3; i++) {
        bloom[i] = make_filter(&params[i], (unsigned)(i == 2 ? 9 : 50000 * i));
    }
    memset(name, 'n', 200000);
    end.position = 1000 + 100 + 3000000 + 7 + 3 * GROUP_SEAL_BYTES;
    assert_int_equal(0, snapshot_begin(writer, &begin, 16, fd, NULL));
    put_form(writer,
             &(struct snapshot_record){ slice_lit("a"), 0, 0, 1, 0, 1000 },
             bloom[0]);
    put_form(writer, /* mostly zero: becomes a large one */
             &(struct snapshot_record){ slice_lit("b"), 15, 7, 2, 65535, 1001 },
             bloom[2]);
    assert_int_equal(0, snapshot_void(writer, &(struct snapshot_record){
                                                  slice_lit("c"), .db = 3 }));
    put_pieces(writer,
               &(struct snapshot_record){ slice_lit("d"), 1, 0, 3, 2, 2000 },
               bloom[1], false);
    put_pieces(writer,
               &(struct snapshot_record){ slice_lit("d"), 1, 0, 3, 3, 2001 },
               bloom[1], true);
    assert_int_equal(
        0, snapshot_void(writer, &(struct snapshot_record){ slice_lit("d"), 1,
                                                            0, 0, 3, 0 }));
    assert_int_equal(0, snapshot_void(writer, &(struct snapshot_record){
                                                  { name, 200000 }, .db = 4 }));
    assert_int_equal(0, snapshot_add(writer,
                                     &(struct snapshot_record){
                                         slice_lit(""), 0, 0, 1, 0, 3000 },
                                     bloom[0]));
    put_effects(writer, 1000, 1, 100);
    put_effects(writer, 1100 + GROUP_SEAL_BYTES, 2, 3000000);
    put_effects(writer, 3001100 + 2 * GROUP_SEAL_BYTES, 3, 7);
    assert_int_equal(0, snapshot_end(writer, &end));
    for (size_t i = 0; i < 3; i++) {
        bloom_free(bloom[i], &env);
    }
    mem_free(name);
    snapshot_writer_free(writer);
    return fd;
}

TEST(copies_voids_and_effects_come_back_in_their_order)
{
    static const char expected[] =
        "a/0/0@1000:0 b/15/65535@1001:9 -c/3/0 d/1/2@2000:50000 -d/1/3 "
        "-n/4/0 /0/0@3000:0 +1000#1:begin*100 +1204#2:begin*3000000 "
        "+3001308#3:begin*7 ";
    int fd = walked_file();
    struct snapshot_stamp stamp;
    struct snapshot_error error;

    for (unsigned i = 0; i < 2; i++) {
        struct stream stream = { .fd = fd };
        const struct snapshot_source source = stream_source(&stream);
        struct shown shown = { .text = "" };
        struct snapshot_visitor visitor = show_all(&shown);

        assert_int_equal(
            SNAPSHOT_OK,
            i == 0 ? snapshot_read(fd, &shown.env, &visitor, NULL, &error)
                   : snapshot_read_source(&source, &shown.env, &visitor, NULL,
                                          &error));
        assert_string_equal(expected, shown.text);
        assert_int_equal(1000, shown.begin.position);
        assert_string_equal("b", shown.begin.history);
        assert_int_equal(SNAPSHOT_OK, snapshot_read_stamp(fd, &stamp, &error));
        assert_memory_equal(&stamp, &shown.end, sizeof(stamp));
        assert_int_equal(3, stamp.sequence);
        assert_string_equal("e", stamp.history);
        assert_int_equal(2, stamp.keys);
    }
    file_close(fd);
}

/* One byte of it is wrong, for each of some thousand places. */
TEST(damage_of_copies_voids_and_effects_is_found)
{
    int fd = walked_file();
    struct bytes content = read_all(fd);
    uint64_t random = test_seed() + 17;

    for (unsigned round = 0; round < 2000 * test_rounds(); round++) {
        size_t at = test_random_below(&random, content.len);
        struct shown shown = { .text = "" };
        struct snapshot_visitor visitor = show_all(&shown);
        struct snapshot_error error;

        content.data[at] ^= 4;
        assert_int_equal(1, pwrite(fd, content.data + at, 1, (off_t)at));
        assert_int_equal(SNAPSHOT_DAMAGED,
                         snapshot_read(fd, &shown.env, &visitor, NULL, &error));
        assert_true(error.offset <= at);
        content.data[at] ^= 4;
        assert_int_equal(1, pwrite(fd, content.data + at, 1, (off_t)at));
    }
    mem_free(content.data);
    file_close(fd);
}

TEST(an_epoch_that_no_file_can_have_is_an_error)
{
    struct bloom *bloom =
        make_filter(&(struct bloom_params)PARAMS(100, 0.01, 0.5, 2), 1);
    const struct bloom_env env = test_env();
    struct snapshot_stamp stamp = test_stamp();

    for (uint32_t epoch = SNAPSHOT_EPOCHS - 1; epoch <= SNAPSHOT_EPOCHS;
         epoch++) {
        const struct snapshot_record record = { slice_lit("a"),
                                                .epoch = epoch };
        struct snapshot_writer *writer = snapshot_writer_new();
        int fd = memory_file((struct bytes){ NULL, 0 });
        int expected = epoch < SNAPSHOT_EPOCHS ? 0 : EOVERFLOW;

        assert_int_equal(0, snapshot_begin(writer, &stamp, 16, fd, NULL));
        assert_int_equal(expected, snapshot_add(writer, &record, bloom));
        assert_int_equal(expected, snapshot_end(writer, &stamp));
        snapshot_writer_free(writer);
        file_close(fd);
    }
    bloom_free(bloom, &env);
}
