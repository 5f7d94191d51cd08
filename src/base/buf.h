/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A growable byte buffer; {0} is empty. An append that cannot grow it sets
 * `failed` and appends nothing, so that a writer checks once at the end. Owned
 * by one thread.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct buf {
    char *data;
    size_t len;
    size_t capacity;
    size_t limit; /* of len, checked when it grows; 0: none */
    bool failed;
    bool over; /* failed because of the limit, not of missing memory */
};

void buf_free(struct buf *buf);

/* Frees a buffer with secrets: overwrites the bytes first. */
void buf_wipe(struct buf *buf);

/* Returns space for `more` bytes after len, where the caller writes before it
 * adds to len. NULL, and `failed` is set, if the buffer cannot grow. */
char *buf_reserve_slow(struct buf *buf, size_t more);

static inline char *
buf_reserve(struct buf *buf, size_t more)
{
    if (__builtin_expect(buf->capacity - buf->len >= more, 1)) {
        return buf->data + buf->len;
    }
    return buf_reserve_slow(buf, more);
}

static inline void
buf_append(struct buf *buf, const void *data, size_t len)
{
    char *to = len > 0 ? buf_reserve(buf, len) : NULL;

    if (to != NULL) {
        memcpy(to, data, len);
        buf->len += len;
    }
}

static inline void
buf_append_slice(struct buf *buf, struct slice s)
{
    buf_append(buf, s.data, s.len);
}

/* Appends as printf does. Text that does not fit yet is formatted twice. */
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *buf,
                                                      const char *format, ...);

/* Drops the first n bytes. */
void buf_consume(struct buf *buf, size_t n);

/* Exchanges the contents of two buffers; each keeps its limit. */
void buf_exchange(struct buf *a, struct buf *b);

/* An item of a list of byte strings is stored behind its length.
 * buf_append_item() appends one. buf_next_item() reads the one at *at,
 * borrowed, and moves *at behind it; false after the last one. */
void buf_append_item(struct buf *buf, struct slice item);
bool buf_next_item(const struct buf *buf, size_t *at, struct slice *ret_item);

/* Appends bytes as redis-cli shows them within quotes: \n, \", \x00 and so on
 * for what is not printable. */
void buf_append_escaped(struct buf *buf, struct slice bytes);

/* Empties the buffer, and frees its memory if it has more than keep_bytes. */
void buf_reset(struct buf *buf, size_t keep_bytes);

static inline struct slice
buf_slice(const struct buf *buf)
{
    return (struct slice){ buf->data, buf->len };
}
