/* SPDX-License-Identifier: BSD-3-Clause */
#include "info/json.h"

#include <inttypes.h>

static void
begin_value(struct json *json, const char *name)
{
    if (json->more) {
        buf_append(json->text, ",", 1);
    }
    json->more = true;
    if (name != NULL) {
        buf_append(json->text, "\"", 1);
        buf_append_slice(json->text, slice_of(name));
        buf_append(json->text, "\":", 2);
    }
}

void
json_open(struct json *json, const char *name, char bracket)
{
    begin_value(json, name);
    buf_append(json->text, &bracket, 1);
    json->more = false;
}

void
json_close(struct json *json, char bracket)
{
    buf_append(json->text, &bracket, 1);
    json->more = true;
}

void
json_count(struct json *json, const char *name, uint64_t value)
{
    begin_value(json, name);
    buf_printf(json->text, "%" PRIu64, value);
}

void
json_bool(struct json *json, const char *name, bool value)
{
    begin_value(json, name);
    buf_append_slice(json->text, slice_of(value ? "true" : "false"));
}

void
json_null(struct json *json, const char *name)
{
    begin_value(json, name);
    buf_append_slice(json->text, slice_lit("null"));
}

void
json_number(struct json *json, const char *name, double value)
{
    begin_value(json, name);
    buf_printf(json->text, "%.6g", value);
}

void
json_append_quoted(struct buf *text, struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if (c == '"') {
            buf_append(text, "\\\"", 2);
        } else if (c == '\\') {
            buf_append(text, "\\\\\\\\", 4);
        } else if (c >= ' ' && c <= '~') {
            buf_append(text, &c, 1);
        } else {
            buf_printf(text, "\\\\x%02x", c);
        }
    }
}

void
json_text(struct json *json, const char *name, struct slice value)
{
    begin_value(json, name);
    buf_append(json->text, "\"", 1);
    json_append_quoted(json->text, value);
    buf_append(json->text, "\"", 1);
}
