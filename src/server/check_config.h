/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What can be wrong with a configuration whose values are all valid: options
 * that contradict each other, and files that they name. --check-config looks
 * for all of these mistakes, and so does a start.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct conf;
struct conf_args;

/* Returns whether the options fit together; else appends all reasons, a line
 * each. Pure. */
bool check_options(const struct conf *conf, struct buf *ret_reasons);

/* Prints the warnings and all mistakes, or that there are none. Reads the files
 * of the options tls-* and aclfile; opens no socket and no data. Returns an
 * exit status. */
int check_config(const struct conf *conf, struct conf_args *args);
