/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OpenSSL's deprecated SHA-256 calls allocate nothing; its newer ones crash
 * when memory runs out.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "access/auth.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

_Static_assert((int)AUTH_DIGEST == SHA256_DIGEST_LENGTH, "SHA-256");

_Static_assert(sizeof(SHA256_CTX) <= sizeof(((struct auth_sum *)NULL)->state),
               "a sum has room for it");

bool
auth_sum_add(struct auth_sum *sum, struct slice password, size_t most,
             unsigned char ret_digest[AUTH_DIGEST])
{
    SHA256_CTX *md = (void *)sum->state;
    size_t left = password.len - sum->done;
    size_t len = left < most ? left : most;

    if (!sum->begun) {
        (void)SHA256_Init(md);
        sum->begun = true;
    }
    if (len > 0) {
        (void)SHA256_Update(md, password.data + sum->done, len);
    }
    sum->done += len;
    if (len < left) {
        return false;
    }
    (void)SHA256_Final(ret_digest, md);
    auth_sum_cleanse(sum);
    return true;
}

void
auth_sum_cleanse(struct auth_sum *sum)
{
    OPENSSL_cleanse(sum, sizeof(*sum));
}

void
auth_hash(struct slice password, unsigned char ret_digest[AUTH_DIGEST])
{
    struct auth_sum sum = { 0 };

    (void)auth_sum_add(&sum, password, SIZE_MAX, ret_digest);
}

bool
auth_same(const unsigned char a[AUTH_DIGEST],
          const unsigned char b[AUTH_DIGEST])
{
    return CRYPTO_memcmp(a, b, AUTH_DIGEST) == 0;
}
