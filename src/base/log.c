/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A line is composed on the stack and written at once.
 */
#include "base/log.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static _Atomic int lowest = LOG_INFO;
static _Atomic int output = STDERR_FILENO;

static const char *const level_names[] = { "debug", "info", "notice", "warn",
                                           "error" };

void
log_set_level(enum log_level level)
{
    atomic_store(&lowest, (int)level);
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

void
log_write(enum log_level level, const char *source, const char *event,
          const char *format, ...)
{
    char line[1024];
    uint64_t us = clock_wall_us();
    time_t seconds = (time_t)(us / 1000000);
    struct tm utc;
    va_list ap;
    int len;
    int more;

    if ((int)level < atomic_load(&lowest)) {
        return;
    }
    (void)gmtime_r(&seconds, &utc);
    len = (int)strftime(line, sizeof(line), "time=%Y-%m-%dT%H:%M:%S", &utc);
    len += snprintf(line + len, sizeof(line) - (size_t)len,
                    ".%03uZ level=%s source=%s event=\"%s\" ",
                    (unsigned)(us / 1000 % 1000), level_names[level], source,
                    event);
    va_start(ap, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 errs */
    more = vsnprintf(line + len, sizeof(line) - (size_t)len, format, ap);
    va_end(ap);
    len += more > 0 ? more : 0;
    if (len > (int)sizeof(line) - 1) {
        len = (int)sizeof(line) - 1;
    }
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\n')) {
        len--;
    }
    line[len++] = '\n';
    if (write(atomic_load(&output), line, (size_t)len) < 0) {
        return; /* there is no other place to report it */
    }
}
