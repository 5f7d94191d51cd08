/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a function prints on standard output or error.
 */
#pragma once

#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct capture {
    FILE *file;
    int fd, old;
    size_t len;
    char text[64 * 1024];
};

static inline void
capture_begin(struct capture *capture, int fd)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    capture->fd = fd;
    capture->old = dup(fd);
    capture->file = tmpfile();
    assert_non_null(capture->file);
    assert_true(capture->old >= 0 && dup2(fileno(capture->file), fd) >= 0);
}

/* Returns what was printed since, and ends it with a NUL. */
static inline const char *
capture_end(struct capture *capture)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    assert_true(dup2(capture->old, capture->fd) >= 0);
    (void)close(capture->old);
    rewind(capture->file);
    capture->len =
        fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
    capture->text[capture->len] = '\0';
    (void)fclose(capture->file);
    return capture->text;
}

static inline void
assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("[%s] lacks [%s]", text, part);
    }
}

/* Runs a statement, whose output must be, or contain, this text. */
#define EXPECT_OUTPUT(fd, statement, wanted)                                   \
    do {                                                                       \
        struct capture capture_;                                               \
                                                                               \
        capture_begin(&capture_, (fd));                                        \
        statement;                                                             \
        assert_string_equal((wanted), capture_end(&capture_));                 \
    } while (0)

#define EXPECT_PRINTED(fd, statement, part)                                    \
    do {                                                                       \
        struct capture capture_;                                               \
                                                                               \
        capture_begin(&capture_, (fd));                                        \
        statement;                                                             \
        assert_contains(capture_end(&capture_), (part));                       \
    } while (0)
