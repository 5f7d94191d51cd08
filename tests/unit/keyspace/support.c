/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

uint64_t
random_of(uint64_t salt)
{
    return test_seed() ^ (salt * 0x9E3779B97F4A7C15U);
}

const struct key *
test_key_set(struct test_key *key, uint32_t db, uint64_t number)
{
    int len = snprintf(key->name, sizeof(key->name), "key:%06llu",
                       (unsigned long long)number);

    key->key = key_named((struct slice){ key->name, (size_t)len }, db);
    return &key->key;
}

uint64_t
number_of(const struct entry *entry)
{
    char name[NAME_MAX_BYTES] = "";
    unsigned long long number = 0;

    assert_true(entry_name(entry).len < sizeof(name));
    memcpy(name, entry_name(entry).data, entry_name(entry).len);
    assert_int_equal(sscanf(name, "key:%llu", &number), 1);
    return number;
}

struct bloom_env
test_env(void)
{
    static const struct keyspace_memory unlimited;

    return keyspace_env(&unlimited, UINT64_MAX);
}

struct bloom *
test_bloom(uint64_t capacity)
{
    const struct bloom_params params = { .struct_size = sizeof(params),
                                         .capacity = capacity,
                                         .error_rate = 0.01,
                                         .tightening = 0.5,
                                         .expansion = 2 };
    const struct bloom_env env = test_env();
    struct bloom *bloom = NULL;
    enum bloom_status status = bloom_new(&params, &env, &bloom);

    assert_true(status == BLOOM_OK || status == BLOOM_NOMEM);
    return bloom;
}

const void *
test_lines(const struct bloom *bloom)
{
    size_t bytes;

    return bloom_layer_lines(bloom, 0, &bytes);
}

void
test_bloom_free(struct bloom *bloom)
{
    const struct bloom_env env = test_env();

    bloom_free(bloom, &env);
}

struct keyspace *
test_keyspace(unsigned threads)
{
    return keyspace_new(
        &(struct keyspace_options){ .threads = threads, .databases = 16 });
}

struct entry *
test_put_sized(struct keyspace *ks, const struct key *key, uint64_t capacity)
{
    struct bloom *bloom = test_bloom(capacity);
    struct entry *entry = NULL;

    assert_non_null(bloom);
    /* Two names never have one incarnation. */
    assert_int_equal(keyspace_insert(ks, key, bloom, key->hash, &entry), OK);
    return entry;
}

struct entry *
test_put(struct keyspace *ks, const struct key *key)
{
    return test_put_sized(ks, key, 100);
}

uint64_t
test_count(const struct keyspace *ks, uint32_t db)
{
    uint64_t keys;
    uint64_t expires;

    keyspace_count(ks, db, &keys, &expires);
    return keys;
}

uint64_t
test_expires(const struct keyspace *ks, uint32_t db)
{
    uint64_t keys;
    uint64_t expires;

    keyspace_count(ks, db, &keys, &expires);
    return expires;
}

void
test_reclaim_all(struct keyspace *ks, uint64_t now_ms)
{
    while (keyspace_reclaim(ks, 0, now_ms, 1000)) {
    }
}
