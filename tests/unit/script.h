/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server that gives prepared replies: at a socket in a directory of its own,
 * the next one to each command that comes. After the last one it is silent. It
 * notes the commands, a line each with blanks between the words.
 */
#pragma once

#include "base/buf.h"
#include "home.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SCRIPT_CLOSES "" /* instead of a reply: the connection ends */

struct script {
    char dir[64], path[96];
    const char *const *replies; /* NULL ends them */
    int listener;
    pthread_t thread;
    struct buf heard; /* read it after script_end */
};

/* Reads lines of a command: an array of bulk strings without line feeds. */
struct script_reader {
    FILE *file;
    char line[4096];
};

static inline bool
script_line(struct script_reader *reader)
{
    if (fgets(reader->line, sizeof(reader->line), reader->file) == NULL) {
        return false;
    }
    reader->line[strcspn(reader->line, "\r\n")] = '\0';
    return true;
}

static inline bool
script_hear(struct script *script, struct script_reader *reader)
{
    unsigned long words;

    if (!script_line(reader)) {
        return false;
    }
    words = strtoul(reader->line + 1, NULL, 10);
    for (unsigned long i = 0; i < words; i++) {
        if (!script_line(reader) || !script_line(reader)) {
            return false;
        }
        buf_printf(&script->heard, "%s%s", i > 0 ? " " : "", reader->line);
    }
    buf_append(&script->heard, "\n", 1);
    return true;
}

static inline void *
script_serve(void *arg)
{
    struct script *script = arg;
    int fd;

    while ((fd = accept(script->listener, NULL, NULL)) >= 0) {
        struct script_reader reader = { .file = fdopen(fd, "r") };

        while (script_hear(script, &reader)) {
            const char *reply = *script->replies;

            script->replies += reply != NULL;
            if (reply != NULL && reply[0] == '\0') {
                break;
            }
            if (reply != NULL) {
                (void)!send(fd, reply, strlen(reply), MSG_NOSIGNAL);
            }
        }
        (void)fclose(reader.file);
    }
    return NULL;
}

static inline void
script_begin(struct script *script, const char *const *replies)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    *script =
        (struct script){ .dir = "/tmp/script-XXXXXX", .replies = replies };
    home_make(script->dir);
    (void)snprintf(script->path, sizeof(script->path), "%s/s", script->dir);
    memcpy(at.sun_path, script->path, sizeof(script->path));
    script->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        0, bind(script->listener, (struct sockaddr *)&at, sizeof(at)));
    assert_int_equal(0, listen(script->listener, 8));
    assert_int_equal(
        0, pthread_create(&script->thread, NULL, script_serve, script));
}

/* After the client has closed its connection. Compares what was heard; NULL:
 * anything may have been. */
static inline void
script_end(struct script *script, const char *heard)
{
    (void)shutdown(script->listener, SHUT_RDWR);
    assert_int_equal(0, pthread_join(script->thread, NULL));
    (void)close(script->listener);
    buf_append(&script->heard, "", 1);
    if (heard != NULL) {
        assert_string_equal(heard, script->heard.data);
    }
    buf_free(&script->heard);
    home_remove(script->dir);
}
