/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What verify and info have to say of one file or directory: a card, printed
 * as a few lines of text or as one JSON object; and complaints, notes and the
 * progress bar on standard error. Fields have the same names in both forms.
 */
#pragma once

#include "tools/check.h"

/* Raises the exit status as the status of the card says. */
enum check_state {
    CHECK_STATE_INTACT,
    CHECK_STATE_TORN, /* intact but for a tail that a start cuts */
    CHECK_STATE_DAMAGED,
    CHECK_STATE_NEWER,
    CHECK_STATE_UNREADABLE
};

void check_card_begin(struct check *check, const char *path, const char *kind,
                      enum check_state state);
void check_card_number(struct check *check, const char *field, uint64_t value);
void check_card_text(struct check *check, const char *field, const char *text);
__attribute__((format(printf, 3, 4))) void
check_card_format(struct check *check, const char *field, const char *format,
                  ...);

/* Milliseconds since 1970; in text as a date. 0 is left out. */
void check_card_time(struct check *check, const char *field, uint64_t ms);
void check_card_end(struct check *check);

/* A line on standard error, with the status that it means for the exit. */
__attribute__((format(printf, 3, 4))) void
check_complain(struct check *check, int status, const char *format, ...);

/* RFC 3339 in UTC, with milliseconds. */
enum { CHECK_TIME_BYTES = 32 };
void check_format_time(uint64_t ms, char *ret_text);

/* ---- progress ------------------------------------------------------------ */

void check_bar_begin(struct check *check, uint64_t total_bytes);

/* So many more bytes are done. Cheap; draws a few times a second. */
void check_bar_add(struct check *check, uint64_t bytes);
void check_bar_end(struct check *check);
