/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole RDBs with hostile bytes: each cut and each changed byte of a small file
 * ends the reader inside of it, with a reason. tests/scenario/test_load_rdb.py
 * reads files of a real server.
 */
#include "tools/rdb.h"

#include "../core/help_foreign.h"
#include "../test.h"
#include "base/little.h"
#include "core/crc64.h"

#include <bloomery/bloom.h>

#include <stdlib.h>
#include <string.h>

struct play {
    const uint8_t *data;
    size_t left;
    unsigned filters;
    unsigned stop_at; /* the filter at which the visitor stops; 0: none */
};

static bool
next(void *ctx, struct slice *ret_bytes)
{
    struct play *play = ctx;

    *ret_bytes = (struct slice){ (const char *)play->data, play->left };
    play->left = 0;
    return ret_bytes->len > 0;
}

static bool
on_filter(void *ctx, const struct rdb_filter *filter)
{
    struct play *play = ctx;

    assert_true(filter->key.len > 0 && filter->offset > 0);
    return ++play->filters != play->stop_at;
}

static struct rdb_result
read_all(const uint8_t *data, size_t len, struct play *play)
{
    uint8_t *copy = malloc(len + 1); /* for the sanitizer's sake */
    const struct rdb_source source = { next, play };
    const struct rdb_visitor visitor = { on_filter, play, 1000 };
    struct rdb_result result;
    bool ok;

    assert_non_null(copy);
    memcpy(copy, data, len);
    play->data = copy;
    play->left = len;
    play->filters = 0;
    ok = rdb_read(&source, &visitor, &result);
    assert_int_equal(ok, result.status == RDB_OK);
    assert_int_equal(ok, result.why[0] == '\0');
    assert_true(result.offset <= len);
    free(copy);
    return result;
}

/* A string, a list, a hash, and a filter with a time to live in database 3. */
static const char body[] = "REDIS0010\xfa\x09redis-ver\x06"
                           "7.0.15\xfe\x03\xfb\x04\x01\x00\x01s\x02vv"
                           "\x01\x01l\x02\x01"
                           "a\x01"
                           "b\x04\x01h\x01\x01"
                           "f\xc0\x07"
                           "\xfc\x00\x10\x20\x30\x40\x50\x00\x00\x07\x01k\x81"
                           "\x30\x16\xe5\xa2\x89\xbe\xf8\x04\x02\x05\x05\x02"
                           "xy\x04"
                           "01234567\x03"
                           "0123\x01\x06\x00\xff";

enum { BODY = sizeof(body) - 1, WHOLE = BODY + 8 };

static void
make(uint8_t ret_file[WHOLE])
{
    memcpy(ret_file, body, BODY);
    put_u64(ret_file + BODY, crc64(0, body, BODY));
}

TEST(a_small_file_is_read)
{
    struct play play = { .stop_at = 0 };
    uint8_t file[WHOLE];
    struct rdb_result result;

    make(file);
    result = read_all(file, WHOLE, &play);
    assert_int_equal(RDB_OK, result.status);
    assert_int_equal(WHOLE, result.offset);
    assert_true(result.checked);
    assert_int_equal(10, result.version);
    assert_string_equal("redis 7.0.15", result.product);
    assert_int_equal(1, result.filters);
    assert_int_equal(1, play.filters);
    assert_int_equal(1, result.skipped[RDB_STRINGS]);
    assert_int_equal(1, result.skipped[RDB_LISTS]);
    assert_int_equal(1, result.skipped[RDB_HASHES]);
}

TEST(each_cut_is_noticed)
{
    struct play play = { .stop_at = 0 };
    uint8_t file[WHOLE];

    make(file);
    for (size_t len = 0; len < WHOLE; len++) {
        struct rdb_result result = read_all(file, len, &play);

        assert_int_equal(RDB_CUT, result.status);
        assert_int_equal(len, result.offset);
    }
}

TEST(each_changed_byte_is_noticed)
{
    struct play play = { .stop_at = 0 };
    uint8_t file[WHOLE];

    make(file);
    for (size_t at = 0; at < WHOLE; at++) {
        for (unsigned value = 0; value < 256; value++) {
            uint8_t was = file[at];

            if (value == was) {
                continue;
            }
            file[at] = (uint8_t)value;
            (void)read_all(file, WHOLE, &play);
            file[at] = was;
        }
    }
    file[20] ^= 1; /* in a text: only the checksum tells */
    assert_int_equal(RDB_DAMAGED, read_all(file, WHOLE, &play).status);
}

TEST(an_unknown_type_is_named_with_its_place)
{
    struct play play = { .stop_at = 0 };
    static const struct {
        uint8_t type;
        const char *why;
    } cases[] = { { 6, "type 6" },
                  { 8, "type 8" },
                  { 99, "type 99" },
                  { 239, "239" },
                  { 246, "operation 246" } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t file[] = "REDIS0012\xfe\x00T\x01kv";
        struct rdb_result result;

        file[11] = cases[i].type;
        result = read_all(file, sizeof(file) - 1, &play);
        assert_int_equal(RDB_UNKNOWN, result.status);
        assert_int_equal(11, result.offset);
        assert_non_null(strstr(result.why, cases[i].why));
    }
}

TEST(a_visitor_can_stop)
{
    struct play play = { .stop_at = 1 };
    uint8_t file[WHOLE];

    make(file);
    assert_int_equal(RDB_STOPPED, read_all(file, WHOLE, &play).status);
    assert_int_equal(1, play.filters);
}

TEST(payloads_of_filters_are_known)
{
    assert_true(rdb_payload_is_filter(
        slice_lit("\x07\x81\x30\x16\xe5\xa2\x89\xbe\xf8\x04")));
    assert_true(rdb_payload_is_filter(
        slice_lit("\x07\x81\x6e\x5a\x28\x99\xf9\x6d\xac\x01")));
    assert_false(rdb_payload_is_filter(
        slice_lit("\x07\x81\x30\x16\xe5\xa2\x89\xbe\xf8")));
    assert_false(rdb_payload_is_filter(
        slice_lit("\x00\x81\x30\x16\xe5\xa2\x89\xbe\xf8\x04")));
    assert_false(rdb_payload_is_filter(
        slice_lit("\x07\x81\x31\x16\xe5\xa2\x89\xbe\xf8\x04")));
}

/* A RESTORE takes it: the checksum holds. */
TEST(the_footer_makes_a_value_a_payload)
{
    static const char digits[] = SMALL_PAYLOAD;
    struct hex payload = from_hex(digits);
    struct slice value = { (const char *)payload.data,
                           payload.len - RDB_FOOTER_BYTES };
    struct bloom *bloom = NULL;

    memset(payload.data + value.len, 0, RDB_FOOTER_BYTES);
    rdb_put_footer(value, RDB_MODULE_REDISBLOOM, payload.data + value.len);
    assert_int_equal(BLOOM_OK,
                     bloom_load(payload.data, payload.len, NULL, &bloom));
    bloom_free(bloom, NULL);
    free(payload.data);
}

TEST(each_kind_has_a_name)
{
    for (int kind = 0; kind < RDB_KIND_COUNT; kind++) {
        const char *name = rdb_kind_name((enum rdb_kind)kind);

        assert_non_null(name);
        for (int other = 0; other < kind; other++) {
            assert_string_not_equal(name, rdb_kind_name((enum rdb_kind)other));
        }
    }
}
