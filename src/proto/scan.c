/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hot path of the server. An argument has at least the 6 bytes of
 * "$0\r\n\r\n". After one check for these, the usual lengths of one and two
 * digits are read as 32-bit words without further range checks. A command with
 * a large count gets argument slots only if the data has 6 bytes for each.
 * Repeated bytes are compared, not decoded again.
 */
#include "proto/scan.h"

#include <endian.h>

enum {
    ARGUMENT_MIN = 6, /* $0 CRLF CRLF */
    COMMAND_MIN = 10, /* *1 CRLF and one argument */
    DIGITS_MAX = 10,  /* cannot overflow */
    SHORT_MAX = 99,   /* of two digits */
    REPEATED_ARGC = 3 /* name, key, item */
};

/* A number, and the place after its CRLF, which is NULL if there is no number.
 */
struct number {
    const char *next;
    size_t value;
};

/* Read four and eight bytes, of which the first is the lowest. */
static inline uint32_t
word_at(const char *at)
{
    return le32toh(slice_load32(at));
}

static inline uint64_t
long_word_at(const char *at)
{
    return le64toh(slice_load64(at));
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

/* Reads a canonical number above 0, of any length, and its CRLF. */
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

/* Reads type number CRLF, of which ARGUMENT_MIN bytes are there. Compares only
 * numbers above SHORT_MAX with *max. XOR with the expected form leaves the
 * digits, and zeros where the other bytes match. */
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

/* Reads one bulk string; .data is NULL if there is none of at most *max
 * bytes. */
static inline struct slice
scan_bulk(const char *at, const char *end, const size_t *max)
{
    struct number len;

    if (at > end - ARGUMENT_MIN) {
        return (struct slice){ NULL, 0 };
    }
    len = scan_number(at, end, '$', max);
    /* Compare integers: the sum may point outside of the data. */
    if (len.next == NULL ||
        (uintptr_t)len.next + len.value > (uintptr_t)(end - 2) ||
        !is_crlf(len.next + len.value)) {
        return (struct slice){ NULL, 0 };
    }
    return (struct slice){ len.next, len.value };
}

/* The header of an argument. Pipelines and long commands repeat lengths: if
 * "$12 CRLF" is the same as for the last argument, it needs no decoding. */
struct shape {
    uint64_t mask;   /* selects as many low bytes as the header has */
    uint64_t header; /* these bytes */
    size_t header_bytes;
    size_t bytes; /* all of the argument; at least 8 */
};

/* Matches no argument. */
static const struct shape NO_SHAPE = { .bytes = SIZE_MAX };

static inline void
learn_shape(struct shape *shape, const char *at, struct slice argument)
{
    size_t header_bytes = (size_t)(argument.data - at);

    if (argument.len >= 2 && argument.len <= SHORT_MAX) {
        shape->mask = ((uint64_t)1 << (8 * header_bytes)) - 1;
        shape->header = long_word_at(at) & shape->mask;
        shape->header_bytes = header_bytes;
        shape->bytes = header_bytes + argument.len + 2;
    }
}

static inline bool
has_shape(const struct shape *shape, const char *at, const char *end)
{
    return (size_t)(end - at) >= shape->bytes &&
           (long_word_at(at) & shape->mask) == shape->header &&
           is_crlf(at + shape->bytes - 2);
}

static inline struct slice
shaped(const struct shape *shape, const char *at)
{
    return (struct slice){ at + shape->header_bytes,
                           shape->bytes - shape->header_bytes - 2 };
}

/* Reads arguments from argv up to argv_end. Returns the place after them, or
 * NULL. */
static inline const char *
scan_arguments(const char *at, const char *end, const size_t *bulk_max,
               struct slice *argv, const struct slice *argv_end)
{
    struct shape shape = NO_SHAPE;

    do {
        if (has_shape(&shape, at, end)) {
            *argv = shaped(&shape, at);
        } else {
            *argv = scan_bulk(at, end, bulk_max);
            if (argv->data == NULL) {
                return NULL;
            }
            learn_shape(&shape, at, *argv);
        }
        at = argv->data + argv->len + 2;
    } while (++argv != argv_end);
    return at;
}

/* ---- commands that repeat the one before ---------------------------------
 *
 * In a pipeline for many items of one filter, each command has the same bytes
 * as the one before, up to the last argument. Comparing them is faster than
 * parsing them, and spares the execution a second look at the words. */

/* Compares n >= 8 bytes as words, of which the last two may overlap. */
static inline bool
same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t differ = slice_load64(a + n - 8) ^ slice_load64(b + n - 8);

    for (size_t i = 0; i + 8 < n; i += 8) {
        differ |= slice_load64(a + i) ^ slice_load64(b + i);
    }
    return differ == 0;
}

/* Adds commands of REPEATED_ARGC words from `begin` on, as long as they repeat
 * the batch's last one, which begins at `former`. Returns the place after
 * them. */
static const char *
scan_repeats(const char *begin, const char *end, const char *former,
             const struct parse_limits *limits, struct batch *batch)
{
    struct batch_command *command = batch->command + batch->count;
    uint32_t first = command[-1].first;
    size_t origin = command[-1].begin;
    size_t left = BATCH_COMMANDS_MAX - batch->count;
    struct slice *argv;
    struct slice words[2];
    struct shape shape = NO_SHAPE;
    size_t same;
    size_t done;

    if (!batch_reserve(batch, left * REPEATED_ARGC)) {
        return begin;
    }
    argv = batch->argv + batch->argv_count;
    words[0] = argv[-3];
    words[1] = argv[-2];
    same = (size_t)(words[1].data + words[1].len + 2 - former);
    learn_shape(&shape, former + same, argv[-1]);
    for (done = 0; done < left && (size_t)(end - begin) > same &&
                   same_bytes(begin, former, same);
         done++) {
        const char *at = begin + same;
        struct slice item;
        ptrdiff_t further;

        if (has_shape(&shape, at, end)) {
            item = shaped(&shape, at);
        } else {
            item = scan_bulk(at, end, &limits->bulk_max);
            if (item.data == NULL) {
                break;
            }
            learn_shape(&shape, at, item);
        }
        at = item.data + item.len + 2;
        if ((size_t)(at - begin) > limits->query_max) {
            break;
        }
        further = begin - former;
        argv[0] = (struct slice){ words[0].data + further, words[0].len };
        argv[1] = (struct slice){ words[1].data + further, words[1].len };
        argv[2] = item;
        argv += REPEATED_ARGC;
        first += REPEATED_ARGC;
        *command++ = (struct batch_command){ first, REPEATED_ARGC,
                                             origin + (size_t)further, true };
        begin = at;
    }
    batch->count += (uint32_t)done;
    batch->argv_count += done * REPEATED_ARGC;
    return begin;
}

enum err
scan_commands(struct slice data, const struct parse_limits *limits,
              struct batch *batch, size_t *at)
{
    const char *end = data.data + data.len;
    const char *begin = data.data + *at;

    if (limits->bulk_max < SHORT_MAX) {
        return OK; /* the reader checks such limits */
    }
    while (end - begin >= COMMAND_MIN && batch->count < BATCH_COMMANDS_MAX) {
        struct number argc = scan_number(begin, end, '*', &limits->args_max);
        const char *former = begin;
        struct slice *argv;

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
        begin = scan_arguments(argc.next, end, &limits->bulk_max, argv,
                               argv + argc.value);
        if (begin == NULL || (size_t)(begin - former) > limits->query_max) {
            begin = former;
            break;
        }
        batch_add(batch, argc.value, (size_t)(former - data.data));
        if (argc.value == REPEATED_ARGC && begin != end) {
            begin = scan_repeats(begin, end, former, limits, batch);
        }
    }
    batch->in_place = batch->count > 0;
    *at = (size_t)(begin - data.data);
    return OK;
}
