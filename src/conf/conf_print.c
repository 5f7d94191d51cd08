/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of a section stand together in tbl/options.def, so that a heading comes
 * whenever the section changes.
 */
#include "conf/conf_print.h"

#include "conf/conf.h"
#include "conf/conf_args.h"
#include "conf/conf_value.h"
#include "conf/mdoc.h"

enum { COLUMNS = 79 };

/* Prints the text wrapped; the first line begins with `first`, the others with
 * the prefix. */
static void
print_hanging(FILE *to, const char *first, const char *prefix, const char *text)
{
    const char *begin = first;
    struct slice rest = slice_of(text);
    struct slice word;
    size_t column = 0;

    while (slice_next_word(&rest, &word)) {
        if (column > 0 && column + 1 + word.len > COLUMNS) {
            (void)fputc('\n', to);
            column = 0;
        }
        if (column == 0) {
            (void)fputs(begin, to);
            column = strlen(begin);
            begin = prefix;
        } else {
            (void)fputc(' ', to);
            column++;
        }
        (void)fwrite(word.data, 1, word.len, to);
        column += word.len;
    }
    (void)fputc('\n', to);
}

static void
print_wrapped(FILE *to, const char *prefix, const char *text)
{
    print_hanging(to, prefix, prefix, text);
}

/* Returns the default as it stands in a file. */
static const char *
shown_preset(const struct conf_row *row)
{
    return row->preset[0] != '\0' ? row->preset : "\"\"";
}

static bool
starts_section(size_t i)
{
    return i == 0 ||
           strcmp(conf_table[i].section, conf_table[i - 1].section) != 0;
}

/* Appends "Values: 0 to 65535. Can change at run time." and a NUL. */
static void
describe_row(const struct conf_row *row, struct buf *ret_text)
{
    buf_append_slice(ret_text, slice_lit("Values: "));
    conf_value_describe(row, ret_text);
    buf_printf(ret_text, ". %s.",
               row->when == CONF_RUNTIME  ? "Can change at run time"
               : row->when == CONF_RELOAD ? "SIGHUP reads it and the file again"
                                          : "Needs a restart to change");
    buf_append(ret_text, "", 1);
    CHECK(!ret_text->failed);
}

void
conf_print_file(FILE *to)
{
    static const char head[] =
        "# The configuration of bloomery-server; see bloomery.conf(5).\n"
        "#\n"
        "# This file has every option with its default, commented out. The\n"
        "# same options on the command line (--port 7379) override this file.\n"
        "# SIGHUP reloads it. CONFIG SET changes options at run time. CONFIG\n"
        "# REWRITE writes these changes to " CONF_REWRITTEN_NAME
        " in the directory dir,\n"
        "# which the server reads after this file. The log names each option\n"
        "# that it overrides. The server never writes to this file.\n"
        "#\n"
        "# A line that begins with # or ; is a comment. Double quotes keep "
        "the\n"
        "# blanks at the ends of a value. Sizes take units: kb, mb, gb and tb\n"
        "# are powers of 1024.\n";

    (void)fputs(head, to);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        struct buf values = { 0 };

        if (starts_section(i)) {
            (void)fprintf(to, "\n[%s]\n", row->section);
        }
        describe_row(row, &values);
        (void)fputc('\n', to);
        print_wrapped(to, "# ", row->text);
        print_wrapped(to, "# ", values.data);
        (void)fprintf(to, "# %s = %s\n", conf_key(row), shown_preset(row));
        buf_free(&values);
    }
}

void
conf_print_man(FILE *to)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        struct buf values = { 0 };

        if (starts_section(i)) {
            if (i > 0) {
                (void)fputs(".El\n", to);
            }
            (void)fprintf(to, ".Ss Section %s\n.Bl -tag -width Ds\n",
                          row->section);
        }
        describe_row(row, &values);
        (void)fprintf(to, ".It Ic %s\n", conf_key(row));
        mdoc_print_text(to, row->text);
        mdoc_print_text(to, values.data);
        (void)fputs("Default:\n.Ql ", to);
        mdoc_print_words(to, shown_preset(row));
        (void)fputs(" .\n", to);
        buf_free(&values);
    }
    (void)fputs(".El\n", to);
}

void
conf_print_help(FILE *to)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        const char *quote = strchr(row->preset, ' ') != NULL ? "\"" : "";
        struct buf option = { 0 };

        if (starts_section(i)) {
            (void)fprintf(to, "%s%s:\n", i > 0 ? "\n" : "", row->section);
        }
        buf_printf(&option, "--%s %s%s%s", row->name, quote, shown_preset(row),
                   quote);
        buf_append(&option, "", 1);
        CHECK(!option.failed);
        print_hanging(to, "  ", "        ", option.data);
        print_wrapped(to, "        ", row->text);
        buf_free(&option);
    }
}
