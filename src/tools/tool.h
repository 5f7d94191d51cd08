/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs beside the server share: the exit status, messages on
 * standard error, the command line, and the progress. One thread.
 */
#pragma once

#include "base/err.h"
#include "base/program_option.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses that all programs have. If there are several, the highest wins.
 */
enum { TOOL_USAGE = 2, TOOL_UNREADABLE = 3 };

enum tool_unit { TOOL_UNIT_NONE, TOOL_UNIT_MIB, TOOL_UNIT_ITEMS };

struct tool {
    const char *name; /* name of the program */
    int status;

    bool bar; /* draw the progress on standard error */
    bool bar_shown;
    bool lines; /* without a bar, print a line every ten seconds */
    enum tool_unit unit;
    uint64_t done, total; /* bytes or items; total 0: unknown */
    uint64_t begun_ns, drawn_ns;
};

/* Raises the exit status to this one, if it is higher. */
void tool_raise(struct tool *tool, int status);

/* Prints a line on standard error and raises the exit status. */
__attribute__((format(printf, 3, 4))) void
tool_complain(struct tool *tool, int status, const char *format, ...);

/* Prints text without control bytes, which could reprogram a terminal. */
void tool_print(FILE *to, const char *text);

/* Returns the exit status, after all output was written. */
int tool_end(struct tool *tool);

/* ---- the command line ---------------------------------------------------- */

/* A command of a program. takes: its arguments, one word for each: "KEY",
 * "PATH..." for at least one, "[FILE]..." for any number. help: what `program
 * help NAME` prints. A row without a name ends a list. */
struct tool_command {
    const char *name, *takes, *help;
};

/* What a program offers: at most 64 options. */
struct tool_interface {
    const struct tool_command *commands;
    const struct program_option *options;
    const char *usage;
};

enum { TOOL_WORDS_MAX = 1024 };
struct tool_words {
    const char *words[TOOL_WORDS_MAX];
    int count;
};

/* Parses the words; options may stand anywhere before "--". All programs have
 * --help, --version, --progress and --no-progress, `help [COMMAND]`, and
 * --print=words: the commands and options, a line each, for the completion of
 * shells. An option that the command does not take is a mistake, as is an
 * argument that is missing or too many. Returns false if there is nothing left
 * to do: one of these was answered, or a mistake was printed. */
bool tool_parse(struct tool *tool, int argc, char **argv,
                const struct tool_interface *interface,
                struct tool_words *ret_words);

/* ---- progress ------------------------------------------------------------ */

/* Writes a number below 10,000 whole, and others with three digits and a unit,
 * as in 12.3M, so that lines of progress fit 60 columns. Returns the text. */
enum { TOOL_SHORT = 8 };
char *tool_short(uint64_t n, char ret_text[TOOL_SHORT]);

/* Begins a bar; a total of 0 is unknown. With TOOL_UNIT_NONE there is no bar.
 */
void tool_bar_begin(struct tool *tool, enum tool_unit unit, uint64_t total);

/* Counts bytes or items as done. Cheap: redraws a few times a second. */
void tool_bar_add(struct tool *tool, uint64_t count);
void tool_bar_end(struct tool *tool);

/* Shows a text in place of the bar, as often as a bar is drawn. */
void tool_bar_say(struct tool *tool, const char *text);

/* Erases the bar, before other output goes to the terminal. */
void tool_bar_hide(struct tool *tool);
