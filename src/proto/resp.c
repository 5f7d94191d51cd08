/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/resp.h"

#include "proto/reply.h"

#include <string.h>

bool
resp_is_error(struct slice reply)
{
    return reply.len > 0 && reply.data[0] == '-';
}

struct slice
resp_text(struct slice reply)
{
    const char *lf;
    size_t line;

    if (reply.len < 3 || strchr("+-$", reply.data[0]) == NULL) {
        return slice_lit("");
    }
    if (reply.data[0] != '$') {
        return (struct slice){ reply.data + 1, reply.len - 3 };
    }
    lf = memchr(reply.data, '\n', reply.len);
    line = (size_t)(lf - reply.data) + 1;
    if (reply.len < line + 2) {
        return slice_lit(""); /* null */
    }
    return (struct slice){ reply.data + line, reply.len - line - 2 };
}

bool
resp_field(struct slice reply, const char *name, uint64_t *ret_value)
{
    struct slice text = resp_text(reply), digits = { NULL, 0 };
    const char *at = memmem(text.data, text.len, name, strlen(name));

    if (at == NULL) {
        return false;
    }
    digits.data = at + strlen(name);
    while (digits.data + digits.len < text.data + text.len &&
           digits.data[digits.len] >= '0' && digits.data[digits.len] <= '9') {
        digits.len++;
    }
    return slice_to_u64(digits, ret_value);
}

bool
resp_integer(struct slice reply, int64_t *ret_value)
{
    return reply.len > 3 && reply.data[0] == ':' &&
           slice_to_i64((struct slice){ reply.data + 1, reply.len - 3 },
                        ret_value);
}

bool
resp_array(struct slice reply, struct slice *ret_rest)
{
    const char *lf;

    if (reply.len < 4 || reply.data[0] != '*') {
        return false;
    }
    lf = memchr(reply.data, '\n', reply.len);
    *ret_rest =
        (struct slice){ lf + 1, reply.len - (size_t)(lf + 1 - reply.data) };
    return true;
}

bool
resp_element(struct slice *rest, struct slice *ret_element)
{
    *ret_element = reply_first(*rest);
    rest->data += ret_element->len;
    rest->len -= ret_element->len;
    return ret_element->len > 0;
}

/* Puts the elements of each array back in front of the rest, where they already
 * stand in memory. So one loop visits elements of any depth. */
struct slice
resp_find_error(struct slice reply)
{
    struct slice element;
    struct slice rest = reply;

    while (resp_element(&rest, &element)) {
        struct slice inner;

        if (resp_is_error(element)) {
            return resp_text(element);
        }
        if (resp_array(element, &inner)) {
            rest.len += inner.len;
            rest.data -= inner.len;
        }
    }
    return slice_lit("");
}

int
resp_shown(struct slice error)
{
    const int max = 400;

    return error.len < (size_t)max ? (int)error.len : max;
}
