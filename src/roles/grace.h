/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The grace: the time after a primary's start in which it does not know whether
 * another server leads by now, or whether replicas have newer data. Loop 0.
 */
#pragma once

#include "repl/primary_hooks.h"

struct replication;
struct role_state;

/* Begins the grace after a start as a primary, with data of this history and
 * position. */
void grace_begin(struct replication *r, const struct history *loaded,
                 uint64_t position);

/* Notes a replica that was accepted. Call grace_look after it. */
void grace_meet(struct replication *r, const struct primary_hello *hello);

/* Fills in what the role file stores about replicas and earlier histories. */
void grace_fill(const struct replication *r, struct role_state *state);

/* Ends the doubts that time, a replica or a command has resolved. */
void grace_look(struct replication *r);

/* Ends all doubts. why: what has ended them, for the log. */
void grace_end(struct replication *r, const char *why);
