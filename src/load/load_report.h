/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report at the end, on standard output: a line that names what was loaded,
 * and a line for each figure.
 */
#pragma once

#include "load/load.h"

void load_report_begin(struct load *load, struct slice what);
void load_report_number(const char *field, uint64_t value);
void load_report_text(const char *field, const char *text);
__attribute__((format(printf, 2, 3))) void
load_report_format(const char *field, const char *format, ...);

/* Shows how far a follower is, in place of the bar. behind: bytes of its
 * source's stream that it has not applied yet; NULL if that is not known. */
void load_report_lag(struct load *load, uint64_t applied,
                     const uint64_t *behind);
