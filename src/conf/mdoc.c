/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf/mdoc.h"

#include "base/err.h"
#include "base/slice.h"

enum { COLUMNS = 70 };

static void
print_char(FILE *to, char c)
{
    switch (c) {
    case '\\':
        (void)fputs("\\e", to);
        break;
    case '-':
        (void)fputs("\\-", to);
        break;
    case '"':
        (void)fputs("\\(dq", to);
        break;
    default:
        (void)fputc(c, to);
    }
}

/* \& keeps mdoc from reading a leading point as the end of a sentence. */
void
mdoc_print_words(FILE *to, const char *text)
{
    if (text[0] == '.') {
        (void)fputs("\\&", to);
    }
    for (; *text != '\0'; text++) {
        print_char(to, *text);
    }
}

/* A word with a point or an apostrophe at its beginning would make a line a
 * macro. */
void
mdoc_print_text(FILE *to, const char *text)
{
    struct slice rest = slice_of(text);
    struct slice word;
    size_t column = 0;

    while (slice_next_word(&rest, &word)) {
        CHECK(word.data[0] != '.' && word.data[0] != '\'');
        if (column > 0) {
            bool breaks = column + word.len > COLUMNS;

            (void)fputc(breaks ? '\n' : ' ', to);
            column = breaks ? 0 : column + 1;
        }
        for (size_t i = 0; i < word.len; i++) {
            print_char(to, word.data[i]);
        }
        column += word.len;
        if (word.data[word.len - 1] == '.') {
            (void)fputc('\n', to);
            column = 0;
        }
    }
}
