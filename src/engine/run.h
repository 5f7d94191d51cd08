/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run is what dispatch executes at a time: one command, or up to 64 pipelined
 * one-item commands (rows with .many) that differ only in the item. The
 * commands of a run share one admission, one lock and one lookup of their
 * filter. Belongs to the executing loop.
 */
#pragma once

#include "engine/request.h"
#include "proto/batch.h"

/* Some commands with the same row. argv has their words one after the other. */
struct run {
    const struct command *command; /* NULL: the name is unknown */
    const struct slice *argv;
    size_t argc;    /* of each command */
    unsigned words; /* of the name: 1, or 2 with a subcommand */
    uint32_t count; /* of commands; dispatch lowers it to those executed */
    bool many;      /* the row's .many executes it, perhaps only in part */
};

/* Finds the run that begins with the command at `first`. may_group: one-item
 * commands may be executed together. last: the run before this one, or NULL;
 * mostly both have the same row, which saves a look-up. */
void run_gather(const struct batch *batch, uint32_t first, bool may_group,
                const struct run *last, struct run *ret_run);

/* Makes a run of one command. */
struct run run_of(const struct command *command, unsigned words,
                  const struct slice *argv, size_t argc);

static inline const struct slice *
run_words(const struct run *run, uint32_t index)
{
    return run->argv + (size_t)index * run->argc;
}

/* Returns whether the run is expected to change nothing, because the last runs
 * on its key did not. Then dispatch first tries the row's .known under the
 * shared lock, which several loops can have at once. Dispatch asks only for
 * runs of more than one command. The worker remembers by key whether the last
 * runs changed anything, so new items hardly ever pay for the attempt. */
bool run_changes_nothing(const struct request *req, const struct run *run);
void run_note_change(const struct request *req, const struct run *run,
                     bool changed);
