/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters of a lost secret are removed, and no others.
 */
#include "snapshot/left_out.h"

#include "../test.h"
#include "core/bloom.h"
#include "core/keyed.h"
#include "keyspace/keyspace.h"
#include "keyspace/memory.h"
#include "snapshot_help.h"

static const uint8_t lost[BLOOM_SECRET_BYTES] = { 1 };
static const uint8_t other[BLOOM_SECRET_BYTES] = { 2 };

static void
put(struct keyspace *ks, const char *name, uint32_t db, uint64_t fingerprint)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 100,
                                   .error_rate = 0.01,
                                   .expansion = 2,
                                   .tightening = 0.5 };
    static const struct keyspace_memory unlimited = { 0 };
    struct bloom_env env = keyspace_env(&unlimited, UINT64_MAX);
    struct key key = key_named(slice_of(name), db);
    struct entry *entry;

    params.flags = fingerprint != 0 ? BLOOM_KEYED : 0;
    params.fingerprint = fingerprint;
    assert_int_equal(BLOOM_OK,
                     keyspace_create(ks, &key, &params, &env, 1, &entry));
}

TEST(left_out_removes_the_filters_of_a_lost_secret_only)
{
    struct keyspace *ks = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 4 });
    uint64_t gone = keyed_fingerprint_of(lost);
    uint64_t held = keyed_fingerprint_of(other);
    uint64_t count = 0;
    uint64_t found = 0;

    bloom_use_secret(other);
    assert_false(left_out_begin(held));
    assert_true(left_out_begin(gone));
    put(ks, "plain", 0, 0);
    put(ks, "held", 0, held);
    put(ks, "gone", 0, gone);
    put(ks, "gone", 3, gone);
    left_out_end();
    assert_false(left_out_remove(ks, gone + 1, &count, &found));
    assert_true(found == gone && count == 0);
    assert_int_equal(4, keyspace_count_keys(ks));
    assert_true(left_out_remove(ks, gone, &count, &found));
    assert_int_equal(2, count);
    assert_int_equal(2, keyspace_count_keys(ks));
    assert_true(left_out_remove(ks, 0, &count, &found));
    assert_int_equal(0, count);
    bloom_use_secret(NULL);
    assert_true(left_out_remove(ks, 0, &count, &found));
    assert_int_equal(1, count);
    keyspace_free(ks);
}
