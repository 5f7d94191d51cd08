/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frame by itself; test_snapshot_read.c tests its contents.
 */
#include "snapshot_help.h"

#include "snapshot/section.h"

static struct bytes
small_snapshot(void)
{
    struct keyspace *ks = mixed_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);

    keyspace_free(ks);
    return content;
}

TEST(sections_stand_one_behind_the_other)
{
    struct bytes content = small_snapshot();
    struct snapshot_error error;
    struct section_file file = { .fd = memory_file(content), .error = &error };
    uint8_t header[HEADER_BYTES];
    struct section section = { .next = HEADER_BYTES };
    uint64_t count = 0;

    assert_int_equal(SNAPSHOT_OK, section_open(&file, header));
    assert_int_equal(content.len, file.bytes);
    assert_int_equal(MIXED, file.keys_announced);
    assert_int_equal(16, file.databases);
    while (section.next < file.bytes) {
        uint64_t at = section.next;

        assert_int_equal(SNAPSHOT_DAMAGED,
                         section_read_head(&file, at, count + 1, &section));
        assert_int_equal(at, error.offset);
        assert_int_equal(SNAPSHOT_OK,
                         section_read_head(&file, at, count, &section));
        assert_int_equal(at, section.offset);
        assert_int_equal(SNAPSHOT_OK, section_read_payload(&file, &section));
        assert_memory_equal(content.data + at + SECTION_HEAD_BYTES, file.buffer,
                            section.bytes);
        count++;
    }
    assert_int_equal(4, count);
    assert_int_equal(SECTION_END, section.type);
    section_close(&file);
    file_close(file.fd);
    mem_free(content.data);
}

TEST(the_search_finds_what_holds_and_begins_something)
{
    static const uint16_t types[] = { SECTION_RECORDS, SECTION_LARGE,
                                      SECTION_END };
    struct bytes content = small_snapshot();
    struct snapshot_error error;
    struct section_file file = { .fd = memory_file(content), .error = &error };
    uint8_t header[HEADER_BYTES];
    struct section section = { .offset = 0 };

    assert_int_equal(SNAPSHOT_OK, section_open(&file, header));
    assert_true(section_reserve(&file, SECTION_SCAN_BYTES + PIECE_BYTES));
    for (size_t i = 0; i < 3; i++) {
        uint64_t before = section.offset;

        assert_true(section_find(&file, before + 1, 0, &section));
        assert_int_equal(types[i], section.type);
        assert_true(
            section_find(&file, section.offset, section.ordinal, &section));
    }
    assert_false(section_find(&file, section.offset + 1, 0, &section));
    assert_false(section_find(&file, 0, 4, &section)); /* numbers end at 3 */
    file.key++;
    assert_false(section_find(&file, 0, 0, &section));
    section_close(&file);
    file_close(file.fd);
    mem_free(content.data);
}

/* A name may hold a whole section, but not with this file's key. */
TEST(a_section_within_a_name_is_not_found)
{
    struct keyspace *ks = test_keyspace(1);
    struct bytes inner = small_snapshot();
    const struct bloom_params params = PARAMS(10, 0.01, 0.5, 2);
    struct key key = key_of((struct slice){ (char *)inner.data, inner.len }, 0);
    struct loading loading = { .ks = test_keyspace(1) };
    struct bytes content;

    put_filter(ks, &key, make_filter(&params, 3), 1, 0);
    content = snapshot_of_keyspace(ks);
    content.data[HEADER_BYTES + 30] ^= 1; /* the record with the name */
    assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, content, true));
    assert_int_equal(0, loading.shown);
    assert_int_equal(1, loading.stretch_count);
    mem_free(content.data);
    mem_free(inner.data);
    keyspace_free(ks);
    keyspace_free(loading.ks);
}

/* ---- as a stream --------------------------------------------------------- */

/* A source promises a name of the largest size. The buffer grows as the bytes
 * come, and holds those that came. */
TEST(a_stream_is_believed_as_far_as_it_has_come)
{
    static const size_t lens[] = { 100, 2 << 20, 5 << 20 };
    struct bytes content = small_snapshot();

    for (size_t i = 0; i < 3; i++) {
        struct bytes longer = { mem_alloc(HEADER_BYTES + lens[i]),
                                HEADER_BYTES + lens[i] };
        uint8_t *head = longer.data + HEADER_BYTES;
        struct snapshot_error error;
        struct stream stream = { .fd = -1 };
        const struct snapshot_source source = stream_source(&stream);
        struct section_file file = { .source = &source, .error = &error };
        uint8_t header[HEADER_BYTES];
        struct section section;

        memcpy(longer.data, content.data, HEADER_BYTES);
        memset(head, 0x5a, lens[i]);
        memcpy(head, SNAPSHOT_SECTION_MAGIC, SECTION_AT_TYPE);
        put_u16(head + SECTION_AT_TYPE, SECTION_LARGE);
        put_u16(head + SECTION_AT_ZERO, 0);
        put_u64(head + SECTION_AT_ORDINAL, 0);
        put_u64(head + SECTION_AT_BYTES, LARGE_BYTES_MAX);
        stream.fd = memory_file(longer);
        assert_int_equal(SNAPSHOT_OK, section_open(&file, header));
        assert_int_equal(SNAPSHOT_OK,
                         section_read_head(&file, HEADER_BYTES, 0, &section));
        assert_int_equal(SNAPSHOT_DAMAGED,
                         section_read_payload(&file, &section));
        assert_int_equal(longer.len, error.offset);
        assert_int_equal(longer.len, file.bytes);
        assert_true(file.buffer_bytes <= 2 * lens[i] + RECORDS_BYTES_MAX + 8);
        section_close(&file);
        file_close(stream.fd);
        mem_free(longer.data);
    }
    mem_free(content.data);
}

/* A long name, complete: read in several steps, it equals that of a file. */
TEST(a_long_name_comes_through_a_stream)
{
    struct keyspace *ks = test_keyspace(1);
    const struct bloom_params params = PARAMS(10, 0.01, 0.5, 2);
    struct bytes name = { mem_alloc(9 << 20), 9 << 20 };
    struct bytes content;
    struct key key;

    memset(name.data, 'n', name.len);
    key = key_of((struct slice){ (char *)name.data, name.len }, 0);
    put_filter(ks, &key, make_filter(&params, 3), 1, 0);
    content = snapshot_of_keyspace(ks);
    for (unsigned nth = 0; nth < 6; nth++) {
        struct loading loading = { .ks = test_keyspace(1) };
        struct stream stream = { .fd = memory_file(content) };
        const struct snapshot_source source = stream_source(&stream);
        const struct snapshot_visitor visitor = { .filter = load_filter,
                                                  .ctx = &loading };
        enum snapshot_status status;
        bool failed;

        loading.env = test_env();
        mem_fail_at(nth);
        status = snapshot_read_source(&source, &loading.env, &visitor, NULL,
                                      &loading.error);
        failed = mem_fail_clear();
        assert_int_equal(nth > 0, failed);
        assert_int_equal(failed ? SNAPSHOT_NOMEM : SNAPSHOT_OK, status);
        if (!failed) {
            assert_same_keyspaces(ks, loading.ks);
        }
        file_close(stream.fd);
        keyspace_free(loading.ks);
    }
    keyspace_free(ks);
    mem_free(content.data);
    mem_free(name.data);
}
