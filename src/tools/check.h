/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-check: inspects snapshots and journals without a server, and writes
 * new ones from what is intact. It never writes to a file that exists. One
 * thread. struct check holds what the command line asked for and the exit
 * status so far; the functions here print to standard error.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses. Scripts rely on them. Of several findings the highest wins. */
enum {
    CHECK_INTACT = 0,     /* a torn tail that a start cuts is no damage */
    CHECK_DAMAGED = 1,    /* a server would refuse it */
    CHECK_USAGE = 2,      /* a mistake in the command line */
    CHECK_UNREADABLE = 3, /* permission, missing file, I/O error, full disk */
    CHECK_NEWER = 4       /* written by a newer version */
};

struct check {
    bool json; /* one object a line instead of text */
    bool resp; /* cat: RESP instead of quoted words */
    int status;
    bool card_empty; /* the card being printed has no field yet */

    bool bar; /* show a progress bar on standard error */
    bool bar_shown;
    uint64_t bar_done, bar_total; /* bytes; total 0: no bar at present */
    uint64_t bar_drawn_ns;
};

/* Raises the exit status to this one, if it is higher. */
void check_raise(struct check *check, int status);

/* Prints a line on standard error and raises the exit status. */
__attribute__((format(printf, 3, 4))) void
check_complain(struct check *check, int status, const char *format, ...);

/* Prints text without control bytes, which could reprogram a terminal. */
void check_print(FILE *to, const char *text);

/* ---- progress ------------------------------------------------------------ */

void check_bar_begin(struct check *check, uint64_t total_bytes);

/* Counts bytes as done. Cheap: redraws the bar a few times a second. */
void check_bar_add(struct check *check, uint64_t bytes);
void check_bar_end(struct check *check);

/* Erases the bar, before other output goes to the terminal. */
void check_bar_hide(struct check *check);
