/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hot path of the server. Every argument takes at least the 6 bytes of
 * "$0\r\n\r\n": checking for those once lets the usual one and two digit
 * lengths be read, as 32-bit words, without further range checks, and bounds
 * the number of slots that a large count may ask for by the bytes that are
 * there.
 */
#include "proto/scan.h"

enum {
    ARGUMENT_MIN = 6, /* $0 CRLF CRLF */
    COMMAND_MIN = 10, /* *1 CRLF and one argument */
    DIGITS_MAX = 10,  /* cannot overflow */
    SHORT_MAX = 99    /* of two digits */
};

/* A number and the place behind its CRLF, NULL where there was none. */
struct number {
    const char *next;
    size_t value;
};

/* Four bytes, the first one lowest; compilers make one load of it. */
static inline uint32_t
word_at(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;

    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 |
           (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

static inline bool
is_crlf(const char *at)
{
    return memcmp(at, "\r\n", 2) == 0;
}

static inline unsigned
digit_of(char c)
{
    return (unsigned)(unsigned char)c - (unsigned)'0';
}

/* Any canonical number and its CRLF; 0 is never seen here. */
__attribute__((noinline)) static struct number
scan_long_number(const char *at, const char *end, size_t max)
{
    const char *first = at;
    size_t value = 0;

    while (at < end && digit_of(*at) <= 9) {
        value = value * 10 + digit_of(*at);
        if (++at - first > DIGITS_MAX) {
            return (struct number){ NULL, 0 };
        }
    }
    if (at == first || *first == '0' || value > max || end - at < 2 ||
        !is_crlf(at)) {
        return (struct number){ NULL, 0 };
    }
    return (struct number){ at + 2, value };
}

/* type number CRLF, the number at most max, which is SHORT_MAX or more.
 * ARGUMENT_MIN bytes are there. XOR with the form wanted leaves the digits,
 * and zeros where the rest fits. */
static inline struct number
scan_number(const char *at, const char *end, char type, const size_t *max)
{
    uint32_t one = word_at(at) ^ ((uint32_t)(unsigned char)type | 0x0a0d3000);
    uint32_t two;

    if ((one & 0xff) != 0) {
        return (struct number){ NULL, 0 };
    }
    if (one <= 0x0900) {
        return (struct number){ at + 4, one >> 8 };
    }
    two = word_at(at + 1) ^ 0x0a0d3030;
    if (two <= 0x0909 && (two & 0xff) - 1 <= 8) {
        return (struct number){ at + 5, 10 * (two & 0xff) + (two >> 8) };
    }
    return scan_long_number(at + 1, end, *max);
}

/* Reads arguments from argv up to argv_end; NULL or the place behind them. */
static inline const char *
scan_arguments(const char *at, const char *end, const size_t *bulk_max,
               struct slice *argv, const struct slice *argv_end)
{
    const char *last = end - ARGUMENT_MIN;

    do {
        struct number len;

        if (at > last) {
            return NULL;
        }
        len = scan_number(at, end, '$', bulk_max);
        /* As integers: the sum may lie outside of the data. */
        if (len.next == NULL ||
            (uintptr_t)len.next + len.value > (uintptr_t)(end - 2) ||
            !is_crlf(len.next + len.value)) {
            return NULL;
        }
        *argv++ = (struct slice){ len.next, len.value };
        at = len.next + len.value + 2;
    } while (argv != argv_end);
    return at;
}

enum err
scan_commands(struct slice data, const struct stream_limits *limits,
              struct batch *batch, size_t *at)
{
    const char *end = data.data + data.len;
    const char *begin = data.data + *at;

    if (limits->bulk_max < SHORT_MAX) {
        return OK; /* such limits are the reader's */
    }
    while (end - begin >= COMMAND_MIN && batch->count < BATCH_COMMANDS_MAX) {
        struct number argc = scan_number(begin, end, '*', &limits->args_max);
        struct slice *argv;
        const char *next;

        if (argc.value == 0 || argc.value > limits->args_max ||
            (argc.value > SHORT_MAX &&
             argc.value * ARGUMENT_MIN > (size_t)(end - argc.next))) {
            break;
        }
        if (!batch_reserve(batch, argc.value)) {
            if (batch->count == 0) {
                return ERR_NOMEM;
            }
            break;
        }
        argv = batch->argv + batch->argv_count;
        next = scan_arguments(argc.next, end, &limits->bulk_max, argv,
                              argv + argc.value);
        if (next == NULL || (size_t)(next - begin) > limits->query_max) {
            break;
        }
        batch_add(batch, argc.value, (size_t)(begin - data.data),
                  (size_t)(next - data.data));
        begin = next;
    }
    batch->in_place = batch->count > 0;
    *at = (size_t)(begin - data.data);
    return OK;
}
