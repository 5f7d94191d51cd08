/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the commands of a log, one after another, and says what each of them
 * is. All readers of a log use it. obey.c takes whole batches, since it
 * executes them.
 *
 * Belongs to one thread at a time.
 */
#pragma once

#include "access/table.h"
#include "proto/batch.h"

#include <stdbool.h>
#include <stddef.h>

/* A command of a log. Its words are borrowed from the text. */
struct logged {
    enum logged_kind kind;     /* LOGGED_NEVER: logs have no such command */
    const struct command *row; /* NULL: an unknown name, or the wrong arity */
    struct slice *argv;        /* may be changed until the next one is read */
    size_t argc;
    size_t begin, end; /* where its bytes begin and end in the text */
};

/* Open since it is embedded; logged.c owns the fields. {0} may be given to
 * logged_fini. */
struct logged_reader {
    struct slice text;
    size_t at;     /* the end of the batch in the text */
    uint32_t next; /* the next command in the batch */
    int error;     /* 0, ENOMEM, or EINVAL: the bytes at `at` are no command */
    struct batch batch; /* callers may execute the command that was read */
};

/* Begins to read a text, which is whole commands in canonical RESP. */
void logged_begin(struct logged_reader *reader, struct slice text);
/* Returns false at the end of the text, or with reader->error. */
bool logged_next(struct logged_reader *reader, struct logged *ret_logged);
void logged_fini(struct logged_reader *reader);

/* Fills the batch with commands of the text from *at on, and moves *at behind
 * them. Returns 0, also at the end of the text; ENOMEM; or EINVAL: the bytes at
 * *at are no command. */
int logged_fill(struct batch *batch, struct slice text, size_t *at);

/* Returns the kind of a command of a log. row is NULL if no command has its
 * name. */
enum logged_kind logged_kind_of(const struct command *row,
                                const struct slice *argv, size_t argc);
