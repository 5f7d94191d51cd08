/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of logfmt or JSON on stderr or in a file: one line an event, in the
 * past tense, with one write(2), so that lines of threads do not mix. error:
 * the operator must act; warn: the server continues with a restriction; notice:
 * the state changed; info: normal. Layers below net never log. Any thread.
 *
 *   log_info("net.listener", "listening", "port=%u", port);
 */
#pragma once

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARN, LOG_ERROR };

enum log_format { LOG_LOGFMT, LOG_JSON };
void log_set_format(enum log_format format);

/* Finds out whether stderr leads to the journal of systemd (JOURNAL_STREAM says
 * so). Then lines on stderr begin with "<N>", their priority, which the journal
 * removes and keeps. Call it before the first line. */
void log_find_journal(void);

/* Sets the level below which lines are dropped. */
void log_set_level(enum log_level level);

__attribute__((format(printf, 4, 5))) void log_write(enum log_level level,
                                                     const char *source,
                                                     const char *event,
                                                     const char *format, ...);

/* Appends to this file from now on, and creates it if it is missing. After
 * logrotate has moved the file, call it again with the same path. Returns 0, or
 * an errno value: then the output stays as it was. Only one thread calls this;
 * others may log meanwhile. */
int log_open(const char *path);

/* Returns true for the first call with this mark in each second, so that a
 * repeated event does not fill the disk. `mark` is a static variable. */
bool log_once_a_second(_Atomic unsigned long long *mark);

#define log_info(...)   log_write(LOG_INFO, __VA_ARGS__)
#define log_notice(...) log_write(LOG_NOTICE, __VA_ARGS__)
#define log_warn(...)   log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...)  log_write(LOG_ERROR, __VA_ARGS__)

/* Logs this line at most once a second: for events that clients cause. */
#define log_repeated(...)                                                      \
    do {                                                                       \
        static _Atomic unsigned long long mark;                                \
        if (log_once_a_second(&mark)) {                                        \
            log_write(__VA_ARGS__);                                            \
        }                                                                      \
    } while (0)
