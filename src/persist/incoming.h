/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of data that arrives from another server. A thread writes the bytes
 * while another one loads them (snapshot/transfer.h), and syncs the file at the
 * end; so data that was loaded is on the disk already. The file has a temporary
 * name; the caller renames or drops it. There is one file at a time. Loop 0,
 * unless a line says otherwise.
 */
#pragma once

#include "snapshot/transfer.h"

struct incoming;

/* Starts the thread, which calls `done` after each file (see task_new). */
struct incoming *incoming_new(void (*done)(void *ctx), void *ctx);
void incoming_free(struct incoming *incoming); /* cancels the file, and waits */

/* Begins a file of this name in the directory of this path; both texts must
 * stay valid until its end. False: the thread has not finished the last file.
 */
MUST_CHECK bool incoming_begin(struct incoming *incoming, const char *dir,
                               const char *name);

/* Returns the functions that must get the bytes. A slow disk delays these
 * calls. */
struct transfer_copy incoming_copy(struct incoming *incoming);

/* Drops the file: it is removed in the background. Does nothing if there is
 * none. */
void incoming_cancel(struct incoming *incoming);

/* Returns the state of the file. *ret_error: why it has FAILED. A failed file
 * is removed. */
enum incoming_state {
    INCOMING_NONE,
    INCOMING_RUNS,
    INCOMING_READY, /* all bytes are on the disk */
    INCOMING_FAILED
};
enum incoming_state incoming_state(struct incoming *incoming, int *ret_error);

/* Sets the state to NONE: after READY, when the caller has taken the file, or
 * after FAILED. */
void incoming_forget(struct incoming *incoming);
