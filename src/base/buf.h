/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A growable run of bytes. {0} is an empty one. Growing may fail: an append
 * that cannot grow sets `failed` and appends nothing, so that a writer checks
 * once at the end. Owned by one thread.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct buf {
    char *data;
    size_t len;
    size_t capacity;
    size_t limit; /* of len, looked at when it grows; 0: none */
    bool failed;
    bool over; /* failed because of the limit, not for want of memory */
};

void buf_free(struct buf *buf);

/* Overwrites the bytes before it frees them: for secrets. */
void buf_wipe(struct buf *buf);

/* Makes room for `more` bytes behind len; NULL (and failed) if it cannot. The
 * caller writes there and adds to len. */
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

/* printf; the text must be short. */
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *buf,
                                                      const char *format, ...);

/* Drops the first n bytes. */
void buf_consume(struct buf *buf, size_t n);

/* Each gets what the other holds; limits stay. */
void buf_exchange(struct buf *a, struct buf *b);

/* A list of byte strings, each behind its length. Nothing is appended without
 * memory (failed). ret_item is borrowed; false behind the last one. */
void buf_append_item(struct buf *buf, struct slice item);
bool buf_next_item(const struct buf *buf, size_t *at, struct slice *ret_item);

/* Empties it; gives memory above keep_bytes back. */
void buf_reset(struct buf *buf, size_t keep_bytes);

static inline struct slice
buf_slice(const struct buf *buf)
{
    return (struct slice){ buf->data, buf->len };
}
