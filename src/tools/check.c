/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/check.h"

#include "base/clock.h"

#include <stdarg.h>

enum { TEXT_MAX = 1024, BAR_CELLS = 40, BAR_PAUSE_NS = 100 * 1000 * 1000 };

void
check_raise(struct check *check, int status)
{
    if (status > check->status) {
        check->status = status;
    }
}

void
check_print(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        (void)fputc(c < 0x20 || c == 0x7f ? '?' : c, to);
    }
}

void
check_complain(struct check *check, int status, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    check_bar_hide(check);
    (void)fflush(stdout);
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fputs("bloomery-check: ", stderr);
    check_print(stderr, text);
    (void)fputc('\n', stderr);
    check_raise(check, status);
}

/* ---- progress ------------------------------------------------------------ */

void
check_bar_hide(struct check *check)
{
    if (check->bar_shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        check->bar_shown = false;
    }
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
    check_bar_hide(check);
    check->bar_total = 0;
}
