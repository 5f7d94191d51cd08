/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frame by itself; what is in it has its tests in test_snapshot_read.c.
 */
#include "snapshot_help.h"

#include "persist/section.h"

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
    const struct bloom_params params = { 10, 0.01, 0.5, 2, 0, 0, { 0 } };
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
