/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What people bring along from Redis and Valkey: options that do no harm here
 * (tbl/redis_options.def), and files in the syntax of redis.conf. Pure.
 */
#pragma once

#include "conf/conf_error.h"

/* What to use instead of an option of Redis that is accepted and does nothing;
 * NULL: it is none of them. Ours come first, so ask conf_find before. */
const char *conf_foreign_advice(struct slice name);

/* Adds the warning for such an option: "WHERE: NAME does nothing here: ADVICE".
 * False: it is none. */
bool conf_foreign_accept(struct slice name, const char *where,
                         struct conf_notes *notes);

/* Whether a line is one of redis.conf: `name value` with blanks between, and
 * the name is an option. Then *ret_error says so and how to write it here. */
bool conf_foreign_explains(const char *where, struct slice line,
                           struct conf_error *ret_error);
