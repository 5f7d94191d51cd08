/* SPDX-License-Identifier: BSD-3-Clause
 *
 * logfmt lines on stderr, or in a file: one line an event, past tense, one
 * write(2) each, so that threads do not mix. error: the operator must act;
 * warn: degraded, goes on; notice: the state changed; info: normal; debug: for
 * us. Layers below net never log. Any thread.
 *
 *   log_info("net.listener", "listening", "port=%u", port);
 */
#pragma once

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARN, LOG_ERROR };

/* What is below the level is dropped. Any time. */
void log_set_level(enum log_level level);

__attribute__((format(printf, 4, 5))) void log_write(enum log_level level,
                                                     const char *source,
                                                     const char *event,
                                                     const char *format, ...);

/* Appends to the file from now on, and makes it if it is missing; called again
 * for the same one, as logrotate needs it. 0 or an errno, and then lines go
 * where they went before. One thread; others may write meanwhile. */
int log_open(const char *path);

/* True for the first of the calls with this mark in any second, so that a
 * repeating event does not fill the disk. mark is a static variable. */
bool log_once_a_second(_Atomic unsigned long long *mark);

#define log_debug(...)  log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)   log_write(LOG_INFO, __VA_ARGS__)
#define log_notice(...) log_write(LOG_NOTICE, __VA_ARGS__)
#define log_warn(...)   log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...)  log_write(LOG_ERROR, __VA_ARGS__)

/* For what clients can cause again and again: this line at most once a
 * second. */
#define log_repeated(...)                                                      \
    do {                                                                       \
        static _Atomic unsigned long long mark;                                \
        if (log_once_a_second(&mark)) {                                        \
            log_write(__VA_ARGS__);                                            \
        }                                                                      \
    } while (0)
