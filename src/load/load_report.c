/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_report.h"

#include <inttypes.h>
#include <stdarg.h>

enum { TEXT_MAX = 1024 };

void
load_report_begin(struct load *load, struct slice what)
{
    char text[TEXT_MAX];

    tool_bar_hide(&load->tool);
    (void)snprintf(text, sizeof(text), "%.*s:", slice_shown(what), what.data);
    tool_print(stdout, text);
    (void)putchar('\n');
}

void
load_report_text(const char *field, const char *text)
{
    (void)printf("    %-18s ", field);
    tool_print(stdout, text);
    (void)putchar('\n');
}

void
load_report_number(const char *field, uint64_t value)
{
    load_report_format(field, "%" PRIu64, value);
}

void
load_report_format(const char *field, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    load_report_text(field, text);
}

void
load_report_lag(struct load *load, uint64_t applied, const uint64_t *behind)
{
    char text[TEXT_MAX], commands[TOOL_SHORT], bytes[TOOL_SHORT];

    (void)snprintf(text, sizeof(text),
                   behind != NULL ? "%s commands applied, lag %s bytes"
                                  : "%s commands applied, lag unknown",
                   tool_short(applied, commands),
                   tool_short(behind != NULL ? *behind : 0, bytes));
    tool_bar_say(&load->tool, text);
}
