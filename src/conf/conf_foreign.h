/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Configuration made for Redis and Valkey: options that are accepted and do
 * nothing here (tbl/redis_options.def), and files in the syntax of redis.conf.
 * Pure.
 */
#pragma once

#include "base/err.h"
#include "conf/conf_error.h"

/* Returns what to use instead of an option of Redis that this server does not
 * have, or NULL. Call conf_find() first: our options win. */
const char *conf_foreign_advice(struct slice name);

/* Takes a value of such an option. Accepts a value that the server obeys
 * anyway. For others, adds the warning "WHERE: NAME does nothing here: ADVICE",
 * or fails with the advice if the option protects or means something that this
 * server does not do. */
MUST_CHECK bool conf_foreign_take(struct slice name, struct slice value,
                                  const char *where, struct conf_notes *notes,
                                  struct conf_error *ret_error);

/* Returns whether a line is one of redis.conf: the name of an option, a blank,
 * and a value. Then *ret_error says so, and how to write the line here; brief:
 * in a few words. */
bool conf_foreign_explains(const char *where, struct slice line, bool brief,
                           struct conf_error *ret_error);
