/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields are printed at once. But if a verdict has to come first, the cards are
 * gathered in memory until then.
 */
#include "check/check_card.h"

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

/* Returns where reports go: standard error while standard output carries an
 * archive (backup --tar) or commands (cat). */
static FILE *
report_file(const struct check *check)
{
    return check->tar || check->reads_only ? stderr : stdout;
}

static FILE *
out(const struct check *check)
{
    return check->cards != NULL ? check->cards : report_file(check);
}

/* Prints a JSON string. Bytes above ASCII stay as they are, so UTF-8 in file
 * names and messages stays UTF-8. */
static void
print_json_text(const struct check *check, const char *text)
{
    FILE *to = out(check);

    (void)putc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            (void)fprintf(to, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            (void)fprintf(to, "\\u%04x", c);
        } else {
            (void)putc(c, to);
        }
    }
    (void)putc('"', to);
}

static void
begin_field(struct check *check, const char *field)
{
    if (check->json) {
        (void)fprintf(out(check), "%s\"%s\":", check->card_empty ? "" : ",",
                      field);
    } else {
        (void)fprintf(out(check), "    %-18s ", field);
    }
    check->card_empty = false;
}

static void
end_field(const struct check *check)
{
    if (!check->json) {
        (void)putc('\n', out(check));
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
    check->files += strcmp(kind, "journal") != 0 &&
                    strcmp(kind, "data directory") != 0 &&
                    strcmp(kind, "outside") != 0;
    check->worst = state > check->worst ? state : check->worst;
    if (check->json) {
        (void)putc('{', out(check));
        check->card_empty = true;
        check_card_text(check, "path", path);
        check_card_text(check, "kind", kind);
        check_card_text(check, "status", states[state].name);
        return;
    }
    tool_print(out(check), path);
    (void)fprintf(out(check), ": %s, %s\n", kind, states[state].name);
}

void
check_card_number(struct check *check, const char *field, uint64_t value)
{
    begin_field(check, field);
    (void)fprintf(out(check), "%llu", (unsigned long long)value);
    end_field(check);
}

void
check_card_text(struct check *check, const char *field, const char *text)
{
    begin_field(check, field);
    if (check->json) {
        print_json_text(check, text);
    } else {
        tool_print(out(check), text);
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
        (void)fputs("}\n", out(check));
    }
    (void)fflush(out(check));
}

/* ---- the verdict --------------------------------------------------------- */

static ssize_t
on_write(void *cookie, const char *bytes, size_t len)
{
    struct buf *text = cookie;

    buf_append_slice(text, (struct slice){ bytes, len });
    return text->failed ? 0 : (ssize_t)len;
}

bool
check_card_gather(struct check *check)
{
    const cookie_io_functions_t functions = { .write = on_write };

    check->cards = fopencookie(&check->cards_text, "w", functions);
    return check->cards != NULL;
}

/* Prints a number with its thousands separated. */
static void
print_count(FILE *to, uint64_t count, const char *what)
{
    char digits[24];
    int len =
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);

    for (int i = 0; i < len; i++) {
        (void)putc(digits[i], to);
        if ((len - i) % 3 == 1 && i + 1 < len) {
            (void)putc(',', to);
        }
    }
    (void)fprintf(to, " %s%s", what, count == 1 ? "" : "s");
}

void
check_card_omit(struct check *check, const char *what, const char *path)
{
    buf_printf(&check->omitted, "%s%s %s", check->omitted.len > 0 ? ", " : "",
               what, path);
}

static void
print_verdict(struct check *check, FILE *to)
{
    (void)fprintf(to, "%s: ", states[check->worst].name);
    if (check->found != NULL) {
        (void)fputs(check->found, to);
    } else {
        print_count(to, check->files, "file");
    }
    if (!check->filters_unknown) {
        (void)fputs(", ", to);
        print_count(to, check->filters, "filter");
    }
    (void)putc('\n', to);
    if (check->omitted.len > 0) {
        buf_append(&check->omitted, "", 1);
        (void)fputs("not included: ", to);
        tool_print(to, check->omitted.data);
        (void)putc('\n', to);
    }
}

bool
check_card_verdict(struct check *check)
{
    FILE *to = report_file(check);
    bool sound = check->tool.status == CHECK_INTACT;
    bool any;

    if (check->cards == NULL) {
        return false;
    }
    (void)fclose(check->cards);
    check->cards = NULL;
    any = check->cards_text.len > 0;
    if (any) {
        check->filters_unknown |= !sound && check->found == NULL;
        print_verdict(check, to);
    }
    if (any && (check->verbose || (!sound && !check->reads_only))) {
        (void)fwrite(check->cards_text.data, 1, check->cards_text.len, to);
    }
    (void)fflush(to);
    buf_free(&check->cards_text);
    return any;
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
