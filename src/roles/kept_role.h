/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps the role file up to date (role_file.h), and reads it at the start.
 * Loop 0, unless a line says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct replication;
enum kept_role {
    KEPT_ROLE_OPEN,
    KEPT_ROLE_UNREAD, /* the file cannot be read */
    KEPT_ROLE_REFUSED /* the options do not allow it */
};

/* Sets the role of the role file or, without one, that of the configuration.
 * Call it before the loops run, when the data directory is locked. If it does
 * not return KEPT_ROLE_OPEN, it has logged the reason. */
enum kept_role kept_role_open(struct replication *r);

/* Writes the file if the role has changed. Outside the gate. */
void kept_role_update(struct replication *r);

/* Writes the file again, into a new data directory. */
void kept_role_write_again(struct replication *r);

/* Returns whether the role of this epoch was written, or an attempt to write it
 * has failed. Any thread; it is called as a hook (struct replication_calls). */
bool kept_role_is_settled(void *ctx, uint64_t epoch);

/* Writes the file if its newest state is not written yet. The thread that
 * writes it wakes the loops, so call this before they are freed. */
void kept_role_close(struct replication *r);
