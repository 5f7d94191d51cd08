/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is recovered from a damaged snapshot: all keys whose sections are
 * intact, and a report of the damage. (The code is in snapshot_read.c.)
 */
#include "snapshot_help.h"

#include <errno.h>

/* Many small sections, large filters between them. */
static struct keyspace *
long_keyspace(void)
{
    const struct bloom_params small = PARAMS(80000, 0.01, 0.5, 0);
    const struct bloom_params large = PARAMS(150000, 0.01, 0.5, 2);
    struct keyspace *ks = test_keyspace(1);

    for (uint64_t i = 0; i < 60; i++) {
        struct test_key key;

        put_filter(ks, test_key_set(&key, 0, i),
                   make_filter(i % 20 == 0 ? &large : &small, 8000), i, 0);
    }
    return ks;
}

/* Keys in sections outside of [from, to), which must be recovered. A large
 * filter counts if none of its sections is touched. */
static uint64_t
keys_outside(struct bytes content, size_t from, size_t to)
{
    size_t at = HEADER_BYTES;
    bool large_open = false;
    uint64_t keys = 0;

    while (at < content.len) {
        size_t next = at + section_bytes(content, at);
        bool intact = next <= from || at >= to;
        const uint8_t *record = content.data + at + SECTION_HEAD_BYTES;
        uint16_t type = get_u16(content.data + at + SECTION_AT_TYPE);

        if (type != SECTION_LINES) {
            keys += large_open;
            large_open = false;
        }
        if (type == SECTION_LARGE) {
            large_open = intact;
        } else if (type == SECTION_LINES) {
            large_open = large_open && intact;
        } else if (type == SECTION_RECORDS && intact) {
            while (record < content.data + next - SECTION_HASH_BYTES) {
                record += RECORD_HEAD_BYTES +
                          get_u32(record + RECORD_AT_NAME_BYTES) +
                          get_u64(record + RECORD_AT_FORM_BYTES);
                keys++;
            }
        }
        at = next;
    }
    return keys;
}

static void
check_salvage(struct keyspace *ks, struct bytes content, size_t from, size_t to)
{
    struct loading loading = { .ks = test_keyspace(1) };
    uint64_t keys = keys_outside(content, from, to);
    struct bytes changed = { mem_alloc(content.len), content.len };

    memcpy(changed.data, content.data, content.len);
    for (size_t at = from; at < to; at++) {
        changed.data[at] ^= 0x55;
    }
    assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, changed, true));
    assert_int_equal(keys, loading.shown);
    assert_true(keyspace_each(loading.ks, is_in_other, ks));
    assert_int_equal(1, loading.stretch_count);
    assert_true(loading.stretches[0].from <= from);
    assert_true(loading.stretches[0].to >= to);
    assert_int_equal(SNAPSHOT_DAMAGED, loading.stretches[0].error.status);
    keyspace_free(loading.ks);
    mem_free(changed.data);
}

TEST(all_that_is_intact_is_salvaged)
{
    struct keyspace *ks = long_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);
    uint64_t random = test_seed() + 3;

    for (unsigned round = 0; round < 60 * test_rounds(); round++) {
        size_t from = test_random_below(&random, content.len);
        size_t most = round % 2 == 0 ? 1 : 3000000;
        size_t len = 1 + test_random_below(&random, most);

        len = len < content.len - from ? len : content.len - from;
        check_salvage(ks, content, from, from + len);
    }
    keyspace_free(ks);
    mem_free(content.data);
}

/* The key by which sections are known stands at both ends. */
TEST(a_snapshot_without_its_header_or_its_end_is_salvaged)
{
    struct keyspace *ks = long_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);
    size_t end = content.len - SECTION_FRAME_BYTES - END_BYTES;

    check_salvage(ks, content, 0, HEADER_BYTES);
    check_salvage(ks, content, 0, 2000000);
    check_salvage(ks, content, HEADER_AT_FILE_KEY, HEADER_AT_FILE_KEY + 1);
    check_salvage(ks, content, end, content.len);
    keyspace_free(ks);
    mem_free(content.data);
}

TEST(a_cut_snapshot_is_salvaged_up_to_the_cut)
{
    struct keyspace *ks = long_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);
    struct bytes part = content;
    uint64_t random = test_seed() + 4;
    unsigned sections = 0;

    for (part.len = HEADER_BYTES; part.len < content.len; sections++) {
        size_t next = part.len + section_bytes(content, part.len);
        size_t lens[] = { part.len, part.len + test_random_below(
                                                   &random, next - part.len) };

        for (size_t i = 0; i < 2; i++) {
            struct loading loading = { .ks = test_keyspace(1) };

            part.len = lens[i];
            assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, part, true));
            assert_int_equal(keys_outside(content, part.len, content.len),
                             loading.shown);
            assert_int_equal(1, loading.stretch_count);
            assert_int_equal(part.len, loading.stretches[0].to);
            keyspace_free(loading.ks);
        }
        part.len = next;
    }
    assert_true(sections > 5);
    keyspace_free(ks);
    mem_free(content.data);
}

TEST(what_is_no_snapshot_is_not_salvaged)
{
    uint64_t random = test_seed() + 5;
    struct bytes content = { mem_alloc(300000), 300000 };

    fill_random(&random, content.data, content.len);
    for (size_t at = 0; at + 100 < content.len; at += 5000) {
        memcpy(content.data + at, SNAPSHOT_SECTION_MAGIC, 4);
    }
    for (; content.len > 0; content.len /= 3) {
        struct loading loading = { 0 };

        assert_int_equal(SNAPSHOT_DAMAGED, load_bytes(&loading, content, true));
        assert_int_equal(0, loading.shown);
        assert_int_equal(0, loading.stretch_count);
    }
    mem_free(content.data);
}

/* A disk that fails for a while is damage like any other. */
TEST(unreadable_parts_are_passed_over)
{
    struct keyspace *ks = long_keyspace();
    struct bytes content = snapshot_of_keyspace(ks);
    bool fired = true;

    for (unsigned nth = 2; fired; nth++) {
        struct loading loading = { .ks = test_keyspace(1) };
        int fd = memory_file(content);

        file_fail_at(FILE_CALL_READ, nth, EIO, false);
        assert_int_equal(SNAPSHOT_OK, load_fd(&loading, fd, true));
        fired = file_fail_clear();
        assert_int_equal(fired ? 1 : 0, loading.stretch_count);
        assert_true(!fired || loading.stretches[0].error.error == EIO);
        assert_true(keyspace_each(loading.ks, is_in_other, ks));
        keyspace_free(loading.ks);
        file_close(fd);
        nth += 5;
    }
    keyspace_free(ks);
    mem_free(content.data);
}
