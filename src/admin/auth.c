/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each attempt computes both digests anew. That slows down guessing, and CONFIG
 * SET requirepass has no stored digest to update.
 */
/* OpenSSL's deprecated SHA-256 calls allocate nothing; its newer ones crash
 * when memory runs out. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "admin/auth.h"

#include "base/hex.h"
#include "base/metrics.h"
#include "conf/conf.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>

bool
auth_required(const struct conf *conf)
{
    return conf->requirepass[0] != '\0';
}

void
auth_hash(struct slice password, unsigned char ret_digest[AUTH_DIGEST])
{
    SHA256_CTX md;

    (void)SHA256_Init(&md);
    (void)SHA256_Update(&md, password.data, password.len);
    (void)SHA256_Final(ret_digest, &md);
    OPENSSL_cleanse(&md, sizeof(md));
}

bool
auth_same(const unsigned char a[AUTH_DIGEST],
          const unsigned char b[AUTH_DIGEST])
{
    return CRYPTO_memcmp(a, b, AUTH_DIGEST) == 0;
}

static bool
same_secret(struct slice a, struct slice b)
{
    unsigned char digest_a[SHA256_DIGEST_LENGTH];
    unsigned char digest_b[SHA256_DIGEST_LENGTH];
    bool same;

    auth_hash(a, digest_a);
    auth_hash(b, digest_b);
    same = auth_same(digest_a, digest_b);
    OPENSSL_cleanse(digest_a, sizeof(digest_a));
    OPENSSL_cleanse(digest_b, sizeof(digest_b));
    return same;
}

bool
auth_check(const struct conf *conf, struct slice user, struct slice password)
{
    /* Compare the password of an unknown user too, so that the time does not
     * show whether the user exists. */
    bool known = slice_equal(user, slice_lit("default"));
    bool fits = same_secret(password, slice_of(conf->requirepass));
    bool allowed = known && (fits || !auth_required(conf));

    if (!allowed) {
        metric_add(METRIC_AUTH_FAILURES, 1);
    }
    return allowed;
}

void
auth_digest(const struct conf *conf, char ret_hex[AUTH_DIGEST_HEX])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];

    auth_hash(slice_of(conf->requirepass), digest);
    hex_put_bytes(ret_hex, digest, sizeof(digest));
}
