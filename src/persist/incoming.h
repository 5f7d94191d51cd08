/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of data that arrives from another server. A thread writes the bytes
 * while another one loads them (snapshot/transfer.h), and syncs the file at
 * their end; so data that was loaded is on the disk already. The name is a
 * temporary one: what becomes of the file is up to its taker. One at a time.
 * Loop 0, unless a line says otherwise.
 */
#pragma once

#include "snapshot/transfer.h"

struct incoming;

/* Starts the thread (CHECKed), which calls `done` after each file. */
struct incoming *incoming_new(void (*done)(void *ctx), void *ctx);
void incoming_free(struct incoming *incoming); /* cancels, and waits */

/* Begins a file of this name in the directory of this path; both are used until
 * the end. False: the thread has not ended the last one. */
MUST_CHECK bool incoming_begin(struct incoming *incoming, const char *dir,
                               const char *name);

/* What is to be given the bytes. A disk that is slow delays them. */
struct transfer_copy incoming_copy(struct incoming *incoming);

/* The file is not wanted: it is removed in the background. Does nothing if
 * there is none. */
void incoming_cancel(struct incoming *incoming);

/* Returns how far the file is. error: of FAILED, which leaves no file. */
enum incoming_state {
    INCOMING_NONE,
    INCOMING_RUNS,
    INCOMING_READY, /* all bytes are on the disk */
    INCOMING_FAILED
};
enum incoming_state incoming_state(struct incoming *incoming, int *ret_error);

/* Takes the file that is READY, or the error of FAILED: the state is NONE. */
void incoming_forget(struct incoming *incoming);
