/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run is what dispatch executes at a time: one command, or up to 64 pipelined
 * one-item commands (rows with .many) that are equal but for the item. The
 * commands of a run share one admission, one lock and one lookup of their
 * filter. Belongs to the executing loop.
 */
#pragma once

#include "engine/request.h"
#include "proto/batch.h"

/* The words of the commands of a run of several follow each other in argv. */
struct run {
    const struct command *command; /* NULL: the name is unknown */
    const struct slice *argv;
    size_t argc;    /* of each command */
    unsigned words; /* of the name: 1, or 2 with a subcommand */
    uint32_t count; /* of commands; dispatch lowers it to those that are done */
    bool many;      /* for the row's .many, which may do fewer */
};

/* Finds the run that begins with the command at `first`. may_group: one-item
 * commands may be executed together. */
struct run run_gather(const struct batch *batch, uint32_t first,
                      bool may_group);

/* One command as a run. */
struct run run_of(const struct command *command, unsigned words,
                  const struct slice *argv, size_t argc);

static inline const struct slice *
run_words(const struct run *run, uint32_t index)
{
    return run->argv + (size_t)index * run->argc;
}

/* Whether the run is expected to change nothing, since the last runs of writes
 * on its key did not: then it is tried under the shared lock, where several
 * loops can be at once (the row's .known). For runs of more than one. The
 * worker remembers by key what the last runs did; a new item therefore hardly
 * ever pays for the attempt. */
bool run_changes_nothing(const struct request *req, const struct run *run);
void run_note_change(const struct request *req, const struct run *run,
                     bool changed);
