/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One value of an option, outside of struct conf: a parser and a formatter for
 * each type. Error texts are Redis 7.0.15's and, for bf.*, valkey-bloom's.
 * Pure.
 */
#pragma once

#include "base/buf.h"
#include "conf/conf_error.h"
#include "conf/conf_types.h"

/* row->type selects the member; the value owns its text. */
union conf_value {
    bool flag;
    int64_t number;
    uint64_t bytes;
    unsigned mode;
    int choice;
    char *text;
    struct conf_rate rate;
    struct conf_output_limits limits;
    struct conf_save save;
    uint32_t events;
    struct conf_percentiles percentiles;
};

MUST_CHECK bool conf_value_parse(const struct conf_row *row, struct slice text,
                                 union conf_value *ret_value,
                                 struct conf_error *ret_error);

void conf_value_free(const struct conf_row *row, union conf_value *value);

/* Appends a text that conf_value_parse reads back, with secrets in clear. */
void conf_value_format(const struct conf_row *row,
                       const union conf_value *value, struct buf *ret_text);

/* Fills in the parts that the text of a value left out. */
void conf_value_complete(const struct conf_row *row, union conf_value *value,
                         const union conf_value *before);

bool conf_value_equal(const struct conf_row *row, const union conf_value *a,
                      const union conf_value *b);

/* Appends the accepted values, for documentation: "0 to 65535". */
void conf_value_describe(const struct conf_row *row, struct buf *ret_text);
