/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cuts a file or standard input into items: lines (LF or CRLF), strings that
 * end with NUL, or one column of CSV (RFC 4180). Empty items are counted and
 * left out.
 */
#pragma once

#include "base/buf.h"
#include "load/load.h"

enum load_text_form { LOAD_TEXT_LINES, LOAD_TEXT_NUL, LOAD_TEXT_CSV };

struct load_text {
    struct load *load;
    enum load_text_form form;
    char delimiter;
    const char *column; /* its name in the first record, or NULL */
    uint64_t column_at; /* index of the column, from 0 */
    uint64_t items, left_out;
};

/* Reads the form from the command line. False: the reason was printed. */
bool load_text_begin(struct load *load, struct load_text *ret_text);

/* Calls visit for each item of an open file, from its position on, after the
 * bytes in `before`, which were read already and which the caller keeps. An fd
 * of -1 has no more bytes. False: visit returned false, or a failure was
 * printed. */
typedef bool load_item_fn(void *ctx, struct slice item);
bool load_text_read(struct load_text *text, const char *path, int fd,
                    struct slice before, load_item_fn *visit, void *ctx);

/* Reads once into the buffer, which grows; an fd of -1 has no bytes. Returns
 * false at the end, and after a failure. It prints a failure and sets
 * *ret_failed. */
bool load_text_fill(struct load *load, const char *path, int fd,
                    struct buf *buf, bool *ret_failed);
