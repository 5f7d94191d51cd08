/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each field is printed at once, in both forms, so nothing is buffered.
 */
#include "tools/check_card.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

enum { TEXT_MAX = 1024 };

static const struct {
    const char *name;
    int status;
} states[] = {
    [CHECK_STATE_INTACT] = { "intact", CHECK_INTACT },
    [CHECK_STATE_TORN] = { "torn", CHECK_INTACT },
    [CHECK_STATE_DAMAGED] = { "damaged", CHECK_DAMAGED },
    [CHECK_STATE_NEWER] = { "newer", CHECK_NEWER },
    [CHECK_STATE_UNREADABLE] = { "unreadable", CHECK_UNREADABLE },
};

/* Prints a JSON string. Bytes above ASCII stay as they are, so UTF-8 in file
 * names and messages stays UTF-8. */
static void
print_json_text(const char *text)
{
    (void)putchar('"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            (void)printf("\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            (void)printf("\\u%04x", c);
        } else {
            (void)putchar(c);
        }
    }
    (void)putchar('"');
}

static void
begin_field(struct check *check, const char *field)
{
    if (check->json) {
        (void)printf("%s\"%s\":", check->card_empty ? "" : ",", field);
    } else {
        (void)printf("    %-18s ", field);
    }
    check->card_empty = false;
}

static void
end_field(const struct check *check)
{
    if (!check->json) {
        (void)putchar('\n');
    }
}

enum check_state
check_card_failure(const char *reason)
{
    return strstr(reason, "hash-secret-file") != NULL ? CHECK_STATE_UNREADABLE
                                                      : CHECK_STATE_DAMAGED;
}

int
check_card_status(enum check_state state)
{
    return states[state].status;
}

void
check_card_begin(struct check *check, const char *path, const char *kind,
                 enum check_state state)
{
    tool_bar_hide(&check->tool);
    tool_raise(&check->tool, states[state].status);
    if (check->json) {
        (void)putchar('{');
        check->card_empty = true;
        check_card_text(check, "path", path);
        check_card_text(check, "kind", kind);
        check_card_text(check, "status", states[state].name);
        return;
    }
    tool_print(stdout, path);
    (void)printf(": %s, %s\n", kind, states[state].name);
}

void
check_card_number(struct check *check, const char *field, uint64_t value)
{
    begin_field(check, field);
    (void)printf("%llu", (unsigned long long)value);
    end_field(check);
}

void
check_card_text(struct check *check, const char *field, const char *text)
{
    begin_field(check, field);
    if (check->json) {
        print_json_text(text);
    } else {
        tool_print(stdout, text);
    }
    end_field(check);
}

void
check_card_format(struct check *check, const char *field, const char *format,
                  ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    check_card_text(check, field, text);
}

void
check_card_time(struct check *check, const char *field, uint64_t ms)
{
    char text[CHECK_TIME_BYTES];

    if (ms == 0) {
        return;
    }
    if (check->json) {
        check_card_number(check, field, ms);
        return;
    }
    check_format_time(ms, text);
    check_card_text(check, field, text);
}

void
check_card_end(struct check *check)
{
    if (check->json) {
        (void)fputs("}\n", stdout);
    }
    (void)fflush(stdout);
}

void
check_format_time(uint64_t ms, char *ret_text)
{
    /* A time beyond the year 9999 is damage: show the number. */
    const uint64_t end_ms = 253402300800000;
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;

    if (ms >= end_ms || gmtime_r(&seconds, &utc) == NULL) {
        (void)snprintf(ret_text, CHECK_TIME_BYTES, "%llums",
                       (unsigned long long)ms);
        return;
    }
    (void)snprintf(
        ret_text, CHECK_TIME_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
        ((unsigned)utc.tm_year + 1900) % 10000,
        (unsigned)(utc.tm_mon + 1) % 100, (unsigned)utc.tm_mday % 100,
        (unsigned)utc.tm_hour % 100, (unsigned)utc.tm_min % 100,
        (unsigned)utc.tm_sec % 100, (unsigned)(ms % 1000));
}
