/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small text file in dir, which always gets the newest text. A thread of its
 * own writes it, and repeats a write that failed; each write replaces the whole
 * file (file_replace). The owner encodes and reads the text.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

struct kept_file;

struct kept_file_options {
    const char *dir;    /* copied */
    const char *name;   /* name of the file; a constant */
    const char *thread; /* name of the thread; a constant */
    /* Blocks for a text of so many bytes are reserved beside it (name.room), so
     * that it can be written on a full disk, too; 0: none are reserved. */
    uint64_t room_bytes;
    /* Events for the log, constants: a write has failed; a write has succeeded
     * after a failure. */
    const char *failed_event, *mended_event;
    /* The thread calls it after each attempt; it may call kept_file_outcome. */
    void (*written)(void *ctx);
    void *ctx;
};

/* Reads the text that is in the file, for kept_file_write_again, and starts the
 * thread. */
struct kept_file *kept_file_new(const struct kept_file_options *options);

/* Makes a last attempt if the newest text is not on the disk, and ends the
 * thread. NULL is fine. */
void kept_file_free(struct kept_file *file);

/* Passes a copy of the text to the thread; it replaces an older text that is
 * not written yet. Returns a ticket. Any thread, waits for no disk. */
uint64_t kept_file_write(struct kept_file *file, struct slice text);

/* Passes the newest text once more, for a new data directory. Returns a ticket;
 * 0 if there is no text to write. */
uint64_t kept_file_write_again(struct kept_file *file);

/* Returns 1 if this text or a newer one is on the disk, -1 if the attempt
 * failed (it was logged and will be repeated), else 0. Any thread. */
int kept_file_outcome(const struct kept_file *file, uint64_t ticket);
