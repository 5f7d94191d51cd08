/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CONFIG REWRITE, text to text: how a configuration file has to look so that
 * the next start finds the values that are in force now. Nothing here touches
 * a disk.
 */
#pragma once

#include "conf/conf.h"

/* Rewrites what a file holds. Its comments, its order and its other lines stay
 * as they are. An option that can change at run time gets the value in force,
 * behind its name if it stands there, else below the comment that shows its
 * default, at the end of its section, or in a new section at the end. An option
 * that needs a restart keeps the line that it has: what stands there was meant
 * for the next start.
 *
 * On failure *ret_text is undefined, and *ret_error says why: "name:line: ..."
 * for a text that would not load as it is, or which value no line can hold. */
MUST_CHECK bool conf_rewrite(const struct conf *conf, const char *name,
                             struct slice text, struct buf *ret_text,
                             struct conf_error *ret_error);

/* A whole file, to be read after another one that gives the values of `base`:
 * all options that are different in conf, but for `dir`, where that file is,
 * and for those that need a restart and are not as by default in base. Without
 * base, which nobody knows then: all options that can change at run time. */
MUST_CHECK bool conf_rewrite_beside(const struct conf *conf,
                                    const struct conf *base,
                                    struct buf *ret_text,
                                    struct conf_error *ret_error);
