/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsers and formatters of values with several parts, for conf/conf_value.h. A
 * formatter appends a text that its parser reads. A parser that fails sets
 * *ret_error and leaves the value untouched. Pure.
 */
#pragma once

#include "base/buf.h"
#include "conf/conf_error.h"
#include "conf/conf_types.h"

MUST_CHECK bool conf_parts_parse_limits(struct slice text,
                                        struct conf_output_limits *ret_limits,
                                        struct conf_error *ret_error);
void conf_parts_format_limits(const struct conf_output_limits *limits,
                              struct buf *ret_text);

MUST_CHECK bool conf_parts_parse_save(struct slice text,
                                      struct conf_save *ret_save,
                                      struct conf_error *ret_error);
void conf_parts_format_save(const struct conf_save *save, struct buf *ret_text);

MUST_CHECK bool conf_parts_parse_events(struct slice text, uint32_t *ret_events,
                                        struct conf_error *ret_error);
void conf_parts_format_events(uint32_t events, struct buf *ret_text);

MUST_CHECK bool
conf_parts_parse_percentiles(const struct conf_row *row, struct slice text,
                             struct conf_percentiles *ret_percentiles,
                             struct conf_error *ret_error);
void conf_parts_format_percentiles(const struct conf_percentiles *percentiles,
                                   struct buf *ret_text);
