/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-check: looks at snapshots and journals without a server, and makes
 * new ones of what is intact. Nothing that exists is ever written to. One
 * thread; what a run asks for and has found so far is in struct check, the
 * parts are in the check_*.h beside this.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses, which scripts rely on; of several findings the highest. */
enum {
    CHECK_INTACT = 0,     /* a torn tail that a start cuts is no damage */
    CHECK_DAMAGED = 1,    /* a server would refuse it */
    CHECK_USAGE = 2,      /* a mistake in what was asked for */
    CHECK_UNREADABLE = 3, /* permission, missing, I/O, full disk */
    CHECK_NEWER = 4       /* written by a newer version */
};

struct check {
    bool json; /* one object a line instead of text */
    bool resp; /* cat: RESP instead of words in quotes */
    int status;

    bool bar; /* a progress bar on standard error */
    bool bar_shown;
    uint64_t bar_done, bar_total;
    uint64_t bar_drawn_ns;
    bool card_empty; /* no field of the present card was written yet */
};

/* Raises the exit status. */
static inline void
check_found(struct check *check, int status)
{
    if (status > check->status) {
        check->status = status;
    }
}
