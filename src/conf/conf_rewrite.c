/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text loads, or it is not rewritten: so each of its lines is blank, a
 * comment, a [section], or a name and a value that conf_load.c would take. At
 * the end the new text is loaded too, and must give what it was made for.
 */
#include "conf/conf_rewrite.h"

#include "base/mem.h"
#include "conf/conf_load.h"

#include <ctype.h>
#include <limits.h>

enum line_kind { LINE_OTHER, LINE_SECTION, LINE_OPTION };

/* A line without its end. */
struct line {
    struct slice text, section;
    enum line_kind kind;
    int option;      /* of OPTION; and of the row whose comment it is, or -1 */
    size_t value_at; /* of OPTION: behind the sign and the blanks after it */
    bool dropped;    /* a rule of save that is in another line now */
};

/* Where an option stands, or has to; -1: nowhere. */
struct place {
    long line;    /* the last one that sets it */
    long comment; /* the last one that shows its default */
    bool changes;
};

struct rewriting {
    const struct conf *conf;
    struct line *lines;
    size_t count;
    struct place places[CONF_OPTION_COUNT];
    struct buf *out;
};

/* ---- reading ------------------------------------------------------------- */

static struct slice
trim(struct slice text)
{
    while (text.len > 0 && isspace((unsigned char)text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && isspace((unsigned char)text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

static int
find_option(struct slice section, struct slice key)
{
    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        if (slice_is_word(section, conf_table[i].section) &&
            slice_is_word(key, conf_key(&conf_table[i]))) {
            return i;
        }
    }
    return -1;
}

/* `name = value` or `name: value`, with blanks everywhere. */
static void
read_option(struct slice section, struct slice text, struct line *line)
{
    size_t sign = 0;
    size_t at;

    while (sign < text.len && text.data[sign] != '=' &&
           text.data[sign] != ':') {
        sign++;
    }
    if (sign == text.len) {
        return;
    }
    line->option =
        find_option(section, trim((struct slice){ text.data, sign }));
    at = sign + 1;
    while (at < text.len && isspace((unsigned char)text.data[at])) {
        at++;
    }
    line->value_at = (size_t)(text.data - line->text.data) + at;
}

static void
read_line(struct line *line, struct slice *section)
{
    struct slice text = trim(line->text);

    if (text.len > 0 && text.data[0] == '[') {
        const char *end = memchr(text.data, ']', text.len);

        line->kind = LINE_SECTION;
        *section = end != NULL ? (struct slice){ text.data + 1,
                                                 (size_t)(end - text.data) - 1 }
                               : *section;
    } else if (text.len > 0 && (text.data[0] == '#' || text.data[0] == ';')) {
        read_option(*section, (struct slice){ text.data + 1, text.len - 1 },
                    line);
    } else if (text.len > 0) {
        line->kind = LINE_OPTION;
        read_option(*section, text, line);
    }
}

static size_t
count_lines(struct slice text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++) {
        count += text.data[i] == '\n';
    }
    return count + 1; /* the last one may have no end */
}

/* The mark that some editors put at the beginning of a file; inih passes over
 * it too. */
static size_t
mark_bytes(struct slice text)
{
    return text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static void
read_lines(struct rewriting *all, struct slice text)
{
    struct slice section = slice_lit("");

    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.data) : text.len;
        size_t skip = all->count == 0 ? mark_bytes(text) : 0;
        struct line *line = &all->lines[all->count];

        *line = (struct line){ .text = { text.data + skip, len - skip },
                               .option = -1 };
        read_line(line, &section);
        line->section = section;
        line->text.data -= skip;
        line->text.len += skip;
        line->value_at += skip;
        if (line->option >= 0) {
            struct place *place = &all->places[line->option];

            if (line->kind == LINE_OPTION) {
                place->line = (long)all->count;
            } else {
                place->comment = (long)all->count;
            }
        }
        all->count++;
        text.data += len + (end != NULL);
        text.len -= len + (end != NULL);
    }
}

/* ---- writing ------------------------------------------------------------- */

/* A line ends where it ends, and what is at the ends of a value must show. */
static bool
put_value(struct buf *out, const struct conf *conf, const struct conf_row *row,
          struct conf_error *ret_error)
{
    struct buf text = { 0 };
    struct slice value;
    bool quotes;
    bool fits;

    conf_show(conf, row, &text);
    value = buf_slice(&text);
    fits = !text.failed &&
           (value.len == 0 || memchr(value.data, '\n', value.len) == NULL);
    quotes = value.len == 0 || trim(value).len < value.len ||
             value.data[0] == '"' || value.data[value.len - 1] == '"';
    if (fits) {
        buf_append(out, "\"", quotes);
        buf_append_slice(out, value);
        buf_append(out, "\"", quotes);
    } else {
        conf_error_set(ret_error,
                       "the value of %s has a line break, which no line of a "
                       "file can hold",
                       row->name);
    }
    if (text.data != NULL) {
        explicit_bzero(text.data, text.len);
    }
    buf_free(&text);
    return fits;
}

static bool
put_option(struct buf *out, const struct conf *conf, int option,
           struct conf_error *ret_error)
{
    const struct conf_row *row = &conf_table[option];
    bool put;

    buf_append_slice(out, slice_of(conf_key(row)));
    buf_append(out, " = ", 3);
    put = put_value(out, conf, row, ret_error);
    buf_append(out, "\n", 1);
    return put;
}

/* The line with another value: what stands before it stays, and so does the
 * carriage return of files from elsewhere. */
static bool
put_changed(struct rewriting *all, const struct line *line,
            struct conf_error *ret_error)
{
    const struct slice *text = &line->text;
    bool put;

    buf_append(all->out, text->data, line->value_at);
    put = put_value(all->out, all->conf, &conf_table[line->option], ret_error);
    buf_append(all->out, "\r",
               text->len > line->value_at && text->data[text->len - 1] == '\r');
    return put;
}

/* Options that change and have no line, behind the line that they go to. */
static bool
put_new(struct rewriting *all, const long after[], long line,
        struct conf_error *ret_error)
{
    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        if (after[i] == line &&
            !put_option(all->out, all->conf, i, ret_error)) {
            return false;
        }
    }
    return true;
}

/* Sections that are not there at all, at the end. */
static bool
put_sections(struct rewriting *all, const long after[],
             struct conf_error *ret_error)
{
    const char *section = "";

    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        if (after[i] != LONG_MAX) {
            continue;
        }
        if (strcmp(section, conf_table[i].section) != 0) {
            section = conf_table[i].section;
            buf_printf(all->out, "%s[%s]\n", all->out->len > 0 ? "\n" : "",
                       section);
        }
        if (!put_option(all->out, all->conf, i, ret_error)) {
            return false;
        }
    }
    return true;
}

static bool
put_lines(struct rewriting *all, const long after[],
          struct conf_error *ret_error)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct line *line = &all->lines[i];
        const struct place *place =
            line->option >= 0 ? &all->places[line->option] : NULL;

        if (line->dropped) {
            continue;
        }
        if (place != NULL && place->changes && place->line == (long)i) {
            if (!put_changed(all, line, ret_error)) {
                return false;
            }
        } else {
            buf_append_slice(all->out, line->text);
        }
        buf_append(all->out, "\n", 1);
        if (!put_new(all, after, (long)i, ret_error)) {
            return false;
        }
    }
    return put_sections(all, after, ret_error);
}

/* ---- deciding ------------------------------------------------------------ */

/* The last line of each option's section that is not blank, or -1. */
static void
find_ends(const struct rewriting *all, long ends[])
{
    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        ends[i] = -1;
        for (size_t k = all->count; k-- > 0 && ends[i] < 0;) {
            if (trim(all->lines[k].text).len > 0 &&
                slice_is_word(all->lines[k].section, conf_table[i].section)) {
                ends[i] = (long)k;
            }
        }
    }
}

/* Whether the option stands there, under this name or another one. */
static bool
has_line(const struct rewriting *all, int option)
{
    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        if (conf_table[i].offset == conf_table[option].offset &&
            all->places[i].line >= 0) {
            return true;
        }
    }
    return false;
}

/* Behind which line an option without one goes: LONG_MAX for a new section,
 * LONG_MIN for nowhere. */
static void
decide(struct rewriting *all, const struct conf *old, long ret_after[])
{
    long ends[CONF_OPTION_COUNT];

    find_ends(all, ends);
    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        struct place *place = &all->places[i];
        bool differs = !conf_same(all->conf, old, &conf_table[i]) &&
                       conf_file_of(all->conf, &conf_table[i]) == NULL;

        place->changes =
            differs && (conf_table[i].when == CONF_RUNTIME || place->line < 0);
        ret_after[i] = LONG_MIN;
        if (place->changes && place->line < 0 && !conf_table[i].alias &&
            !has_line(all, i)) {
            ret_after[i] = place->comment >= 0 ? place->comment
                           : ends[i] >= 0      ? ends[i]
                                               : LONG_MAX;
        }
    }
    for (size_t i = 0; i < all->count; i++) {
        struct line *line = &all->lines[i];

        line->dropped = line->kind == LINE_OPTION && line->option >= 0 &&
                        conf_table[line->option].type == CONF_SAVE &&
                        all->places[line->option].changes &&
                        all->places[line->option].line != (long)i;
    }
}

/* The new text is what it should be, or it is not used. */
static bool
check(const struct rewriting *all, const char *name,
      struct conf_error *ret_error)
{
    struct conf fresh;
    bool good;

    if (!conf_try_init(&fresh, ret_error)) {
        return false;
    }
    good = conf_load_text(&fresh, name, buf_slice(all->out), ret_error);
    for (int i = 0; i < CONF_OPTION_COUNT && good; i++) {
        bool kept =
            (conf_table[i].when != CONF_RUNTIME && all->places[i].line >= 0) ||
            conf_file_of(all->conf, &conf_table[i]) != NULL;

        if (!kept && !conf_same(all->conf, &fresh, &conf_table[i])) {
            conf_error_set(ret_error, "no line can hold the value of %s",
                           conf_table[i].name);
            good = false;
        }
    }
    conf_fini(&fresh);
    return good;
}

bool
conf_rewrite(const struct conf *conf, const char *name, struct slice text,
             struct buf *ret_text, struct conf_error *ret_error)
{
    struct rewriting all = { .conf = conf, .out = ret_text };
    long after[CONF_OPTION_COUNT];
    struct conf old;
    bool done = false;

    if (!conf_try_init(&old, ret_error) ||
        !conf_load_text(&old, name, text, ret_error)) {
        goto fini_old;
    }
    all.lines = mem_try_alloc(count_lines(text) * sizeof(*all.lines));
    if (all.lines == NULL) {
        conf_error_no_memory(ret_error);
        goto fini_old;
    }
    for (int i = 0; i < CONF_OPTION_COUNT; i++) {
        all.places[i] = (struct place){ .line = -1, .comment = -1 };
    }
    read_lines(&all, text);
    decide(&all, &old, after);
    done = put_lines(&all, after, ret_error);
    if (done && ret_text->failed) {
        conf_error_no_memory(ret_error);
        done = false;
    }
    done = done && check(&all, name, ret_error);
    mem_free(all.lines);
fini_old:
    conf_fini(&old);
    return done;
}

static bool
goes_beside(const struct conf *conf, const struct conf *base,
            const struct conf *presets, int option)
{
    const struct conf_row *row = &conf_table[option];

    if (option == CONF_OPTION_dir || row->alias ||
        conf_file_of(conf, row) != NULL) {
        return false;
    }
    if (base == NULL) {
        return row->when == CONF_RUNTIME;
    }
    return !conf_same(conf, base, row) &&
           (row->when == CONF_RUNTIME || conf_same(base, presets, row));
}

bool
conf_rewrite_beside(const struct conf *conf, const struct conf *base,
                    struct buf *ret_text, struct conf_error *ret_error)
{
    static const char head[] =
        "# Written by CONFIG REWRITE, and read after the configuration file,\n"
        "# which could not be written. What stands here is stronger. Remove\n"
        "# it to go back to that file.\n";
    const char *section = "";
    struct conf presets;
    bool put = conf_try_init(&presets, ret_error);

    buf_append_slice(ret_text, slice_of(head));
    for (int i = 0; i < CONF_OPTION_COUNT && put; i++) {
        const struct conf_row *row = &conf_table[i];

        if (!goes_beside(conf, base, &presets, i)) {
            continue;
        }
        if (strcmp(section, row->section) != 0) {
            section = row->section;
            buf_printf(ret_text, "\n[%s]\n", section);
        }
        put = put_option(ret_text, conf, i, ret_error);
    }
    conf_fini(&presets);
    if (put && ret_text->failed) {
        conf_error_no_memory(ret_error);
        put = false;
    }
    return put;
}
