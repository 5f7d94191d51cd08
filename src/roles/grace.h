/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The time after a primary's start in which it cannot know whether another
 * server leads by now, and whether replicas have newer data. Loop 0.
 */
#pragma once

#include "repl/primary_hooks.h"

struct replication;
struct role_state;

/* Begins this time after a start as a primary, with data of this history and
 * position. */
void grace_begin(struct replication *r, const struct history *loaded,
                 uint64_t position);

/* Notes a replica that was accepted; call grace_look then. */
void grace_meet(struct replication *r, const struct primary_hello *hello);

/* Fills in what the role file stores about it. */
void grace_fill(const struct replication *r, struct role_state *state);

/* Ends the doubts that time, a replica or a command has resolved. */
void grace_look(struct replication *r);

/* Ends all doubts: a command has said which server leads. */
void grace_end(struct replication *r);
