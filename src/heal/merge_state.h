/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What merges need after restarts: the file merge.state in dir. The base of a
 * rewritten journal does not say which histories came before its own, but one
 * of these may be the last that we and the new primary have in common.
 *
 *   bloomery-merge 1
 *   lost <bytes>               of all merges so far
 *   history <id>               of the log
 *   past <id> <position>       newest first: it ends at this position
 *   checksum <16 hex digits>   XXH3-64 of all lines before it
 *
 * A file that is damaged counts as missing. Loop 0.
 */
#pragma once

#include "journal/history.h"

#include <stdbool.h>

struct kept_file;
struct service;

#define MERGE_STATE_NAME "merge.state"

struct merge_state {
    const struct service *service;
    struct kept_file *file;
    struct history history; /* the history that the file was last given */
};

/* merge_state_open() reads the file, before the loops run. merge_state_close()
 * writes what is not written yet. */
void merge_state_open(struct merge_state *state, const struct service *service);
void merge_state_close(struct merge_state *state);

/* Writes the file if the history has changed. */
void merge_state_look(struct merge_state *state);

/* Returns the history of our log with all of its past that is known. */
void merge_state_history(const struct merge_state *state,
                         struct history *ret_history);

/* Counts bytes of the log that a merge needed and could not find. */
void merge_state_lose(struct merge_state *state, uint64_t bytes);

/* Writes the file again, into a new data directory. */
void merge_state_write_again(struct merge_state *state);
