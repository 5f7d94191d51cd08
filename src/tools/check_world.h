/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data as a server that starts would have it: filters of a base, then the
 * groups of increments, executed by the server's own commands. So what is found
 * here is what a start finds. It takes the memory that the data takes.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "persist/snapshot_read.h"

struct check_world;

struct check_world *check_world_new(void);
void check_world_free(struct check_world *world); /* NULL is fine */

struct keyspace *check_world_keyspace(struct check_world *world);

/* Reads a base into it. pass_over: what is damaged is left out; else that is a
 * failure, with a reason. */
bool check_world_load(struct check_world *world, int fd, bool pass_over,
                      char *ret_reason, size_t reason_size);

/* Executes a group as a start does. False: one of its commands failed; what
 * came before it was executed. */
bool check_world_execute(struct check_world *world, struct slice commands,
                         char *ret_reason, size_t reason_size);

/* Executes what can be executed of it, and returns how many commands failed. */
uint64_t check_world_rescue(struct check_world *world, struct slice commands);
