/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SipHash by the figures of another implementation, secrets and fingerprints,
 * keyed filters through all that makes filters, and what chosen items do.
 */
#include "core/keyed.h"

#include "../test.h"
#include "help.h"
#include "help_codec.h"

static const uint8_t secret_a[BLOOM_SECRET_BYTES] = "the first secret";
static const uint8_t secret_b[BLOOM_SECRET_BYTES] = "another secret..";

static struct bloom_params
keyed_params(uint64_t capacity, double rate, uint32_t expansion)
{
    struct bloom_params params = params_of(capacity, rate, expansion);

    params.flags = BLOOM_KEYED;
    return params;
}

static struct bloom *
make_keyed(uint64_t capacity, uint64_t items, enum bloom_kind kind)
{
    struct bloom_params params = keyed_params(capacity, 0.01, 2);
    struct bloom *bloom;

    params.kind = kind;
    params.region = kind == BLOOM_DELETABLE ? 2 : 0;
    bloom = make(&params, NULL);
    (void)fill(bloom, NULL, 0, items);
    return bloom;
}

/* ---- SipHash ------------------------------------------------------------- */

/* By OpenSSL: `openssl mac -macopt hexkey:000102...0f -macopt c-rounds:1
 * -macopt d-rounds:3 -macopt size:8 SIPHASH` of the bytes 0, 1, 2, ... */
TEST(siphash_is_that_of_others)
{
    static const struct {
        size_t len;
        uint8_t hash[8];
    } known[] = {
        { 0, { 0xDC, 0xC4, 0x0F, 0x05, 0x58, 0x01, 0xAC, 0xAB } },
        { 1, { 0x93, 0xCA, 0x57, 0x7D, 0xF3, 0x9B, 0xF4, 0xC9 } },
        { 2, { 0x4D, 0xD4, 0xC7, 0x4D, 0x02, 0x9B, 0xCB, 0x82 } },
        { 3, { 0xFB, 0xF7, 0xDD, 0xE7, 0xB8, 0x0A, 0xF8, 0x8B } },
        { 4, { 0x28, 0x83, 0xD3, 0x88, 0x60, 0x57, 0x75, 0xCF } },
        { 5, { 0x67, 0x3B, 0x53, 0x49, 0x2F, 0xD5, 0xF9, 0xDE } },
        { 6, { 0xA7, 0x22, 0x9F, 0xC5, 0x50, 0x2B, 0x0D, 0xC5 } },
        { 7, { 0x40, 0x11, 0xB1, 0x9B, 0x98, 0x7D, 0x92, 0xD3 } },
        { 8, { 0x8E, 0x9A, 0x29, 0x8D, 0x11, 0x95, 0x90, 0x36 } },
        { 9, { 0xE4, 0x3D, 0x06, 0x6C, 0xB3, 0x8E, 0xA4, 0x25 } },
        { 15, { 0x56, 0x99, 0x51, 0x2A, 0x6D, 0xD8, 0x20, 0xD3 } },
        { 16, { 0x66, 0x8B, 0x90, 0x7D, 0x1A, 0xDD, 0x4F, 0xCC } },
        { 17, { 0x0C, 0xD8, 0xDB, 0x63, 0x90, 0x68, 0xF2, 0x9C } },
        { 31, { 0xBC, 0xD1, 0x21, 0x8C, 0x1F, 0xDD, 0x70, 0x23 } },
        { 40, { 0x31, 0x15, 0xE4, 0x99, 0x32, 0x36, 0xD2, 0xC1 } },
    };
    uint8_t bytes[64];
    struct siphash_key key;

    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)i;
    }
    key = (struct siphash_key){ get_u64(bytes), get_u64(bytes + 8) };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_true(siphash_of(key, bytes, known[i].len) ==
                    get_u64(known[i].hash));
    }
}

/* ---- secrets ------------------------------------------------------------- */

/* They are stored, so they never change. The seed is 32 zero bytes. */
TEST(keys_and_fingerprints_are_fixed_for_ever)
{
    static const uint8_t seed[BLOOM_SEED_BYTES];
    uint64_t fingerprint = 1;
    struct siphash_key key;

    assert_false(keyed_fingerprint(&fingerprint));
    bloom_use_secret(secret_a);
    assert_true(keyed_fingerprint(&fingerprint));
    key = keyed_derive(fingerprint, seed);
    assert_true(fingerprint == 0x3693cf37bbe4d093U);
    assert_true(key.k0 == 0x60b7629bbd12ed27U);
    assert_true(key.k1 == 0x9881ee803139e559U);
    bloom_use_secret(NULL);
}

TEST(each_seed_and_each_secret_has_its_key)
{
    uint8_t seed[BLOOM_SEED_BYTES] = { 0 };
    uint64_t one, other;
    struct siphash_key a, b, c;

    bloom_use_secret(secret_a);
    assert_true(keyed_fingerprint(&one));
    a = keyed_derive(one, seed);
    seed[31] = 1;
    b = keyed_derive(one, seed);
    seed[31] = 0;
    bloom_use_secret(secret_b);
    assert_true(keyed_fingerprint(&other));
    c = keyed_derive(other, seed);
    assert_true(one != other);
    assert_true(keyed_is_known(other));
    assert_false(keyed_is_known(one));
    assert_true(a.k0 != b.k0 && a.k1 != b.k1 && a.k0 != c.k0 && a.k1 != c.k1);
    bloom_use_secret(NULL);
    assert_false(keyed_is_known(0));
}

TEST(without_a_secret_no_keyed_filter_is_made)
{
    struct bloom_params params = keyed_params(100, 0.01, 2);
    struct bloom *bloom = NULL;

    assert_int_equal(BLOOM_SECRET, bloom_new(&params, NULL, &bloom));
    assert_null(bloom);
    bloom_use_secret(secret_a);
    params.kind = BLOOM_VALKEYBLOOM;
    assert_int_equal(BLOOM_INVALID, bloom_new(&params, NULL, &bloom));
    bloom_use_secret(NULL);
}

/* ---- filters ------------------------------------------------------------- */

static void
check_life(enum bloom_kind kind)
{
    struct bloom *bloom = make_keyed(200, 1000, kind);
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct bloom *copy;
    uint64_t incarnation;
    struct bytes dump;

    bloom_get_params(bloom, &params);
    assert_int_equal(BLOOM_KEYED, params.flags);
    assert_int_equal(kind, params.kind);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(bloom_contains(bloom, hash_id(bloom, i)));
    }
    assert_int_equal(BLOOM_OK, bloom_copy(bloom, NULL, &copy));
    assert_equal_dumps(bloom, copy);
    assert_null(bloom_difference(bloom, copy));
    bloom_free(copy, NULL);

    dump = dump_of(bloom, 7);
    assert_int_equal(
        BLOOM_OK, codec_load(dump.data, dump.len, NULL, &incarnation, &copy));
    assert_equal_dumps(bloom, copy);
    (void)fill(bloom, NULL, 5000, 2000);
    (void)fill(copy, NULL, 5000, 2000);
    assert_equal_dumps(bloom, copy);
    bloom_reset(copy, NULL);
    assert_int_equal(0, snapshot_of(copy).info.items);
    bloom_free(copy, NULL);
    free(dump.data);
    bloom_free(bloom, NULL);
}

TEST(keyed_filters_grow_are_copied_dumped_and_reset)
{
    bloom_use_secret(secret_a);
    check_life(BLOOM_NATIVE);
    check_life(BLOOM_DELETABLE);
    bloom_use_secret(NULL);
}

TEST(unions_of_keyed_filters_have_all_items_of_both)
{
    struct bloom *one;
    struct bloom *other;
    struct bloom *plain;
    struct bloom_params params = params_of(2000, 0.01, 2);

    bloom_use_secret(secret_a);
    one = make_keyed(2000, 500, BLOOM_NATIVE);
    other = make_keyed(2000, 0, BLOOM_NATIVE);
    (void)fill(other, NULL, 10000, 3000); /* two layers */
    plain = make(&params, NULL);
    assert_string_equal("hashes", bloom_difference(one, plain));
    assert_false(bloom_hashes_alike(one, plain));
    assert_int_equal(
        BLOOM_INVALID,
        bloom_merge(one, NULL, (const struct bloom *const[]){ plain }, 1));
    bloom_reset(one, NULL);
    assert_int_equal(
        BLOOM_OK,
        bloom_merge(one, NULL, (const struct bloom *const[]){ other }, 1));
    for (uint64_t i = 0; i < 3000; i++) {
        assert_true(bloom_contains(one, hash_id(one, 10000 + i)));
    }
    assert_int_equal(snapshot_of(other).info.items,
                     snapshot_of(one).info.items);
    bloom_free(one, NULL);
    bloom_free(other, NULL);
    bloom_free(plain, NULL);
    bloom_use_secret(NULL);
}

TEST(the_size_is_what_was_asked_of_the_allocator)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom_params params = keyed_params(100, 0.01, 2);
    struct bloom *bloom;

    bloom_use_secret(secret_a);
    bloom = make(&params, &env);
    (void)fill(bloom, &env, 0, 3000);
    assert_int_equal(heap.out, snapshot_of(bloom).info.size_bytes);
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
    bloom_use_secret(NULL);
}

TEST(a_dump_is_refused_with_another_secret_or_none)
{
    uint64_t incarnation;
    struct bloom *bloom;
    struct bloom *copy = NULL;
    struct bytes dump;

    bloom_use_secret(secret_a);
    bloom = make_keyed(100, 50, BLOOM_NATIVE);
    dump = dump_of(bloom, 7);
    bloom_free(bloom, NULL);
    bloom_use_secret(secret_b);
    assert_int_equal(BLOOM_SECRET, codec_load(dump.data, dump.len, NULL,
                                              &incarnation, &copy));
    bloom_use_secret(NULL);
    assert_int_equal(BLOOM_SECRET, codec_load(dump.data, dump.len, NULL,
                                              &incarnation, &copy));
    assert_null(copy);
    bloom_use_secret(secret_a);
    assert_int_equal(
        BLOOM_OK, codec_load(dump.data, dump.len, NULL, &incarnation, &copy));
    bloom_free(copy, NULL);
    bloom_use_secret(NULL);
    free(dump.data);
}

static bool
has(const struct bytes *dump, const void *what, size_t len)
{
    for (size_t at = 0; at + len <= dump->len; at++) {
        if (memcmp(dump->data + at, what, len) == 0) {
            return true;
        }
    }
    return false;
}

TEST(a_dump_has_the_fingerprint_and_neither_secret_nor_key)
{
    struct siphash_key key;
    uint64_t fingerprint;
    struct bytes dump;
    struct bloom *bloom;

    bloom_use_secret(secret_a);
    assert_true(keyed_fingerprint(&fingerprint));
    bloom = make_keyed(100, 50, BLOOM_NATIVE);
    key = bloom_keyed_of(bloom)->key;
    dump = dump_of(bloom, 7);
    assert_true(has(&dump, &fingerprint, sizeof(fingerprint)));
    assert_false(has(&dump, secret_a, 8) || has(&dump, secret_a + 8, 8));
    assert_false(has(&dump, &key.k0, 8) || has(&dump, &key.k1, 8));
    free(dump.data);
    bloom_free(bloom, NULL);
    bloom_use_secret(NULL);
}

/* ---- chosen items -------------------------------------------------------- */

enum { CAPACITY = 1000, CHOSEN = 1000, ASKED = 20000 };

/* Adds the bits of an item to WORDS if at least LEAST of its 8 are fresh. */
static bool
choose(const struct bloom *bloom, uint64_t id, int least, uint64_t *words,
       uint64_t lines)
{
    __extension__ typedef unsigned __int128 wide;
    struct bloom_hash hash = hash_id(bloom, id);
    uint64_t line = (uint64_t)(((wide)hash.high * lines) >> 64);
    uint64_t bits[8];
    int fresh = 0;

    for (unsigned i = 0; i < 8; i++) {
        bits[i] = (uint64_t)1 << ((hash.low >> (16 + 6 * i)) & 63);
        fresh += (words[8 * line + i] & bits[i]) == 0;
    }
    for (unsigned i = 0; i < 8 && fresh >= least; i++) {
        words[8 * line + i] |= bits[i];
    }
    return fresh >= least;
}

static double
rate_of(const struct bloom *bloom)
{
    unsigned found = 0;

    for (uint64_t i = 0; i < ASKED; i++) {
        found += bloom_contains(bloom, hash_id(bloom, ((uint64_t)1 << 40) + i));
    }
    return (double)found / ASKED;
}

/* An enemy who knows the seed computes the bits of items, and adds those that
 * set the most fresh ones. */
TEST(chosen_items_raise_the_rate_of_plain_filters_only)
{
    struct bloom_params params = params_of(CAPACITY, 0.01, 0);
    struct bloom *plain = make(&params, NULL);
    uint64_t lines = plain->first.line_count;
    uint64_t *seen = calloc(lines, BLOOM_LINE_BYTES);
    struct bloom *keyed;
    uint64_t id = 0;
    unsigned chosen = 0;
    bool added;

    bloom_use_secret(secret_a);
    params.flags = BLOOM_KEYED;
    keyed = make(&params, NULL);
    assert_non_null(seen);
    assert_int_equal(1, plain->first.stripes);
    for (int least = 8; least >= 0; least--) {
        for (unsigned i = 0; i < 100000 && chosen < CHOSEN; i++, id++) {
            if (choose(plain, id, least, seen, lines)) {
                chosen++;
                (void)bloom_add(plain, NULL, hash_id(plain, id), &added);
                (void)bloom_add(keyed, NULL, hash_id(keyed, id), &added);
            }
        }
    }
    assert_int_equal(CHOSEN, chosen);
    assert_memory_equal(seen, plain->first.lines, lines * BLOOM_LINE_BYTES);
    assert_true(rate_of(plain) > 0.1);
    assert_true(rate_of(keyed) < 0.015);
    free(seen);
    bloom_free(plain, NULL);
    bloom_free(keyed, NULL);
    bloom_use_secret(NULL);
}

/* 8 items cover the bits of a ninth, which was never added. */
TEST(eight_chosen_items_force_an_answer_of_plain_filters_only)
{
    struct bloom_params params = params_of(10, 0.01, 0);
    struct bloom *plain = make(&params, NULL);
    struct bloom_hash target = hash_id(plain, 1);
    struct bloom *keyed;
    bool added;

    bloom_use_secret(secret_a);
    params.flags = BLOOM_KEYED;
    keyed = make(&params, NULL);
    assert_int_equal(1, plain->first.line_count);
    for (unsigned i = 0; i < 8; i++) {
        unsigned at = 16 + 6 * i;
        uint64_t id = 2;

        while (((hash_id(plain, id).low ^ target.low) >> at & 63) != 0) {
            id++;
        }
        (void)bloom_add(plain, NULL, hash_id(plain, id), &added);
        (void)bloom_add(keyed, NULL, hash_id(keyed, id), &added);
    }
    assert_true(bloom_contains(plain, target));
    assert_false(bloom_contains(keyed, hash_id(keyed, 1)));
    bloom_free(plain, NULL);
    bloom_free(keyed, NULL);
    bloom_use_secret(NULL);
}

/* ---- the keyring --------------------------------------------------------- */

static uint8_t *
numbered_secret(unsigned number, uint8_t ret_secret[BLOOM_SECRET_BYTES])
{
    memset(ret_secret, 0xA5, BLOOM_SECRET_BYTES);
    ret_secret[0] = (uint8_t)number;
    ret_secret[1] = (uint8_t)(number >> 8);
    return ret_secret;
}

/* Two secrets with one seed would unite to a filter that misses items. */
TEST(a_filter_keeps_the_secret_of_its_fingerprint)
{
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct bloom *of_a;
    struct bloom *of_b;
    struct bloom *again;
    struct bloom_hash hash;

    bloom_use_secret(secret_a);
    of_a = make_keyed(1000, 500, BLOOM_NATIVE);
    bloom_use_secret(secret_b);
    of_b = make_keyed(1000, 500, BLOOM_NATIVE);
    bloom_get_params(of_a, &params);
    assert_true(params.fingerprint == keyed_fingerprint_of(secret_a));
    assert_string_equal(bloom_difference(of_a, of_b), "hash secrets");
    assert_int_equal(bloom_new(&params, NULL, &again), BLOOM_SECRET);
    assert_int_equal(bloom_add_secret(secret_a), BLOOM_OK);
    assert_int_equal(bloom_new(&params, NULL, &again), BLOOM_OK);
    hash = bloom_hash(again, "item", 4);
    assert_true(hash.high == bloom_hash(of_a, "item", 4).high);
    assert_true(hash.high != bloom_hash(of_b, "item", 4).high);
    assert_null(bloom_difference(of_a, again));
    params.fingerprint = 0;
    bloom_free(again, NULL);
    assert_int_equal(bloom_new(&params, NULL, &again), BLOOM_OK);
    assert_true(bloom_hash(again, "item", 4).high ==
                bloom_hash(of_b, "item", 4).high);
    bloom_free(again, NULL);
    bloom_free(of_a, NULL);
    bloom_free(of_b, NULL);
}

TEST(a_dump_of_another_secret_comes_back_as_it_was)
{
    uint8_t other[BLOOM_SECRET_BYTES];
    uint64_t incarnation;
    struct bloom *bloom;
    struct bloom *again;
    uint8_t *bytes;
    uint64_t len;

    bloom_use_secret(numbered_secret(9999, other));
    bloom = make_keyed(1000, 500, BLOOM_DELETABLE);
    len = codec_dump_bytes(bloom);
    bytes = malloc((size_t)len);
    codec_dump(bloom, 7, bytes);
    bloom_use_secret(secret_a);
    assert_int_equal(codec_load(bytes, (size_t)len, NULL, &incarnation, &again),
                     BLOOM_SECRET);
    assert_int_equal(bloom_add_secret(other), BLOOM_OK);
    assert_int_equal(codec_load(bytes, (size_t)len, NULL, &incarnation, &again),
                     BLOOM_OK);
    assert_true(bloom_hash(again, "x", 1).high ==
                bloom_hash(bloom, "x", 1).high);
    free(bytes);
    bloom_free(bloom, NULL);
    bloom_free(again, NULL);
}

TEST(a_keyring_has_a_bound_and_gives_what_it_has)
{
    uint64_t listed[KEYED_MAX];
    uint8_t secret[BLOOM_SECRET_BYTES];
    uint8_t got[BLOOM_SECRET_BYTES];
    size_t before;

    bloom_use_secret(secret_a);
    before = keyed_list(listed);
    for (unsigned i = 0; keyed_list(listed) < KEYED_MAX; i++) {
        assert_int_equal(bloom_add_secret(numbered_secret(i, secret)),
                         BLOOM_OK);
        assert_int_equal(bloom_add_secret(secret), BLOOM_OK); /* once */
        assert_int_equal(keyed_list(listed), before + i + 1);
        assert_true(keyed_reveal(keyed_fingerprint_of(secret), got));
        assert_memory_equal(got, secret, sizeof(got));
    }
    assert_int_equal(bloom_add_secret(numbered_secret(5000, secret)),
                     BLOOM_LIMIT);
    assert_false(keyed_reveal(keyed_fingerprint_of(secret), got));
    assert_false(keyed_is_held(keyed_fingerprint_of(secret)));
    assert_int_equal(bloom_add_secret(secret_a), BLOOM_OK); /* the own one */
    assert_int_equal(listed[0], keyed_fingerprint_of(secret_a));
}
