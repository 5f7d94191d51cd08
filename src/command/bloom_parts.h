/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of many items, a part at a time: BF.MADD, BF.INSERT, BF.MEXISTS. A
 * part ends when it has worked for a while, or when it has used the room that
 * was made for its effect; then its locks are given back, others are served,
 * and the command goes on with the item behind the last one. The answers so
 * far stay in a struct bloom_parts, which the session keeps; the reply is
 * written when all is done.
 *
 *  - A part that changed something is an effect of its own, in the log before
 *    the next one begins.
 *  - Between two parts the key may go, be replaced, or end. Each part takes it
 *    as it is: a key that is missing has no items, or is created as the
 *    command would at first, or (NOCREATE, no memory) ends the array with the
 *    error, as an item that cannot be added does.
 *  - If the command as a whole is refused meanwhile (memory, a change of the
 *    role), its reply is that error; what was added stays.
 *  - In EXEC, and for who repeats a log, all is one part.
 */
#pragma once

#include "command/request.h"

enum { BLOOM_PARTS_ANSWER = 4 /* bytes: ":0\r\n" */ };

struct bloom_parts {
    struct buf answers; /* RESP, behind a gap for the header; room for all, and
                           for an error, is there */
    size_t gap;
    size_t at; /* argv position of the next item */
    bool told; /* that something was added */
};

/* NULL: this is the first part. Not for who cannot pause. */
static inline struct bloom_parts *
bloom_parts_resumed(const struct request *req)
{
    return req->obey ? NULL : request_resumed(req);
}

/* Items answered by the parts before. */
static inline size_t
bloom_parts_done(const struct bloom_parts *parts)
{
    return parts != NULL
               ? (parts->answers.len - parts->gap) / BLOOM_PARTS_ANSWER
               : 0;
}

/* How many of these items, which reach to the end of argv, this part may do at
 * most. */
size_t bloom_parts_limit(const struct request *req, const struct slice *items,
                         size_t count);

/* Whether the part has worked for long enough. */
bool bloom_parts_is_over(const struct request *req);

/* The state, for `count` answers in all; the session has it from here on. NULL:
 * no memory. */
struct bloom_parts *bloom_parts_begin(struct request *req, size_t count);

/* Takes the answers from `mark` on out of the reply, which then ends there. */
void bloom_parts_keep(struct request *req, struct bloom_parts *parts,
                      size_t mark, const struct slice *next_item);

/* Ends the array early, or a last part: puts an array of `count` in the place
 * of what is in the reply from `header` on: all answers kept, and those from
 * `body` on. Room was reserved. */
void bloom_parts_finish(struct request *req, struct bloom_parts *parts,
                        size_t header, size_t body, size_t count);

/* Makes room in the reply for what bloom_parts_finish writes after a part of so
 * many answers, an error behind it included. At the first part (parts NULL) it
 * fails too if the reply to all `count` could not be sent. */
MUST_CHECK enum err bloom_parts_reserve(struct request *req,
                                        const struct bloom_parts *parts,
                                        size_t part, size_t count);
