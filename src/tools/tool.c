/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tool.h"

#include "base/clock.h"

#include <bloomery_version.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

enum { TEXT_MAX = 1024, BAR_CELLS = 8 };

#define SECOND_NS    UINT64_C(1000000000)
#define BAR_PAUSE_NS (SECOND_NS / 10)
#define LINE_NS      (10 * SECOND_NS)

void
tool_raise(struct tool *tool, int status)
{
    if (status > tool->status) {
        tool->status = status;
    }
}

void
tool_print(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        (void)fputc(c < 0x20 || c == 0x7f ? '?' : c, to);
    }
}

void
tool_complain(struct tool *tool, int status, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    tool_bar_hide(tool);
    (void)fflush(stdout);
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fprintf(stderr, "%s: ", tool->name);
    tool_print(stderr, text);
    (void)fputc('\n', stderr);
    tool_raise(tool, status);
}

int
tool_end(struct tool *tool)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tool_complain(tool, TOOL_UNREADABLE,
                      "standard output: cannot be written: %s",
                      strerror(errno));
    }
    return tool->status;
}

/* ---- the command line ---------------------------------------------------- */

/* Returns the command that the word with the index `at` names; NULL: there is
 * none. */
static const struct tool_command *
find_command(const struct tool_interface *interface,
             const struct tool_words *words, int at)
{
    const struct tool_command *command = interface->commands;

    if (at >= words->count) {
        return NULL;
    }
    while (command->name != NULL &&
           strcmp(command->name, words->words[at]) != 0) {
        command++;
    }
    return command->name != NULL ? command : NULL;
}

/* Says where the usage is described. If the words begin with a command, this
 * is the command's usage, else the program's. */
static void
complain_usage(struct tool *tool, const struct tool_interface *interface,
               const struct tool_words *words)
{
    const struct tool_command *command = find_command(interface, words, 0);

    if (command != NULL) {
        tool_complain(tool, TOOL_USAGE, "see %s help %s", tool->name,
                      command->name);
    } else {
        tool_complain(tool, TOOL_USAGE, "see %s --help", tool->name);
    }
}

/* Options that all programs have. */
struct common {
    bool help, version, quiet;
    const char *print; /* NULL: not asked for */
    struct program_option list[8];
    /* The given options that only some commands take. Bit i stands for option i
     * of the program's list. */
    uint64_t limited;
};

/* Applies the option argv[*at], and moves *at to its last word. */
static bool
apply_option(struct tool *tool, struct common *common,
             const struct program_option *options, int argc, char **argv,
             int *at)
{
    const char *word = argv[*at];
    const char *value = NULL;
    const struct program_option *option =
        program_option_find(options, word, &value);

    if (option->name == NULL ||
        (option->kind == PROGRAM_OPTION_ON && value != NULL)) {
        tool_complain(tool, TOOL_USAGE, "%s: no such option", word);
        return false;
    }
    if (option->kind != PROGRAM_OPTION_ON && value == NULL) {
        if (*at + 1 == argc) {
            tool_complain(tool, TOOL_USAGE, "%s: needs a value", word);
            return false;
        }
        value = argv[++*at];
    }
    if (!program_option_set(option, value)) {
        tool_complain(tool, TOOL_USAGE,
                      "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64,
                      option->name, value, option->min, option->max);
        return false;
    }
    if (option->commands != 0) {
        CHECK(option - options < 64);
        common->limited |= UINT64_C(1) << (option - options);
    }
    return true;
}

static void
init_common(struct common *common, struct tool *tool)
{
    const struct program_option list[] = {
        { "--progress", PROGRAM_OPTION_ON, 0, &tool->bar, 0, 0 },
        { "--no-progress", PROGRAM_OPTION_ON, 0, &common->quiet, 0, 0 },
        { "--help", PROGRAM_OPTION_ON, 0, &common->help, 0, 0 },
        { "-h", PROGRAM_OPTION_ON, 0, &common->help, 0, 0 },
        { "--version", PROGRAM_OPTION_ON, 0, &common->version, 0, 0 },
        { "-v", PROGRAM_OPTION_ON, 0, &common->version, 0, 0 },
        { "--print", PROGRAM_OPTION_TEXT, 0, &common->print, 0, 0 },
        { NULL, PROGRAM_OPTION_ON, 0, NULL, 0, 0 },
    };

    *common = (struct common){ .help = false };
    memcpy(common->list, list, sizeof(list));
}

/* Reads one option and its value. False: a mistake. */
static bool
read_word(struct tool *tool, const struct program_option *options,
          struct common *common, int argc, char **argv, int *at)
{
    const char *value;

    if (program_option_find(common->list, argv[*at], &value)->name != NULL) {
        options = common->list;
    }
    return apply_option(tool, common, options, argc, argv, at);
}

static bool
read_words(struct tool *tool, const struct program_option *options,
           struct common *common, int argc, char **argv,
           struct tool_words *ret_words)
{
    bool only_words = false;

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];

        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (only_words || word[0] != '-' || word[1] == '\0') {
            if (ret_words->count == TOOL_WORDS_MAX) {
                tool_complain(tool, TOOL_USAGE, "too many words");
                return false;
            }
            ret_words->words[ret_words->count++] = word;
        } else if (!read_word(tool, options, common, argc, argv, &i)) {
            return false;
        }
    }
    return true;
}

static void
print_words(struct tool *tool, const struct tool_interface *interface,
            const struct common *common)
{
    if (strcmp(common->print, "words") != 0) {
        tool_complain(tool, TOOL_USAGE, "--print takes words, not %s",
                      common->print);
        return;
    }
    for (const struct tool_command *command = interface->commands;
         command->name != NULL; command++) {
        (void)printf("%s\n", command->name);
    }
    (void)printf("help\n");
    for (const struct program_option *option = interface->options;
         option->name != NULL; option++) {
        (void)printf("%s\n", option->name);
    }
    for (const struct program_option *option = common->list;
         option->name != NULL; option++) {
        (void)printf("%s\n", option->name);
    }
}

/* Prints the help of a command, the word `at`, or that of the program. */
static void
print_help(struct tool *tool, const struct tool_interface *interface,
           const struct tool_words *words, int at)
{
    const struct tool_command *command = find_command(interface, words, at);

    if (command == NULL && at < words->count) {
        tool_complain(tool, TOOL_USAGE, "%s: no such command, see %s --help",
                      words->words[at], tool->name);
    } else {
        (void)fputs(command != NULL ? command->help : interface->usage, stdout);
    }
}

/* Complains about an option that the command does not take. This waits until
 * all words are read, because options may stand before the command. */
static bool
check_options(struct tool *tool, const struct tool_interface *interface,
              const struct tool_words *words, const struct common *common)
{
    const struct tool_command *command = find_command(interface, words, 0);
    const struct program_option *option = interface->options;
    uint64_t left = command != NULL ? common->limited : 0;

    for (; left != 0; left >>= 1, option++) {
        if ((left & 1) != 0 &&
            (option->commands >> (command - interface->commands) & 1) == 0) {
            tool_complain(
                tool, TOOL_USAGE, "%s is not an option of %s: see %s help %s",
                option->name, command->name, tool->name, command->name);
            return false;
        }
    }
    return true;
}

/* Names the argument that is missing, or the first one too many. */
static bool
check_count(struct tool *tool, const struct tool_command *command,
            const struct tool_words *words)
{
    const char *takes = command->takes;
    int at = 1;

    while (*takes != '\0') {
        int len = (int)strcspn(takes, " .");
        bool many = takes[len] == '.';

        if (at == words->count && takes[0] != '[') {
            tool_complain(tool, TOOL_USAGE,
                          "%s: %.*s is missing, see %s help %s", command->name,
                          len, takes, tool->name, command->name);
            return false;
        }
        at = many ? words->count : at + 1;
        takes += strcspn(takes, " ");
        takes += strspn(takes, " ");
    }
    if (at < words->count) {
        tool_complain(
            tool, TOOL_USAGE, "%s: %s is one argument too many, see %s help %s",
            command->name, words->words[at], tool->name, command->name);
    }
    return at >= words->count;
}

static bool
check_command(struct tool *tool, const struct tool_interface *interface,
              const struct tool_words *words, const struct common *common)
{
    const struct tool_command *command = find_command(interface, words, 0);

    if (command != NULL) {
        return check_options(tool, interface, words, common) &&
               check_count(tool, command, words);
    }
    if (words->count > 0) {
        tool_complain(tool, TOOL_USAGE, "%s: no such command, see %s --help",
                      words->words[0], tool->name);
    } else {
        tool_complain(tool, TOOL_USAGE, "a command is missing, see %s --help",
                      tool->name);
    }
    return false;
}

bool
tool_parse(struct tool *tool, int argc, char **argv,
           const struct tool_interface *interface, struct tool_words *ret_words)
{
    struct common common;
    bool asks;

    init_common(&common, tool);
    tool->bar = isatty(STDERR_FILENO) == 1;
    if (!read_words(tool, interface->options, &common, argc, argv, ret_words)) {
        complain_usage(tool, interface, ret_words);
        return false;
    }
    tool->bar = tool->bar && !common.quiet;
    tool->lines = tool->lines && !common.quiet;
    asks = ret_words->count > 0 && strcmp(ret_words->words[0], "help") == 0;
    if (common.help || asks) {
        print_help(tool, interface, ret_words, asks ? 1 : 0);
    } else if (common.version) {
        (void)printf("%s %s\n", tool->name, BLOOMERY_VERSION);
    } else if (common.print != NULL) {
        print_words(tool, interface, &common);
    } else {
        return check_command(tool, interface, ret_words, &common);
    }
    return false;
}

/* ---- progress ------------------------------------------------------------ */

void
tool_bar_hide(struct tool *tool)
{
    if (tool->bar_shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        tool->bar_shown = false;
    }
}

void
tool_bar_begin(struct tool *tool, enum tool_unit unit, uint64_t total)
{
    tool->unit = unit;
    tool->total = total;
    tool->done = 0;
    tool->begun_ns = clock_mono_ns();
    tool->drawn_ns = tool->lines && !tool->bar ? tool->begun_ns : 0;
    tool_bar_add(tool, 0);
}

static double
percent(const struct tool *tool)
{
    /* `done` may exceed `total` if a file grows while it is read. */
    return tool->done >= tool->total
               ? 100.0
               : (double)tool->done * 100.0 / (double)tool->total;
}

char *
tool_short(uint64_t n, char ret_text[TOOL_SHORT])
{
    static const char units[] = " kMGTPE";
    double value = (double)n;
    unsigned unit = 0;

    if (n < 10000) {
        (void)snprintf(ret_text, TOOL_SHORT, "%" PRIu64, n);
        return ret_text;
    }
    while (value >= 999.5) {
        value /= 1000;
        unit++;
    }
    if (value < 9.995) {
        (void)snprintf(ret_text, TOOL_SHORT, "%.2f%c", value, units[unit]);
    } else if (value < 99.95) {
        (void)snprintf(ret_text, TOOL_SHORT, "%.1f%c", value, units[unit]);
    } else {
        (void)snprintf(ret_text, TOOL_SHORT, "%.0f%c", value, units[unit]);
    }
    return ret_text;
}

/* Writes "12 of 34 MiB, 5/s, 0:04 left", at most 42 bytes. */
static void
describe_progress(const struct tool *tool, uint64_t now_ns, char *ret_text)
{
    const char *unit = tool->unit == TOOL_UNIT_MIB ? "MiB" : "items";
    uint64_t scale = tool->unit == TOOL_UNIT_MIB ? 1U << 20 : 1;
    double seconds = (double)(now_ns - tool->begun_ns) / (double)SECOND_NS;
    double rate = seconds > 0 ? (double)tool->done / seconds : 0;
    char done[TOOL_SHORT], total[TOOL_SHORT], each[TOOL_SHORT];
    char of[32] = "", left[32] = "";

    if (tool->total > 0) {
        (void)snprintf(of, sizeof(of), " of %s",
                       tool_short(tool->total / scale, total));
    }
    if (tool->total > tool->done && rate > 0) {
        double rest = (double)(tool->total - tool->done) / rate;
        uint64_t whole = rest < 1e9 ? (uint64_t)rest : 1000000000;

        if (whole < 60000) {
            (void)snprintf(left, sizeof(left), ", %" PRIu64 ":%02u left",
                           whole / 60, (unsigned)(whole % 60));
        } else if (whole < 36000000) {
            (void)snprintf(left, sizeof(left), ", %" PRIu64 " h left",
                           whole / 3600);
        }
    }
    rate = rate / (double)scale < 1e18 ? rate / (double)scale : 1e18;
    (void)snprintf(ret_text, TEXT_MAX, "%s%s %s, %s/s%s",
                   tool_short(tool->done / scale, done), of, unit,
                   tool_short((uint64_t)(rate + 0.5), each), left);
}

/* Returns whether it is time to draw. */
static bool
is_due(const struct tool *tool)
{
    return (tool->bar || tool->lines) &&
           (tool->drawn_ns == 0 || clock_mono_ns() - tool->drawn_ns >=
                                       (tool->bar ? BAR_PAUSE_NS : LINE_NS));
}

static void
draw(struct tool *tool, const char *text)
{
    tool->drawn_ns = clock_mono_ns();
    if (tool->bar) {
        (void)fprintf(stderr, "\r\033[K%s", text);
        (void)fflush(stderr);
        tool->bar_shown = true;
    } else {
        (void)fprintf(stderr, "%s: %s\n", tool->name, text);
    }
}

void
tool_bar_say(struct tool *tool, const char *text)
{
    if (is_due(tool)) {
        draw(tool, text);
    }
}

void
tool_bar_add(struct tool *tool, uint64_t count)
{
    char text[TEXT_MAX], line[TEXT_MAX + BAR_CELLS + 32];
    char cells[BAR_CELLS + 1];

    tool->done += count;
    if (tool->unit == TOOL_UNIT_NONE || !is_due(tool)) {
        return;
    }
    describe_progress(tool, clock_mono_ns(), text);
    if (!tool->bar || tool->total == 0) {
        draw(tool, text);
        return;
    }
    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', (size_t)(percent(tool) * BAR_CELLS / 100));
    cells[BAR_CELLS] = '\0';
    (void)snprintf(line, sizeof(line), "[%s] %3.0f %%  %s", cells,
                   percent(tool), text);
    draw(tool, line);
}

void
tool_bar_end(struct tool *tool)
{
    tool_bar_hide(tool);
    tool->unit = TOOL_UNIT_NONE;
}
