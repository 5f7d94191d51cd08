/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Heads of tar archives: what was written is read back, and each change of a
 * byte is refused. test_backup_stream.py has GNU tar read them.
 */
#include "tools/tar.h"

#include "../test.h"

#include <stdio.h>
#include <string.h>

static struct slice
records_of(const char *head, uint64_t bytes)
{
    return (struct slice){ head + TAR_BLOCK, (size_t)bytes };
}

/* Reads back what tar_put wrote, which has records if the head is longer. */
static void
assert_same(const struct tar_entry *entry, bool records)
{
    char head[TAR_HEAD_MAX];
    struct tar_entry got = { 0 };
    size_t len = tar_put(entry, 1790000000, head);
    uint64_t bytes = 0;

    assert_true(len % TAR_BLOCK == 0 && (len > TAR_BLOCK) == records);
    if (records) {
        assert_int_equal(TAR_RECORDS, tar_get(head, &got));
        bytes = got.bytes;
    }
    assert_int_equal(TAR_ENTRY, tar_get(head + len - TAR_BLOCK, &got));
    assert_true(tar_get_records(records_of(head, bytes), &got));
    assert_string_equal(entry->name, got.name);
    assert_int_equal(entry->dir, got.dir);
    assert_int_equal(entry->bytes, got.bytes);
}

TEST(heads_are_read_back)
{
    static const size_t lens[] = { 1, 80, 99, 100, 101, 495, TAR_NAME_MAX - 1 };
    static const uint64_t sizes[] = {
        0, 1, 511, UINT64_C(1) << 33, (UINT64_C(1) << 33) - 1, INT64_MAX
    };

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct tar_entry entry = { .dir = true };

        memset(entry.name, 'n', lens[i]);
        assert_same(&entry, lens[i] > 99);
        entry.dir = false;
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            entry.bytes = sizes[k];
            assert_same(&entry, lens[i] > 100 || sizes[k] >= UINT64_C(1) << 33);
        }
    }
}

TEST(each_changed_bit_of_a_head_is_foreign)
{
    struct tar_entry entry = { .name = "journal/incr-1", .bytes = 700 };
    char head[TAR_HEAD_MAX];

    assert_int_equal(TAR_BLOCK, tar_put(&entry, 1790000000, head));
    for (unsigned bit = 0; bit < TAR_BLOCK * 8; bit++) {
        struct tar_entry got;

        head[bit / 8] = (char)(head[bit / 8] ^ (1 << bit % 8));
        assert_int_equal(TAR_FOREIGN, tar_get(head, &got));
        head[bit / 8] = (char)(head[bit / 8] ^ (1 << bit % 8));
    }
    memset(head, 0, TAR_BLOCK);
    assert_int_equal(TAR_ZEROS, tar_get(head, &entry));
}

TEST(foreign_records_are_refused)
{
    static const char *const cases[] = {
        "x",
        "9 size=1",     /* no line feed */
        "99 size=12\n", /* longer than there is */
        "0 size=1\n",   /* too short for itself */
        "-1 size=1\n",
        "9 size=1\nx", /* something behind it */
        "10 size=-1\n",
        "30 size=99999999999999999999\n",
        "9 path=\n",    /* no name */
        "10 mtime=1\n", /* not ours */
        "9 =size1\n",   /* no key */
        "8 size1\n",    /* no value */
        "18446744073709551615 a=b\n",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tar_entry entry = { .name = "a" };

        assert_false(tar_get_records(slice_of(cases[i]), &entry));
    }
    struct tar_entry dir = { .name = "a", .dir = true };

    assert_false(tar_get_records(slice_of("9 size=1\n"), &dir));
}
