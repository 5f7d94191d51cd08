/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Growth by doubling; a long buffer, which is not copied when it grows, grows
 * by an eighth.
 */
#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

enum { SMALLEST = 64, LONG_BYTES = 2 * 1024 * 1024 };

void
buf_free(struct buf *buf)
{
    mem_free_sized(buf->data, buf->capacity);
    *buf = (struct buf){ .limit = buf->limit };
}

void
buf_wipe(struct buf *buf)
{
    if (buf->data != NULL) {
        explicit_bzero(buf->data, buf->len);
    }
    buf_free(buf);
}

char *
buf_reserve_slow(struct buf *buf, size_t more)
{
    size_t needed;
    size_t capacity = buf->capacity > 0 ? buf->capacity : SMALLEST;
    char *data;

    if (buf->failed || __builtin_add_overflow(buf->len, more, &needed) ||
        needed > SIZE_MAX / 2) {
        buf->failed = true;
        return NULL;
    }
    if (buf->capacity >= needed && buf->data != NULL) {
        return buf->data + buf->len;
    }
    if (buf->limit > 0 && needed > buf->limit) {
        buf->failed = true;
        buf->over = true;
        return NULL;
    }
    while (capacity < needed && capacity < LONG_BYTES) {
        capacity *= 2;
    }
    if (capacity < needed) {
        capacity = needed + needed / 8;
    }
    if (buf->limit > 0 && capacity > buf->limit) {
        capacity = buf->limit;
    }
    data = mem_try_resize(buf->data, buf->capacity, capacity);
    if (data == NULL) {
        buf->failed = true;
        return NULL;
    }
    buf->data = data;
    buf->capacity = capacity;
    return data + buf->len;
}

void
buf_printf(struct buf *buf, const char *format, ...)
{
    size_t room = buf->capacity - buf->len;
    va_list ap;
    int len;
    char *to;

    /* Usually the text fits and is formatted once. */
    va_start(ap, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 errs */
    len = vsnprintf(room > 0 ? buf->data + buf->len : NULL, room, format, ap);
    va_end(ap);
    CHECK(len >= 0);
    if ((size_t)len >= room) {
        to = buf_reserve(buf, (size_t)len + 1);
        if (to == NULL) {
            return;
        }
        va_start(ap, format);
        /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 errs */
        (void)vsnprintf(to, (size_t)len + 1, format, ap);
        va_end(ap);
    }
    buf->len += (size_t)len;
}

void
buf_exchange(struct buf *a, struct buf *b)
{
    struct buf first = *a;

    a->data = b->data;
    a->len = b->len;
    a->capacity = b->capacity;
    b->data = first.data;
    b->len = first.len;
    b->capacity = first.capacity;
}

void
buf_consume(struct buf *buf, size_t n)
{
    CHECK(n <= buf->len);
    buf->len -= n;
    if (buf->len > 0) {
        memmove(buf->data, buf->data + n, buf->len);
    }
}

void
buf_reset(struct buf *buf, size_t keep_bytes)
{
    buf->len = 0;
    buf->failed = false;
    buf->over = false;
    if (buf->capacity > keep_bytes) {
        buf_free(buf);
    }
}

void
buf_append_item(struct buf *buf, struct slice item)
{
    if (buf_reserve(buf, sizeof(item.len) + item.len) != NULL) {
        buf_append(buf, (const char *)&item.len, sizeof(item.len));
        buf_append_slice(buf, item);
    }
}

bool
buf_next_item(const struct buf *buf, size_t *at, struct slice *ret_item)
{
    if (*at == buf->len) {
        return false;
    }
    memcpy(&ret_item->len, buf->data + *at, sizeof(ret_item->len));
    *at += sizeof(ret_item->len);
    ret_item->data = buf->data + *at;
    *at += ret_item->len;
    CHECK(*at <= buf->len);
    return true;
}

void
buf_append_escaped(struct buf *buf, struct slice bytes)
{
    static const char special[] = "\n\r\t\a\b\"\\";
    static const char letters[] = "nrtab\"\\";
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        const char *at = c != '\0' ? strchr(special, c) : NULL;
        char escape[] = { '\\', 'x', hex[c >> 4], hex[c & 15] };

        if (at != NULL) {
            escape[1] = letters[at - special];
            buf_append(buf, escape, 2);
        } else if (c >= ' ' && c <= '~') {
            buf_append(buf, &c, 1);
        } else {
            buf_append(buf, escape, sizeof(escape));
        }
    }
}
