/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Texts about the configuration: the error that refuses it, for a client or
 * the operator, and warnings about parts of it that do nothing. Texts that are
 * too long are cut. Pure.
 */
#pragma once

#include "base/buf.h"

enum { CONF_ERROR_MAX = 640 };
struct conf_error {
    char text[CONF_ERROR_MAX];
    bool no_memory; /* an allocation failed */
};

/* Writes an error text. */
__attribute__((format(printf, 2, 3))) void
conf_error_set(struct conf_error *error, const char *format, ...);

/* Writes the error of an allocation that failed. */
void conf_error_no_memory(struct conf_error *error);

/* Adds the error as a line to the mistakes that were found, so that the caller
 * can look for more. False: mistakes is NULL, or memory is missing. */
bool conf_error_note(const struct conf_error *error, struct buf *mistakes);

/* Warnings, a line each. Lines that do not fit are dropped. */
enum { CONF_NOTES_MAX = 4096 };
struct conf_notes {
    char text[CONF_NOTES_MAX];
};

/* Adds a line; notes may be NULL. */
void conf_note(struct conf_notes *notes, const char *text);

/* Cuts the next line of notes or mistakes off; false at the end. */
bool conf_next_note(struct slice *notes, struct slice *ret_line);
