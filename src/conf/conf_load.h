/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where values come from at start and at a reload: an INI file, read with
 * inih, and the command line, which wins. Blocks on the disk; inih's settings
 * are global, so one thread at a time (loop 0).
 *
 * The file has [section] lines and name = value lines; lines that begin with
 * # or ; are comments, and nothing else is one. Blanks around a value do not
 * count; one pair of double quotes around it is taken off. A name that stands
 * twice has its last value, but for `save`, whose rules add up.
 */
#pragma once

#include "conf/conf.h"

enum conf_action {
    CONF_ACTION_RUN,
    CONF_ACTION_HELP,    /* --help, -h */
    CONF_ACTION_VERSION, /* --version, -v */
    CONF_ACTION_PRINT,   /* --print=<what> */
};

/* What a command line asks for; the texts are those of argv. */
struct conf_args {
    enum conf_action action;
    const char *print; /* with CONF_ACTION_PRINT: what */
    const char *file;  /* NULL: none was named */
};

/* The longest line of a file, without its end. */
enum { CONF_LINE_MAX = 2048 };

/* Sets what the file says. On failure *ret_error is "path:line: what is
 * wrong" (the first thing that is), and conf holds a part of the file: the
 * caller gives it up. */
MUST_CHECK bool conf_load_file(struct conf *conf, const char *path,
                               struct conf_error *ret_error);

/* Reads `[file] [--name value | --name=value]...` into conf, which has its
 * defaults: the file first. With another action than CONF_ACTION_RUN nothing
 * is read. Failure as in conf_load_file, without a line for what is wrong on
 * the command line itself.
 *
 * A reload calls it again with the same argv and a fresh conf, and then,
 * under the world gate, conf_take(). */
MUST_CHECK bool conf_load_args(struct conf *conf, int argc, char **argv,
                               struct conf_args *ret_args,
                               struct conf_error *ret_error);
