/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of a merge, in dir:
 *
 *   heal-<history>-<position>.log         adds that are to be offered: the
 *                                         first line and the groups of a
 *                                         journal (journal/group.h), each a
 *                                         batch
 *   quarantine-<history>-<position>.resp          what cannot be offered
 *   quarantine-<history>-<position>-refused.resp  what the primary refused
 *
 * history and position say which log this server wrote, and up to which
 * position the primary has it. A quarantine holds commands in RESP, for a
 * person to read, or for redis-cli --pipe. The heal file gets its name last,
 * when it is complete. So an interrupted save is repeated, and an interrupted
 * offer begins again, with an empty file of refusals. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MERGE_NAME_MAX = 160 };

void merge_names_heal(const char *history, uint64_t position, char *ret_name);
void merge_names_quarantine(const char *history, uint64_t position,
                            char *ret_name);
/* Writes the name of the file of refusals that belongs to this heal file. */
void merge_names_refused(const char *heal, char *ret_name);

bool merge_names_is_heal(const char *name);
/* Returns whether an interrupted save has left a file of this name. */
bool merge_names_is_unfinished(const char *name);

uint64_t merge_names_bytes(int dir_fd, const char *name);

/* Returns how many bytes all quarantine files have, except the file `but`. */
uint64_t merge_names_quarantined(int dir_fd, const char *but);
