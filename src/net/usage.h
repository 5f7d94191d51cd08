/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What connections make the server keep, each and all together: unfinished
 * requests, what waits behind a command that waits, unsent and held replies,
 * and what the owner says (its own state, a transaction, subscriptions, what it
 * tracks). Buffers count with their capacity. Above the limit the connection
 * that takes the most is cut, then the next one, but not those of the operator
 * and those that asked not to be (CLIENT NO-EVICT).
 *
 * One usage for all loops; figures are atomic. A connection is counted by its
 * own loop. Whoever goes above the limit finds the largest at the end of its
 * loop's turn.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct conn;
struct loop;

struct usage {
    _Atomic uint64_t limit; /* 0: none */
    _Atomic uint64_t total;
    _Atomic uint64_t condemned; /* of total: of those who are being cut */
    atomic_bool choosing;       /* somebody looks for the largest */
};

/* Whether clients take too much, beside those who are being cut. */
bool usage_is_above(struct usage *usage);

/* Counts anew what the connection takes. Nothing happens where the environment
 * has no usage. */
void usage_count(struct conn *conn);

/* The owner's part of it has changed, or may be cut from now on, or not. */
void usage_set_owned(struct conn *conn, uint64_t bytes);
void usage_set_exempt(struct conn *conn, bool exempt);

/* In the close, once no other thread finds the connection any more. */
void usage_leave(struct conn *conn);

/* At the end of a turn in which the loop went above the limit (loop->above):
 * asks the loops of the largest to cut them, until the rest fits. */
void usage_shed(struct loop *loop);
