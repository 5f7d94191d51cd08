/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of rewritten.conf, which CONFIG REWRITE writes so that the changes
 * of CONFIG SET last, and the text of a file with given options. Pure.
 */
#pragma once

#include "conf/conf.h"

/* Appends a whole file that is read after the configuration file. It sets every
 * option that can change at run time and whose values in `conf` and `given`
 * differ; `given` has the values of the configuration file and the command
 * line. A password that is in a file of its own is left out. Fails if no line
 * of a file can hold a value, or without memory; *ret_text is undefined then.
 */
MUST_CHECK bool conf_rewrite(const struct conf *conf, const struct conf *given,
                             struct buf *ret_text,
                             struct conf_error *ret_error);

/* Appends the sections with all options that differ, even those that cannot
 * change at run time. */
MUST_CHECK bool conf_rewrite_all(const struct conf *conf,
                                 const struct conf *given, struct buf *ret_text,
                                 struct conf_error *ret_error);
