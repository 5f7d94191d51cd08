/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OpenSSL's deprecated SHA-256 calls allocate nothing; its newer ones crash
 * when memory runs out.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "admin/auth.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

_Static_assert((int)AUTH_DIGEST == SHA256_DIGEST_LENGTH, "SHA-256");

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
