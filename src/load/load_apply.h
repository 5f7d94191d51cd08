/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Applies commands of an AOF or a replication stream, as far as they concern
 * filters, to the server. The tool touches only keys that it brought: a DEL, an
 * EXPIRE or a FLUSHALL of the source does not reach keys that were there
 * before. Everything else is skipped, and counted by command.
 */
#pragma once

#include "load/load_create.h"
#include "load/load_target.h"

enum { LOAD_SKIPPED_MAX = 64, LOAD_COMMAND_NAME_MAX = 32 };

struct load_skipped {
    char name[LOAD_COMMAND_NAME_MAX];
    uint64_t count;
};

struct load_apply {
    struct load_target *target;
    struct load_rule rule;
    uint64_t db; /* database that the source has selected */
    bool multi;  /* inside of MULTI at the source */
    bool opened; /* a MULTI is open at the server, too */
    bool asked;  /* the source wants to know how far we are */
    struct load_skipped skipped[LOAD_SKIPPED_MAX];
    size_t skipped_count;
    uint64_t skipped_more; /* commands with other names */
    uint64_t applied;
    uint64_t created;  /* filters */
    uint64_t not_ours; /* commands on filters that are spared or lost */
    uint64_t scripts;  /* scripts, which may have changed filters */
};

/* Applies or skips a command. False: the tool must stop; the reason was
 * printed. */
bool load_apply(struct load_apply *apply, const struct slice *words,
                size_t count);

/* Drops an unfinished transaction, at the end of the commands or of a link. The
 * next commands begin in database 0. */
bool load_apply_end(struct load_apply *apply);

/* Prints what was applied and skipped. */
void load_apply_report(const struct load_apply *apply);

/* Prints which product wrote an RDB, whether its checksum holds, and how many
 * filters and other values it has. */
void load_rdb_report(const struct rdb_result *result);
