/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where effects are put together: each loop owns a stage. Memory is taken
 * before the stripes are locked (stage_open); adding while they are held
 * cannot fail, and handing a piece to the journal copies nothing: pieces lie
 * one behind the other in chunks that loop and journal share, and a chunk goes
 * back when both are done with it. With no piece open a stage holds one chunk
 * of the usual size (256 KiB) at most, whatever it was asked for before.
 *
 * The bytes of a piece: SELECT, then the effects as RESP commands, between
 * MULTI and EXEC if it is a transaction of more than one.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunk;

/* What one hold of the locks did. Opaque to all but stage.c and the journal. */
struct piece {
    struct piece *next;
    struct chunk *chunk;
    struct slice select; /* stands right before body; the journal empties it
                            where the group is in that database already */
    struct slice body;
    uint32_t db_first, db_last;
    bool last; /* of its group; the journal's */
};

/* {0} is an empty one. The fields are stage.c's. */
struct stage {
    struct chunk *chunk; /* where pieces are put; NULL at first */
    struct piece *piece; /* open one, or NULL */
    char *free;          /* first byte of the chunk that is not given away */
    char *at, *end;      /* free room of the open piece */
    uint32_t effects;    /* in it */
    uint32_t given;      /* pieces of the chunk */
};

/* Bytes that one effect takes at most, from its words; with what may have to
 * stand before it. */
static inline size_t
stage_effect_bytes(const struct slice *argv, size_t argc)
{
    /* A SELECT, "*<argc>\r\n", and "$<len>\r\n...\r\n" for each word. */
    size_t bytes = 40 + 24;

    for (size_t i = 0; i < argc; i++) {
        bytes += argv[i].len + 26;
    }
    return bytes;
}

/* Makes room for effects of at most `bytes` (sums of stage_effect_bytes);
 * MULTI and EXEC need not be counted. False: no memory, and nothing changed.
 * May be called again while nothing was added: the last call counts. */
MUST_CHECK bool stage_open(struct stage *stage, size_t bytes);

/* Adds one effect to the open piece. CHECKs that the room was asked for. */
void stage_add(struct stage *stage, uint32_t db, const struct slice *argv,
               size_t argc);

/* The same for an effect that is in canonical RESP already. */
void stage_add_resp(struct stage *stage, uint32_t db, struct slice resp);

/* Ends the open piece and gives it away; NULL if nothing was added, or nothing
 * is open. txn: its effects belong together. */
struct piece *stage_close(struct stage *stage, bool txn);

/* Its bytes as they go into the journal: select and body. */
static inline struct slice
piece_text(const struct piece *piece)
{
    return (struct slice){ piece->select.data,
                           piece->select.len + piece->body.len };
}

/* A piece of its own with a copy of this text, a whole group; NULL: no memory.
 * Any thread. */
struct piece *piece_try_copy(struct slice group);

/* The journal is done with a piece. Any thread. */
void piece_free(struct piece *piece);

/* Pieces that were given away stay. */
void stage_fini(struct stage *stage);
