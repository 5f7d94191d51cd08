/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of a section stand together in the table, so that one heading serves
 * all of them.
 */
#include "conf/conf_rewrite.h"

#include <ctype.h>

/* Returns whether the option is written. all: even if it cannot change at run
 * time. */
static bool
is_kept(const struct conf *conf, const struct conf *given,
        const struct conf_row *row, bool all)
{
    return (all || row->when == CONF_RUNTIME) && !row->alias &&
           conf_file_of(conf, row) == NULL && !conf_same(conf, given, row);
}

/* Returns whether a reader would misread the ends of the value. */
static bool
needs_quotes(struct slice value)
{
    char first, last;

    if (value.len == 0) {
        return true;
    }
    first = value.data[0];
    last = value.data[value.len - 1];
    return isspace((unsigned char)first) || isspace((unsigned char)last) ||
           first == '"' || last == '"';
}

static bool
put_option(struct buf *out, const struct conf *conf, const struct conf_row *row,
           struct conf_error *ret_error)
{
    struct buf text = { 0 };
    struct slice value;
    bool fits;

    conf_show(conf, row, &text);
    value = text.len > 0 ? buf_slice(&text) : slice_lit("");
    fits = memchr(value.data, '\n', value.len) == NULL;
    if (text.failed) {
        out->failed = true;
    } else if (fits) {
        const char *quote = needs_quotes(value) ? "\"" : "";

        buf_printf(out, "%s = %s%.*s%s\n", conf_key(row), quote, (int)value.len,
                   value.data, quote);
    } else {
        conf_error_set(ret_error,
                       "the value of %s has a line break, which no line of a "
                       "file can hold",
                       row->name);
    }
    buf_wipe(&text);
    return fits;
}

static bool
put_differences(const struct conf *conf, const struct conf *given, bool all,
                struct buf *ret_text, struct conf_error *ret_error)
{
    const char *section = "";

    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];

        if (!is_kept(conf, given, row, all)) {
            continue;
        }
        if (strcmp(section, row->section) != 0) {
            section = row->section;
            buf_printf(ret_text, "\n[%s]\n", section);
        }
        if (!put_option(ret_text, conf, row, ret_error)) {
            return false;
        }
    }
    if (ret_text->failed) {
        conf_error_no_memory(ret_error);
    }
    return !ret_text->failed;
}

bool
conf_rewrite_all(const struct conf *conf, const struct conf *given,
                 struct buf *ret_text, struct conf_error *ret_error)
{
    return put_differences(conf, given, true, ret_text, ret_error);
}

bool
conf_rewrite(const struct conf *conf, const struct conf *given,
             struct buf *ret_text, struct conf_error *ret_error)
{
    buf_append_slice(
        ret_text,
        slice_lit("# Written by CONFIG REWRITE: what CONFIG SET changed. Read\n"
                  "# after the configuration file, and stronger than it. "
                  "Remove a\n"
                  "# line, or this file, to go back to the configuration "
                  "file.\n"));
    return put_differences(conf, given, false, ret_text, ret_error);
}
