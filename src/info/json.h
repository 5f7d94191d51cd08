/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes JSON. Commas are added automatically; the caller closes what it opens.
 * Names are constants of printable ASCII without quotes or backslashes; inside
 * of an array they are NULL.
 */
#pragma once

#include "base/buf.h"

struct json {
    struct buf *text;
    bool more; /* a comma comes before the next value */
};

void json_open(struct json *json, const char *name, char bracket);
void json_close(struct json *json, char bracket);

void json_count(struct json *json, const char *name, uint64_t value);
void json_bool(struct json *json, const char *name, bool value);
void json_null(struct json *json, const char *name);

/* Writes a finite number with six significant digits. */
void json_number(struct json *json, const char *name, double value);

/* Appends bytes as text for people, to stand between double quotes in JSON or
 * in a label of metrics; the caller writes the quotes. A program that parses
 * the text gets printable ASCII unchanged, except for two backslashes instead
 * of one, and \xNN for each other byte. So different bytes never give the same
 * text. */
void json_append_quoted(struct buf *text, struct slice value);

/* Writes bytes as a value, with quotes and as json_append_quoted() does. */
void json_text(struct json *json, const char *name, struct slice value);
