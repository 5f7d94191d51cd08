/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads values from INI files, with inih. Blocks on the disk. Any thread; a
 * mutex admits one at a time, since inih's settings are global.
 *
 * The file has [section] lines and name = value lines; only lines that begin
 * with # or ; are comments. Blanks around a value, and then one pair of double
 * quotes, are removed. If a name occurs twice, the last value counts; the rules
 * of `save` add up.
 */
#pragma once

#include "conf/conf.h"

/* The longest line of a file, without its end. */
enum { CONF_LINE_MAX = CONF_LIST_MAX + 1024 };

/* Sets the options that the file gives; "-": standard input, which is read once
 * and kept. With source->mistakes, all mistakes go there, a line each, all
 * other options are set, and only missing memory, or standard input that cannot
 * be read, fails. Without it, fails as conf_load_file does. */
struct conf_source;
MUST_CHECK bool conf_load_source(const struct conf_source *source,
                                 const char *path,
                                 struct conf_error *ret_error);

/* Does the same with the files of `--include PATTERN`. */
MUST_CHECK bool conf_load_pattern(const struct conf_source *source,
                                  struct slice pattern,
                                  struct conf_error *ret_error);

/* Sets the options that the file gives; notes may be NULL. On failure
 * *ret_error is "path:line: what is wrong", for the first mistake, and conf has
 * the options up to it: the caller frees it. */
MUST_CHECK bool conf_load_file(struct conf *conf, const char *path,
                               struct conf_notes *notes,
                               struct conf_error *ret_error);

/* Sets the options in the text of a file, as conf_load_file does. The messages
 * name `path`. */
MUST_CHECK bool conf_load_text(struct conf *conf, const char *path,
                               struct slice text, struct conf_notes *notes,
                               struct conf_error *ret_error);
