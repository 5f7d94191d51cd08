/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hiredis's reader as a parser of replies that another server sends. As
 * reader.h does for requests, this module adds the limits that hiredis does not
 * have: on the bytes and the values of one reply. A declared count or length
 * allocates nothing. Belongs to one loop.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum answer_type {
    ANSWER_TEXT, /* a simple string, a bulk string or a double */
    ANSWER_ERROR,
    ANSWER_INTEGER, /* an integer or a boolean */
    ANSWER_NULL,
    ANSWER_LIST /* an array, a map or a set; its values follow */
};

struct answer_value {
    enum answer_type type;
    struct slice text; /* of TEXT and ERROR */
    int64_t integer;   /* of INTEGER */
    size_t count;      /* of LIST: number of its values */
};

/* The values of one reply; a list comes before its values. */
struct answer {
    const struct answer_value *values; /* at least one */
    size_t count;
};

enum { ANSWER_VALUES_MAX = 1024 };

enum answers_result { ANSWERS_MORE, ANSWERS_ONE, ANSWERS_BAD };

struct answers;

/* Makes a reader; NULL without memory. bytes_max: the limit of one reply. */
struct answers *answers_new(size_t bytes_max);
void answers_free(struct answers *answers); /* NULL is fine */

/* Adds bytes that have arrived. */
void answers_feed(struct answers *answers, struct slice bytes);

/* Takes the next reply, if all of it has arrived; it is borrowed until the next
 * call. After ANSWERS_BAD the reader can only be freed, and answers_reason says
 * why. */
enum answers_result answers_next(struct answers *answers,
                                 struct answer *ret_answer);
const char *answers_reason(const struct answers *answers);
