/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small filters that several threads make; what one thread does is for
 * test_snapshot_read.c.
 */
#include "snapshot_help.h"

#include "snapshot/insert.h"
#include "snapshot/snapshot_format.h"

enum { KEYS = 20000, THREADS = 4, DATABASES = 3 };

static struct bytes
many_keys(struct keyspace *ks)
{
    static const struct bloom_params small = PARAMS(100, 0.01, 0.5, 2);
    struct test_key key;

    for (unsigned i = 0; i < KEYS; i++) {
        put_filter(ks, test_key_set(&key, i % DATABASES, i),
                   make_filter(&small, 1 + i % 5), i + 1,
                   i % 7 == 0 ? 1000 + i : 0);
    }
    return snapshot_of_keyspace(ks);
}

static enum snapshot_status
load_by(struct bytes content, struct snapshot_visitor visitor,
        const struct bloom_env *env, struct snapshot_error *ret_error)
{
    int fd = memory_file(content);
    enum snapshot_status status =
        snapshot_read(fd, env, &visitor, NULL, ret_error);

    (void)close(fd);
    return status;
}

TEST(threads_together_make_the_keys_that_one_makes)
{
    struct keyspace *ks = test_keyspace(1);
    struct bytes content = many_keys(ks);
    const struct bloom_env env = test_env();

    for (unsigned threads = 1; threads <= THREADS; threads++) {
        struct keyspace *loaded = test_keyspace(threads);
        struct insert insert = { .keyspace = loaded,
                                 .env = &env,
                                 .threads = threads };
        struct snapshot_error error = { 0 };

        assert_int_equal(
            load_by(content, insert_visitor(&insert), &env, &error),
            SNAPSHOT_OK);
        assert_true(insert.ended);
        assert_int_equal(count_all(loaded), KEYS);
        assert_same_keyspaces(ks, loaded);
        keyspace_free(loaded);
    }
    free(content.data);
    keyspace_free(ks);
    assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
}

/* Refuses some keys, all the same ones at any time. */
struct picky {
    const struct bloom_env *env;
    unsigned shown;
};

static bool
refuse_some(void *ctx, const struct snapshot_record *record,
            struct bloom *bloom)
{
    struct picky *picky = ctx;

    bloom_fini(bloom, picky->env);
    picky->shown++;
    return record->incarnation % 1000 != 999;
}

TEST(the_first_failure_in_the_file_is_the_one_that_is_told)
{
    struct keyspace *ks = test_keyspace(1);
    struct bytes content = many_keys(ks);
    const struct bloom_env env = test_env();
    struct snapshot_error first = { 0 };

    for (unsigned threads = 1; threads <= THREADS; threads++) {
        struct picky picky = { .env = &env };
        struct snapshot_visitor visitor = { .filter = refuse_some,
                                            .threads = threads,
                                            .ctx = &picky };
        struct snapshot_error error = { 0 };

        assert_int_equal(load_by(content, visitor, &env, &error),
                         SNAPSHOT_STOPPED);
        if (threads == 1) {
            first = error;
        }
        assert_int_equal(picky.shown, error.record + 1);
        assert_int_equal(error.offset, first.offset);
        assert_int_equal(error.record, first.record);
        assert_string_equal(error.text, first.text);
    }
    free(content.data);
    keyspace_free(ks);
}

static bool
count_all_shown(void *ctx, const struct snapshot_record *record,
                struct bloom *bloom)
{
    struct picky *picky = ctx;

    (void)record;
    bloom_fini(bloom, picky->env);
    picky->shown++;
    return true;
}

/* Returns where section NTH begins. */
static size_t
section_at(struct bytes content, unsigned nth)
{
    size_t at = HEADER_BYTES;

    while (nth-- > 0) {
        at +=
            SECTION_FRAME_BYTES + get_u64(content.data + at + SECTION_AT_BYTES);
    }
    assert_int_equal(get_u16(content.data + at + SECTION_AT_TYPE),
                     SECTION_RECORDS);
    return at;
}

/* Changes the database of a record behind the middle of a section, whose hash
 * holds again afterwards. */
static void
spoil_record(struct bytes content, unsigned nth)
{
    size_t at = section_at(content, nth);
    uint64_t key = get_u64(content.data + HEADER_AT_FILE_KEY);
    uint8_t *payload = content.data + at + SECTION_HEAD_BYTES;
    uint64_t bytes = get_u64(content.data + at + SECTION_AT_BYTES);
    size_t record = 0;

    while (record < bytes / 2) {
        record += RECORD_HEAD_BYTES +
                  get_u32(payload + record + RECORD_AT_NAME_BYTES) +
                  get_u64(payload + record + RECORD_AT_FORM_BYTES);
    }
    put_u32(payload + record + RECORD_AT_DB, UINT32_MAX);
    put_u64(payload + bytes,
            XXH3_64bits_withSeed(payload, bytes,
                                 section_seed(content.data + at, key)));
}

/* A section is read before the filters of the one before it are made. */
TEST(of_two_wrong_sections_the_first_is_told)
{
    const struct bloom_env env = test_env();

    for (unsigned wrong = 1; wrong < 4; wrong++) {
        struct keyspace *ks = test_keyspace(1);
        struct bytes content = many_keys(ks);
        struct snapshot_error first = { 0 };
        unsigned shown = 0;

        if ((wrong & 1) != 0) {
            spoil_record(content, 1);
        }
        if ((wrong & 2) != 0) {
            content.data[section_at(content, 2) + SECTION_FRAME_BYTES] ^= 1;
        }
        for (unsigned threads = 1; threads <= THREADS; threads++) {
            struct picky picky = { .env = &env };
            struct snapshot_visitor visitor = { .filter = count_all_shown,
                                                .threads = threads,
                                                .ctx = &picky };
            struct snapshot_error error = { 0 };

            assert_int_equal(load_by(content, visitor, &env, &error),
                             SNAPSHOT_DAMAGED);
            if (threads == 1) {
                first = error;
                shown = picky.shown;
                assert_true(shown > 0 && shown < KEYS);
            }
            assert_int_equal(picky.shown, shown);
            assert_int_equal(error.offset, first.offset);
            assert_int_equal(error.record, first.record);
            assert_string_equal(error.text, first.text);
        }
        free(content.data);
        keyspace_free(ks);
    }
    assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
}
