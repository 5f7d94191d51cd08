/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The last line of a text file of ours: "checksum ", 16 hexadecimal digits and
 * LF. The digits are the XXH3-64 of all lines before it. Pure.
 */
#pragma once

#include "base/slice.h"

enum { CHECKSUM_LINE_BYTES = 9 + 16 + 1 };

/* Appends the line to LEN bytes of text. Returns the new length. */
size_t checksum_append(char *text, size_t len);

/* Returns whether the text ends with the line that belongs to the text before
 * it. */
bool checksum_holds(struct slice text);

/* Cuts this line off the end of the text. False: the text does not end with the
 * right line. */
bool checksum_take(struct slice *text);
