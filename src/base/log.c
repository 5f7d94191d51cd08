/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A line is composed on the stack and written at once.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/log_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static _Atomic int lowest = LOG_INFO;
static _Atomic int output = STDERR_FILENO;

static _Atomic int form = LOG_LOGFMT;
static atomic_bool to_journal;

enum { PREFIX_BYTES = 3, LINE_BYTES = 1024 };

/* The priorities of syslog(3) for our levels: debug, info, notice, warning,
 * err. */
static const char priorities[][PREFIX_BYTES + 1] = { "<7>", "<6>", "<5>", "<4>",
                                                     "<3>" };
static const char *const level_names[] = { "debug", "info", "notice", "warn",
                                           "error" };

void
log_set_level(enum log_level level)
{
    atomic_store(&lowest, (int)level);
}

void
log_set_format(enum log_format format)
{
    atomic_store(&form, (int)format);
}

void
log_find_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    char wanted[64] = "";
    struct stat own;

    if (text != NULL && fstat(STDERR_FILENO, &own) == 0) {
        (void)snprintf(wanted, sizeof(wanted), "%llu:%llu",
                       (unsigned long long)own.st_dev,
                       (unsigned long long)own.st_ino);
    }
    atomic_store(&to_journal, text != NULL && strcmp(text, wanted) == 0);
}

int
log_open(const char *path)
{
    int fd =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
    int error = 0;

    if (fd < 0) {
        return errno;
    }
    if (atomic_load(&output) == STDERR_FILENO) {
        atomic_store(&output, fd);
        return 0;
    }
    /* The descriptor's number stays: no other thread writes to a closed one. */
    if (dup3(fd, atomic_load(&output), O_CLOEXEC) < 0) {
        error = errno;
    }
    (void)close(fd);
    return error;
}

bool
log_once_a_second(_Atomic unsigned long long *mark)
{
    unsigned long long now = clock_mono_ns() / 1000000000U + 1;
    unsigned long long before = atomic_exchange(mark, now);

    return before != now;
}

/* Replaces what would end a line or control a terminal, and removes blanks at
 * the end. */
static void
clean(char *fields)
{
    size_t len = strlen(fields);

    while (len > 0 && (fields[len - 1] == ' ' || fields[len - 1] == '\n')) {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)fields[i] < ' ' || fields[i] == 0x7f) {
            fields[i] = ' ';
        }
    }
    fields[len] = '\0';
}

/* Writes the line without its end, and returns its length. */
static size_t
compose(char *line, size_t size, struct log_parts *parts)
{
    int len;

    if (atomic_load(&form) == LOG_JSON) {
        return log_json_write(line, size, parts);
    }
    len = snprintf(line, size, "time=%s level=%s source=%s event=\"%s\"%s%s",
                   parts->time, parts->level, parts->source, parts->event,
                   parts->fields[0] != '\0' ? " " : "", parts->fields);
    return len < (int)size ? (size_t)len : size - 1;
}

void
log_write(enum log_level level, const char *source, const char *event,
          const char *format, ...)
{
    char line[PREFIX_BYTES + LINE_BYTES];
    char fields[LINE_BYTES];
    char when[40];
    struct log_parts parts = { .time = when,
                               .level = level_names[level],
                               .source = source,
                               .event = event,
                               .fields = fields };
    uint64_t us = clock_wall_us();
    time_t seconds = (time_t)(us / 1000000);
    int fd = atomic_load(&output);
    struct tm utc;
    size_t len = 0;
    size_t at;
    va_list ap;

    if ((int)level < atomic_load(&lowest)) {
        return;
    }
    (void)gmtime_r(&seconds, &utc);
    at = strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(when + at, sizeof(when) - at, ".%03uZ",
                   (unsigned)(us / 1000 % 1000));
    va_start(ap, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 errs */
    (void)vsnprintf(fields, sizeof(fields), format, ap);
    va_end(ap);
    clean(fields);
    if (fd == STDERR_FILENO && atomic_load(&to_journal)) {
        memcpy(line, priorities[level], PREFIX_BYTES);
        len = PREFIX_BYTES;
    }
    len += compose(line + len, LINE_BYTES - 1, &parts);
    line[len++] = '\n';
    if (write(fd, line, len) < 0) {
        return; /* there is no other place to report it */
    }
}
