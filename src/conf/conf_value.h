/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One value of an option, apart from struct conf: text to value and back by
 * the type of its row. Texts of refusals are Redis 7.0.15's and, for bf.*,
 * valkey-bloom's. Pure.
 */
#pragma once

#include "base/buf.h"
#include "conf/conf_error.h"
#include "conf/conf_types.h"

/* The member that counts is the one of row->type; text is owned. */
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

/* A text that conf_value_parse reads back; secrets in clear. */
void conf_value_format(const struct conf_row *row,
                       const union conf_value *value, struct buf *ret_text);

/* Fills in what the text of a value left as it was. */
void conf_value_complete(const struct conf_row *row, union conf_value *value,
                         const union conf_value *before);

bool conf_value_equal(const struct conf_row *row, const union conf_value *a,
                      const union conf_value *b);

/* What values the option takes, for documentation: "0 to 65535". */
void conf_value_describe(const struct conf_row *row, struct buf *ret_text);
