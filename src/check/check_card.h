/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A card is what verify and info print about one file or directory: a few
 * lines of text, or one JSON object. Fields have the same names in both forms.
 */
#pragma once

#include "check/check.h"

/* Returns the exit status that a state means. */
int check_card_status(enum check_state state);

/* Returns the state of data whose execution has failed for this reason: it is
 * damaged, unless only the secret of keyed filters is missing. */
enum check_state check_card_failure(const char *reason);

void check_card_begin(struct check *check, const char *path, const char *kind,
                      enum check_state state);
void check_card_number(struct check *check, const char *field, uint64_t value);
void check_card_text(struct check *check, const char *field, const char *text);
__attribute__((format(printf, 3, 4))) void
check_card_format(struct check *check, const char *field, const char *format,
                  ...);

/* Prints milliseconds since 1970; in text as a date. 0 prints nothing. */
void check_card_time(struct check *check, const char *field, uint64_t ms);
void check_card_end(struct check *check);

/* Lets the verdict name a file that is not included: "WHAT PATH". */
void check_card_omit(struct check *check, const char *what, const char *path);

/* check_card_gather() gathers the cards from now on; it fails without memory.
 * check_card_verdict() prints one line about all of them, and then the cards,
 * if the verdict is bad or they were requested. It returns whether there was a
 * card. */
bool check_card_gather(struct check *check);
bool check_card_verdict(struct check *check);

/* Writes a time as RFC 3339 in UTC, with milliseconds. */
enum { CHECK_TIME_BYTES = 32 };
void check_format_time(uint64_t ms, char *ret_text);
