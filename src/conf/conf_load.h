/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where values come from at start and at a reload: an INI file, read with
 * inih, and the command line, which wins. Blocks on the disk. Any
 * thread; one at a time is inside, since inih's settings are global.
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

/* In the directory of option `dir`: what CONFIG REWRITE writes where it cannot
 * write the file. It is read after that, and the command line wins over both.
 */
#define CONF_REWRITTEN_NAME "rewritten.conf"
enum { CONF_REWRITTEN_MAX = 512 };

/* What a command line asks for; the texts are those of argv. */
struct conf_args {
    enum conf_action action;
    const char *print;                  /* with CONF_ACTION_PRINT: what */
    const char *file;                   /* NULL: none was named; "-": standard
                                           input, which is read once and kept */
    char rewritten[CONF_REWRITTEN_MAX]; /* the names of the options that the
                                           file of CONFIG REWRITE in dir gave,
                                           cut to their room */
    bool has_rewritten;                 /* there is one */
    struct conf_notes notes;            /* of what was read and does nothing */
};

/* The longest line of a file, without its end. */
enum { CONF_LINE_MAX = 2048 };

/* Sets what the file says. On failure *ret_error is "path:line: what is
 * wrong" (the first thing that is), and conf holds a part of the file: the
 * caller gives it up. */
MUST_CHECK bool conf_load_file(struct conf *conf, const char *path,
                               struct conf_error *ret_error);

/* The same for the text of a file; path is for messages. */
MUST_CHECK bool conf_load_text(struct conf *conf, const char *path,
                               struct slice text, struct conf_error *ret_error);

/* Where the file of CONFIG REWRITE is, for this value of dir. False if it is
 * too long a path. */
bool conf_rewritten_path(const struct conf *conf, char *ret_path, size_t size);

/* Reads `[file] [--name value | --name=value]...` into conf, which has its
 * defaults: the file first, then that of CONFIG REWRITE. With another action
 * than CONF_ACTION_RUN nothing is read. Failure as in conf_load_file, without a
 * line for what is wrong on the command line itself.
 *
 * A reload calls it again with the same argv and a fresh conf, and then,
 * under the world gate, conf_take(). */
MUST_CHECK bool conf_load_args(struct conf *conf, int argc, char **argv,
                               struct conf_args *ret_args,
                               struct conf_error *ret_error);
