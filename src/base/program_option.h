/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A table of a program's options, each with the variable that it sets. Pure,
 * apart from these variables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum program_option_kind {
    PROGRAM_OPTION_ON,     /* to: bool, becomes true */
    PROGRAM_OPTION_TEXT,   /* to: const char * */
    PROGRAM_OPTION_NUMBER, /* to: uint64_t, at least min and at most max */
    PROGRAM_OPTION_BYTES   /* as NUMBER, with a unit such as mb */
};

/* The option --name, which may have a value: "--name value" or "--name=value".
 * A row without a name ends a list. */
struct program_option {
    const char *name;
    enum program_option_kind kind;
    unsigned commands; /* bit n: the n-th command of the program's list, from 0,
                          takes the option; 0: all do */
    void *to;
    uint64_t min, max;
};

/* Returns the row that the word names; if there is none, the row without a name
 * at the end. *ret_value is the text behind "=", or NULL. */
const struct program_option *
program_option_find(const struct program_option *list, const char *word,
                    const char **ret_value);

/* Sets the variable. False: the text is no value of this kind. */
bool program_option_set(const struct program_option *option, const char *value);
