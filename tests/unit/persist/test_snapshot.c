/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every filter that is written reads back to the byte, in whatever form;
 * failing writes are reported.
 */
#include "keyspace/databases.h"
#include "snapshot_help.h"

#include "base/machine.h"
#include "persist/snapshot_format.h"

#include <errno.h>
#include <sys/wait.h>

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

TEST(databases_that_were_flushed_or_swapped_are_written_as_clients_see_them)
{
    struct keyspace *ks = mixed_keyspace();
    struct keyspace *plain = test_keyspace(1);
    struct loading loading = { .ks = test_keyspace(1) };
    struct bytes content;

    keyspace_swap_db(ks, 0, 3);
    keyspace_flush_db(ks, 15);
    for (size_t i = 0; i < MIXED; i++) {
        struct filter_spec spec = mixed_specs[i];

        spec.db = spec.db == 0 ? 3 : spec.db == 3 ? 0 : spec.db;
        if (spec.db != 15) {
            put_spec(plain, &spec);
        }
    }
    content = snapshot_of_keyspace(ks);
    assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, content, false));
    assert_same_keyspaces(plain, loading.ks);
    mem_free(content.data);
    keyspace_free(ks);
    keyspace_free(plain);
    keyspace_free(loading.ks);
}

TEST(a_layer_of_several_chunks_comes_back)
{
    struct keyspace *ks = test_keyspace(1);
    const struct filter_spec spec = {
        "big", 0, 0, 1, { 20000000, 0.01, 0.5, 2, 0, 0, { 0 } }, 5000
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
        const struct bloom_params params = {
            capacities[i % 4], 0.01, 0.5, 2, 0, 0, { 0 }
        };
        struct keyspace *ks = test_keyspace(1);
        struct bloom *bloom = make_filter(&params, 0);
        uint64_t form = bloom_dump_bytes(bloom);
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
        "big", 0, 0, 1, { 200000000, 0.01, 0.5, 2, 0, 0, { 0 } }, 0
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
    const struct bloom_params params = { 100, 0.01, 0.5, 2, 0, 0, { 0 } };
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
    const struct bloom_params params = { 90000, 0.01, 0.5, 0, 0, 0, { 0 } };
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

TEST(a_forked_child_writes_what_its_parent_had)
{
    struct keyspace *ks = mixed_keyspace();
    struct keyspace *before = mixed_keyspace();
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = test_stamp();
    struct snapshot_progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = memory_file((struct bytes){ NULL, 0 });
    struct loading loading = { .ks = test_keyspace(1) };
    uint64_t size = 0;
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(snapshot_write(writer, ks, &stamp, fd, progress));
    }
    assert_true(pid > 0);
    keyspace_flush_all(ks);
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_int_equal(0, status);
    assert_int_equal(0, file_size(fd, &size));
    assert_int_equal(size, progress->bytes);
    assert_int_equal(MIXED, progress->keys);
    assert_int_equal(SNAPSHOT_OK, load_fd(&loading, fd, false));
    assert_same_keyspaces(before, loading.ks);
    file_close(fd);
    (void)munmap(progress, sizeof(*progress));
    snapshot_writer_free(writer);
    keyspace_free(ks);
    keyspace_free(before);
    keyspace_free(loading.ks);
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
    bloom_free(bloom, &adding->env);
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
    assert_int_equal(0, snapshot_end(adding.writer));
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

TEST(filters_that_are_not_as_many_as_announced_are_an_error)
{
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = test_stamp();
    int fd = memory_file((struct bytes){ NULL, 0 });

    stamp.keys = 1;
    assert_int_equal(0, snapshot_begin(writer, &stamp, 16, fd, NULL));
    assert_int_equal(EBADMSG, snapshot_end(writer));
    snapshot_writer_free(writer);
    file_close(fd);
}
