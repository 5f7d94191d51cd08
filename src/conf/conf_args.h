/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the values at the start and at a reload: the file that the command line
 * names, then rewritten.conf, then the command line itself. Any thread; blocks
 * on the disk.
 */
#pragma once

#include "conf/conf.h"

enum conf_action {
    CONF_ACTION_RUN,
    CONF_ACTION_HELP,    /* --help, -h */
    CONF_ACTION_VERSION, /* --version, -v */
    CONF_ACTION_PRINT,   /* --print=<what> */
    CONF_ACTION_PLAN,    /* --plan <words>: the rest of the command line */
    CONF_ACTION_CHECK,   /* --check-config, then as for RUN */
    CONF_ACTION_CONVERT, /* --convert <file> */
    CONF_ACTION_PING, /* --ping or --ping=<how>, then words --ping-..., then as
                         for RUN */
};

/* What CONFIG REWRITE writes, in the directory of option `dir`. It is read
 * after the configuration file and wins over it; the command line wins over
 * both. */
#define CONF_REWRITTEN_NAME "rewritten.conf"
enum { CONF_REWRITTEN_PATH_MAX = CONF_VALUE_MAX + sizeof(CONF_REWRITTEN_NAME) };

/* What a command line asks for; the texts are those of argv. */
struct conf_args {
    enum conf_action action;
    const char *convert;     /* with CONF_ACTION_CONVERT: the file */
    const char *print;       /* with CONF_ACTION_PRINT: what */
    const char *ping;        /* with CONF_ACTION_PING: how; "" without = */
    int ping_words;          /* and the number of words --ping-... after it */
    const char *file;        /* NULL: none; "-": standard input, which is read
                                once and kept */
    struct conf_notes notes; /* about what was read and does nothing */
    struct buf mistakes;     /* with CONF_ACTION_CHECK: all of them, a line
                                each; the caller frees it */
    bool overridden[CONF_OPTION_COUNT]; /* rewritten.conf overrides the option:
                                           without it the option has another
                                           value */
};

/* Writes the path of rewritten.conf for this value of `dir`. */
void conf_rewritten_path(const struct conf *conf,
                         char ret_path[CONF_REWRITTEN_PATH_MAX]);

/* Reads `[file] [--name value | --name=value]...` into conf, which has its
 * defaults: the file, then rewritten.conf, then the command line. *ret_given
 * gets the values without those of rewritten.conf; the caller frees it. With
 * the actions HELP, VERSION, PRINT, PLAN and CONVERT nothing is read. Then, and
 * on failure, *ret_given is untouched. The error has the form of
 * conf_load_file's, without a line for a mistake on the command line itself.
 * With CONF_ACTION_CHECK mistakes go to ret_args->mistakes, and only missing
 * memory, or standard input that cannot be read, fails.
 *
 * A reload calls it again with the same argv and a fresh conf, and then, under
 * the raised gate, conf_take(). */
MUST_CHECK bool conf_args_load(struct conf *conf, struct conf *ret_given,
                               int argc, char **argv,
                               struct conf_args *ret_args,
                               struct conf_error *ret_error);
