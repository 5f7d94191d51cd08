/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of INFO: "name:value" and CRLF, by the kind of the value.
 */
#pragma once

#include "base/buf.h"
#include "base/metrics.h"
#include "conf/conf.h"

void info_put_number(struct buf *text, const char *name, uint64_t value);
void info_put_signed(struct buf *text, const char *name, int64_t value);
void info_put_ratio(struct buf *text, const char *name, double value);

/* Writes a count since the last CONFIG RESETSTAT; before: the count then. */
void info_put_since(struct buf *text, const char *name, uint64_t count,
                    const _Atomic uint64_t *before);

/* Writes each of these names with the value 0. */
void info_put_zeros(struct buf *text, const char *const *names, size_t count);

/* Writes a text of any length; NULL is empty. */
void info_put_text(struct buf *text, const char *name, const char *value);

/* Converts bytes to the largest unit in which they are at least 1. Units are
 * powers of 1024: *ret_unit is the power, at most `last`. */
double info_put_scaled(uint64_t bytes, unsigned last, unsigned *ret_unit);

/* Writes "943.38K" under the name with _human appended; info_put_bytes writes
 * the plain number before it. */
void info_put_human(struct buf *text, const char *name, uint64_t bytes);
void info_put_bytes(struct buf *text, const char *name, uint64_t bytes);

/* Writes an option; its name has _ for - and no part before a dot. */
void info_put_option(struct buf *text, const struct conf *conf,
                     const struct conf_row *row);

/* Returns a metric. Its sum over slots that other threads write to may be below
 * zero for a moment; then it is 0. */
uint64_t info_put_metric_value(enum metric metric);
