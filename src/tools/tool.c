/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tool.h"

#include "base/clock.h"
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

enum { TEXT_MAX = 1024, BAR_CELLS = 40 };

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

void
tool_complain_usage(struct tool *tool)
{
    tool_complain(tool, TOOL_USAGE, "see %s --help", tool->name);
}

/* Returns whether the word is this option. *ret_value is the text behind "=",
 * or NULL if there is none. */
static bool
matches(const char *word, const char *name, const char **ret_value)
{
    size_t len = strlen(name);

    if (strncmp(word, name, len) != 0) {
        return false;
    }
    *ret_value = word[len] == '=' ? word + len + 1 : NULL;
    return word[len] == '\0' || word[len] == '=';
}

/* Sets the variable of an option. False if the value is not one of its kind. */
static bool
set(const struct tool_option *option, const char *value)
{
    uint64_t number = 0;
    bool ok = true;

    switch (option->kind) {
    case TOOL_OPTION_ON:
        *(bool *)option->to = true;
        return true;
    case TOOL_OPTION_TEXT:
        *(const char **)option->to = value;
        return true;
    case TOOL_OPTION_NUMBER:
        ok = slice_to_u64(slice_of(value), &number);
        break;
    case TOOL_OPTION_BYTES:
        ok = num_parse_bytes(slice_of(value), &number);
        break;
    }
    if (!ok || number < option->min || number > option->max) {
        return false;
    }
    *(uint64_t *)option->to = number;
    return true;
}

/* Applies the option argv[*at], and moves *at to its last word. */
static bool
apply_option(struct tool *tool, const struct tool_option *options, int argc,
             char **argv, int *at)
{
    const char *word = argv[*at];
    const char *value = NULL;
    const struct tool_option *option = options;

    while (option->name != NULL && !matches(word, option->name, &value)) {
        option++;
    }
    if (option->name == NULL ||
        (option->kind == TOOL_OPTION_ON && value != NULL)) {
        tool_complain(tool, TOOL_USAGE, "%s: no such option", word);
        return false;
    }
    if (option->kind != TOOL_OPTION_ON && value == NULL) {
        if (*at + 1 == argc) {
            tool_complain(tool, TOOL_USAGE, "%s: needs a value", word);
            return false;
        }
        value = argv[++*at];
    }
    if (!set(option, value)) {
        tool_complain(tool, TOOL_USAGE,
                      "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64,
                      option->name, value, option->min, option->max);
        return false;
    }
    return true;
}

bool
tool_parse(struct tool *tool, int argc, char **argv,
           const struct tool_option *options, const char *usage,
           struct tool_words *ret_words)
{
    bool help = false, version = false, quiet = false, only_words = false;
    const struct tool_option common[] = {
        { "--progress", TOOL_OPTION_ON, &tool->bar, 0, 0 },
        { "--no-progress", TOOL_OPTION_ON, &quiet, 0, 0 },
        { "--help", TOOL_OPTION_ON, &help, 0, 0 },
        { "-h", TOOL_OPTION_ON, &help, 0, 0 },
        { "--version", TOOL_OPTION_ON, &version, 0, 0 },
        { "-v", TOOL_OPTION_ON, &version, 0, 0 },
        { NULL, TOOL_OPTION_ON, NULL, 0, 0 },
    };

    tool->bar = isatty(STDERR_FILENO) == 1;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        const char *value;
        const struct tool_option *list = options;

        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
            continue;
        }
        if (only_words || word[0] != '-' || word[1] == '\0') {
            if (ret_words->count == TOOL_WORDS_MAX) {
                tool_complain(tool, TOOL_USAGE, "too many words");
                return false;
            }
            ret_words->words[ret_words->count++] = word;
            continue;
        }
        for (const struct tool_option *option = common; option->name != NULL;
             option++) {
            list = matches(word, option->name, &value) ? common : list;
        }
        if (!apply_option(tool, list, argc, argv, &i)) {
            tool_complain_usage(tool);
            return false;
        }
    }
    tool->bar = tool->bar && !quiet;
    tool->lines = tool->lines && !quiet;
    if (help) {
        (void)fputs(usage, stdout);
    } else if (version) {
        (void)printf("%s %s\n", tool->name, BLOOMERY_VERSION);
    }
    return !help && !version;
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
    /* A file that grows while it is read may go past the end. */
    return tool->done >= tool->total
               ? 100.0
               : (double)tool->done * 100.0 / (double)tool->total;
}

/* Writes "12 of 34 MiB, 5 MiB/s, 0:04 left". */
static void
describe(const struct tool *tool, uint64_t now_ns, char *ret_text)
{
    const char *unit = tool->unit == TOOL_UNIT_MIB ? "MiB" : "items";
    uint64_t scale = tool->unit == TOOL_UNIT_MIB ? 1U << 20 : 1;
    double seconds = (double)(now_ns - tool->begun_ns) / (double)SECOND_NS;
    double rate = seconds > 0 ? (double)tool->done / seconds : 0;
    char of[32] = "", left[32] = "";

    if (tool->total > 0) {
        (void)snprintf(of, sizeof(of), " of %" PRIu64, tool->total / scale);
    }
    if (tool->total > tool->done && rate > 0) {
        double rest = (double)(tool->total - tool->done) / rate;
        uint64_t whole = rest < 1e9 ? (uint64_t)rest : 1000000000;

        (void)snprintf(left, sizeof(left), ", %" PRIu64 ":%02u left",
                       whole / 60, (unsigned)(whole % 60));
    }
    (void)snprintf(ret_text, TEXT_MAX, "%" PRIu64 "%s %s, %.0f %s/s%s",
                   tool->done / scale, of, unit, rate / (double)scale, unit,
                   left);
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
    describe(tool, clock_mono_ns(), text);
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
