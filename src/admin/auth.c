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

static void
sha256(struct slice text, unsigned char ret_digest[SHA256_DIGEST_LENGTH])
{
    SHA256_CTX md;

    (void)SHA256_Init(&md);
    (void)SHA256_Update(&md, text.data, text.len);
    (void)SHA256_Final(ret_digest, &md);
    OPENSSL_cleanse(&md, sizeof(md));
}

static bool
same_secret(struct slice a, struct slice b)
{
    unsigned char digest_a[SHA256_DIGEST_LENGTH];
    unsigned char digest_b[SHA256_DIGEST_LENGTH];
    bool same;

    sha256(a, digest_a);
    sha256(b, digest_b);
    same = CRYPTO_memcmp(digest_a, digest_b, sizeof(digest_a)) == 0;
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

    sha256(slice_of(conf->requirepass), digest);
    hex_put_bytes(ret_hex, digest, sizeof(digest));
}
