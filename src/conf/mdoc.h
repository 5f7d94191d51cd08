/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text for man pages in mdoc: escaped, so that none of it is taken for a macro.
 */
#pragma once

#include <stdio.h>

/* Prints words as they are, within one line. */
void mdoc_print_words(FILE *to, const char *text);

/* Prints sentences: in mdoc each one ends its line, and long ones are broken at
 * blanks. Ends with a line end if the text ends with a sentence. No word may
 * begin with a point or an apostrophe. */
void mdoc_print_text(FILE *to, const char *text);
