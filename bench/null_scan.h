/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The null server's request scanner. It finds complete, canonical RESP commands
 * (arrays of bulk strings) in a buffer without copying, and checks every CRLF,
 * digit and range. It has no state. Arguments point into the buffer. The caller
 * owns the argument vector, reuses it for every command, and releases it with
 * free(args.items).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCAN_ARGS_LIMIT = 1024 * 1024,
    SCAN_BULK_LIMIT = 512 * 1024 * 1024,
};

struct arg {
    const char *data;
    size_t len;
};

struct scan_args {
    struct arg *items;
    size_t count;
    size_t capacity;
};

static inline void
scan_args_grow(struct scan_args *args)
{
    size_t capacity = args->capacity * 2 + 64;
    struct arg *items = realloc(args->items, capacity * sizeof(*items));

    if (items == NULL) {
        perror("null: arguments");
        exit(1);
    }
    args->items = items;
    args->capacity = capacity;
}

enum scan { SCAN_OK, SCAN_MORE, SCAN_BAD };

/* Reads TYPE, a canonical decimal number of at most LIMIT and CRLF. */
static enum scan
scan_number(const char **at, const char *end, char type, size_t limit,
            size_t *ret_number)
{
    const char *p = *at;
    size_t number;

    if (p == end) {
        return SCAN_MORE;
    }
    if (*p++ != type) {
        return SCAN_BAD;
    }
    if (p == end) {
        return SCAN_MORE;
    }
    number = (size_t)(unsigned char)*p++ - '0';
    if (number > 9) {
        return SCAN_BAD;
    }
    while (p < end && *p >= '0' && *p <= '9') {
        if (number == 0) {
            return SCAN_BAD; /* a leading zero */
        }
        number = number * 10 + (size_t)(*p++ - '0');
        if (number > limit) {
            return SCAN_BAD;
        }
    }
    if (end - p < 2) {
        return p == end || *p == '\r' ? SCAN_MORE : SCAN_BAD;
    }
    if (p[0] != '\r' || p[1] != '\n') {
        return SCAN_BAD;
    }
    *at = p + 2;
    *ret_number = number;
    return SCAN_OK;
}

static inline bool
scan_is_crlf(const char *at)
{
    return memcmp(at, "\r\n", 2) == 0;
}

/* Scans a bulk string of 1 to 99 bytes, which nearly every argument is, with
 * the same checks but without a loop. Returns its end, or NULL if the general
 * function must scan it. */
static inline const char *
scan_short_bulk(const char *at, const char *end, struct arg *ret_arg)
{
    size_t len;
    size_t ones;

    if (end - at < 5 || at[0] != '$') {
        return NULL;
    }
    len = (size_t)(unsigned char)at[1] - '0';
    if (len - 1 > 8) { /* not 1 to 9 */
        return NULL;
    }
    if (scan_is_crlf(at + 3)) {
        ones = (size_t)(unsigned char)at[2] - '0';
        if (ones > 9) {
            return NULL;
        }
        len = len * 10 + ones;
        at += 5;
    } else if (scan_is_crlf(at + 2)) {
        at += 4;
    } else {
        return NULL;
    }
    if (end - at < (ptrdiff_t)len + 2 || !scan_is_crlf(at + len)) {
        return NULL;
    }
    ret_arg->data = at;
    ret_arg->len = len;
    return at + len + 2;
}

static enum scan
scan_bulk(const char **at, const char *end, struct arg *ret_arg)
{
    const char *p = *at;
    size_t len;
    enum scan scan = scan_number(&p, end, '$', SCAN_BULK_LIMIT, &len);

    if (scan != SCAN_OK) {
        return scan;
    }
    if ((size_t)(end - p) < len + 2) {
        return SCAN_MORE;
    }
    if (!scan_is_crlf(p + len)) {
        return SCAN_BAD;
    }
    ret_arg->data = p;
    ret_arg->len = len;
    *at = p + len + 2;
    return SCAN_OK;
}

/* Scans one whole command into ARGS and moves *at to its end. It changes *at
 * only if it returns SCAN_OK. The vector grows with the arguments that have
 * arrived, never with the declared count. */
static inline enum scan
scan_command(const char **at, const char *end, struct scan_args *args)
{
    const char *p = *at;
    struct arg *arg = args->items;
    const struct arg *room = args->items + args->capacity;
    size_t count;
    enum scan scan = scan_number(&p, end, '*', SCAN_ARGS_LIMIT, &count);

    if (scan != SCAN_OK) {
        return scan;
    }
    for (size_t left = count; left > 0; left--) {
        const char *next;

        if (arg == room) {
            scan_args_grow(args);
            arg = args->items + (count - left);
            room = args->items + args->capacity;
        }
        next = scan_short_bulk(p, end, arg);
        if (next != NULL) {
            p = next;
        } else {
            scan = scan_bulk(&p, end, arg);
            if (scan != SCAN_OK) {
                return scan;
            }
        }
        arg++;
    }
    *at = p;
    args->count = count;
    return SCAN_OK;
}
