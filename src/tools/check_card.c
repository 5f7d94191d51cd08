/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Both forms are written as the fields come, so nothing is kept. The bar is
 * erased before anything else goes to the terminal.
 */
#include "tools/check_card.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { TEXT_MAX = 1024, BAR_CELLS = 40, BAR_PAUSE_NS = 100 * 1000 * 1000 };

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

static void
hide_bar(struct check *check)
{
    if (check->bar_shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        check->bar_shown = false;
    }
}

/* A JSON string. File names and messages may hold any byte: what is not
 * ASCII stays as it is, so UTF-8 stays UTF-8. */
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

/* Text for a terminal: no control bytes. */
static void
print_plain(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        (void)fputc(c < 0x20 || c == 0x7f ? '?' : c, to);
    }
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

void
check_card_begin(struct check *check, const char *path, const char *kind,
                 enum check_state state)
{
    hide_bar(check);
    check_found(check, states[state].status);
    if (check->json) {
        (void)putchar('{');
        check->card_empty = true;
        check_card_text(check, "path", path);
        check_card_text(check, "kind", kind);
        check_card_text(check, "status", states[state].name);
        return;
    }
    print_plain(stdout, path);
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
        print_plain(stdout, text);
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
check_complain(struct check *check, int status, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    hide_bar(check);
    (void)fflush(stdout);
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fputs("bloomery-check: ", stderr);
    print_plain(stderr, text);
    (void)fputc('\n', stderr);
    check_found(check, status);
}

void
check_format_time(uint64_t ms, char *ret_text)
{
    /* Beyond the year 9999 it is no time but damage; the number tells. */
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

void
check_bar_begin(struct check *check, uint64_t total_bytes)
{
    check->bar_total = total_bytes;
    check->bar_done = 0;
    check->bar_drawn_ns = 0;
    check_bar_add(check, 0);
}

void
check_bar_add(struct check *check, uint64_t bytes)
{
    char cells[BAR_CELLS + 1];
    uint64_t now_ns, full, percent;

    check->bar_done += bytes;
    if (!check->bar || check->bar_total == 0) {
        return;
    }
    now_ns = clock_mono_ns();
    if (check->bar_drawn_ns != 0 &&
        now_ns - check->bar_drawn_ns < BAR_PAUSE_NS) {
        return;
    }
    check->bar_drawn_ns = now_ns;
    /* A file that grows while it is read may go past the end. */
    percent = check->bar_done >= check->bar_total
                  ? 100
                  : (uint64_t)((double)check->bar_done * 100.0 /
                               (double)check->bar_total);
    full = percent * BAR_CELLS / 100;
    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', full);
    cells[BAR_CELLS] = '\0';
    (void)fprintf(stderr, "\r[%s] %3u %%  %llu of %llu MiB", cells,
                  (unsigned)percent,
                  (unsigned long long)(check->bar_done >> 20),
                  (unsigned long long)(check->bar_total >> 20));
    (void)fflush(stderr);
    check->bar_shown = true;
}

void
check_bar_end(struct check *check)
{
    hide_bar(check);
    check->bar_total = 0;
}
