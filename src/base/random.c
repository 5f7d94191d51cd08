/* SPDX-License-Identifier: BSD-3-Clause
 *
 * getrandom(2), and Marsaglia's xorshift64 ("Xorshift RNGs", Journal of
 * Statistical Software 8, 2003) behind random_below.
 */
#include "base/random.h"

#include "base/err.h"

#include <errno.h>
#include <sys/random.h>

enum { BUFFERED = 4096 / sizeof(uint64_t) };

void
random_bytes(void *ret_bytes, size_t len)
{
    char *to = ret_bytes;

    while (len > 0) {
        ssize_t n = getrandom(to, len, 0);

        if (n < 0) {
            CHECK(errno == EINTR);
            continue;
        }
        to += n;
        len -= (size_t)n;
    }
}

uint64_t
random_number(void)
{
    static _Thread_local uint64_t numbers[BUFFERED];
    static _Thread_local size_t left;
    uint64_t number;

    if (left == 0) {
        random_bytes(numbers, sizeof(numbers));
        left = BUFFERED;
    }
    number = numbers[--left];
    numbers[left] = 0;
    return number;
}

void
random_hex(char *ret_text, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    random_bytes(ret_text, len);
    for (size_t i = 0; i < len; i++) {
        ret_text[i] = digits[(unsigned char)ret_text[i] & 15];
    }
    ret_text[len] = '\0';
}

__extension__ typedef unsigned __int128 wide;

uint64_t
random_below(uint64_t bound)
{
    static _Thread_local uint64_t state;
    uint64_t x = state;

    while (x == 0) {
        random_bytes(&x, sizeof(x));
    }
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state = x;
    return (uint64_t)(((wide)x * bound) >> 64);
}
