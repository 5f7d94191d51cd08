/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSSL's newer functions need memory of their own (access/auth.c). */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "check/check_sums.h"

#include "base/hex.h"

#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(((struct check_sums *)NULL)->state),
               "a sum has room for it");

void
check_sums_begin(struct check_sums *sums)
{
    (void)SHA256_Init((void *)sums->state);
}

void
check_sums_add(struct check_sums *sums, struct slice bytes)
{
    (void)SHA256_Update((void *)sums->state, bytes.data, bytes.len);
}

void
check_sums_end(struct check_sums *sums, const char *name)
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    char digits[2 * SHA256_DIGEST_LENGTH + 1];

    (void)SHA256_Final(sum, (void *)sums->state);
    hex_put_bytes(digits, sum, sizeof(sum));
    buf_printf(&sums->text, "%s  %s\n", digits, name);
}
