/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Heads of every kind that can be keyed hold, keyed or not; test_codec_head.c
 * tests the fields one by one.
 */
#include "core/codec_head.h"

#include "../test.h"
#include "help.h"

static const uint8_t secret[BLOOM_SECRET_BYTES] = "a secret of it..";

static struct bloom *
make_kind(enum bloom_kind kind, bool keyed)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom;

    params.kind = kind;
    params.flags = keyed ? BLOOM_KEYED : 0;
    params.region = kind == BLOOM_DELETABLE ? 2 : 0;
    if (kind == BLOOM_AGEING) {
        params.seconds = 3600;
        params.generations = 4;
        params.now_ms = 1700000000000U;
    }
    bloom = make(&params, NULL);
    (void)fill(bloom, NULL, 0, 500);
    return bloom;
}

static void
check_kind(enum bloom_kind kind, bool keyed)
{
    uint8_t *bytes = malloc(CODEC_HEAD_BYTES_MAX);
    struct bloom *bloom = make_kind(kind, keyed);
    struct codec_head head;
    size_t len;

    assert_non_null(bytes);
    len = codec_put_head(bloom, 7, bytes);
    assert_int_equal(codec_head_bytes(bloom), len);
    assert_int_equal(BLOOM_CORRUPT, codec_read_head(bytes, len - 1, &head));
    assert_int_equal(BLOOM_OK, codec_read_head(bytes, len, &head));
    assert_int_equal(keyed ? BLOOM_KEYED : 0, head.params.flags);
    assert_int_equal(BLOOM_OK, codec_check_head(&head));
    head.params.tightening = 0;
    assert_int_equal(BLOOM_CORRUPT, codec_check_head(&head));
    bytes[7] ^= 0x40; /* then the fingerprint is missing, or is not one */
    if (codec_read_head(bytes, len, &head) == BLOOM_OK) {
        assert_int_equal(keyed ? len - 8 : len + 8, head.head_bytes);
    }
    bloom_free(bloom, NULL);
    free(bytes);
}

TEST(heads_of_all_kinds_hold_keyed_or_not)
{
    static const enum bloom_kind kinds[] = { BLOOM_NATIVE, BLOOM_DELETABLE,
                                             BLOOM_AGEING };

    bloom_use_secret(secret);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        check_kind(kinds[i], false);
        check_kind(kinds[i], true);
    }
    bloom_use_secret(NULL);
}
