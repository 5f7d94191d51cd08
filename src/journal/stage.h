/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where a loop gathers effects: each loop owns a stage. stage_open takes memory
 * before the stripes are locked; adding while they are locked cannot fail, and
 * passing a piece to the journal copies nothing. Pieces follow each other in
 * chunks, which the loop and the journal share. A chunk is freed when both are
 * done with it. While no piece is open, a stage has at most one chunk of the
 * usual size (256 KiB), even after larger pieces.
 *
 * A piece is SELECT, then the effects as RESP commands, between MULTI and EXEC
 * if it is a transaction of more than one effect.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunk;

/* The effects of commands that execute under one set of locks. Only stage.c and
 * the journal use the fields. */
struct piece {
    struct piece *next;
    struct chunk *chunk;
    struct slice select; /* right before body; the journal empties it if the
                            group is in that database already */
    struct slice body;
    uint32_t db_first, db_last;
    uint32_t spare; /* bytes left unused in the chunk before this one */
    bool last;      /* it is the last piece of its group; set by the journal */
};

/* {0} is an empty stage. The fields belong to stage.c. */
struct stage {
    struct chunk *chunk; /* for the next piece; NULL at first */
    struct piece *piece; /* the open piece, or NULL */
    char *free;          /* first free byte of the chunk */
    char *at, *end;      /* the free part of the open piece */
    uint32_t effects;    /* in the open piece */
    uint32_t given;      /* pieces of the chunk that went to the journal */
    uint32_t spare;      /* the next piece gets it */
};

enum { STAGE_WORD_BYTES = 26 /* at most: "$<len>\r\n" and "\r\n" */ };

/* Returns the most bytes that an effect of these words takes, with a SELECT
 * before it. */
static inline size_t
stage_effect_bytes(const struct slice *argv, size_t argc)
{
    /* Room for a SELECT, and for "*<argc>\r\n". */
    size_t bytes = 40 + 24;

    for (size_t i = 0; i < argc; i++) {
        bytes += argv[i].len + STAGE_WORD_BYTES;
    }
    return bytes;
}

/* Opens a piece for effects of at most `bytes` (sums of stage_effect_bytes);
 * MULTI and EXEC need not be counted. False: there is no memory, and nothing
 * has changed. It may be called again before anything is added: then the last
 * call counts. */
MUST_CHECK bool stage_open(struct stage *stage, size_t bytes);

/* Adds one effect to the open piece. CHECKs that stage_open was asked for its
 * bytes. */
void stage_add(struct stage *stage, uint32_t db, const struct slice *argv,
               size_t argc);

/* Adds an effect that is canonical RESP already. */
void stage_add_resp(struct stage *stage, uint32_t db, struct slice resp);

/* Closes the open piece and returns it; NULL if it is empty, or none is open.
 * txn: its effects are one transaction. */
struct piece *stage_close(struct stage *stage, bool txn);

/* Returns the bytes of a piece as the journal writes them: select and body. */
static inline struct slice
piece_text(const struct piece *piece)
{
    return (struct slice){ piece->select.data,
                           piece->select.len + piece->body.len };
}

/* Copies this text, a whole group, into a piece of its own; NULL: no memory.
 * Any thread. */
struct piece *piece_try_copy(struct slice group);

/* Frees a piece. Any thread. */
void piece_free(struct piece *piece);

/* Frees the stage. Pieces that went to the journal stay valid. */
void stage_fini(struct stage *stage);
