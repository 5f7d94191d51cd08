/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The long part of RESTORE, COPY and BF.MERGE of large filters, before their
 * locks are taken: a payload is checked and loaded, a source is copied, a piece
 * at a time while others are served. What is left for the handler is to put the
 * filter under its name. In EXEC, for who repeats a log, and for filters that
 * are not large, nothing is prepared, and the handler does all of it.
 *
 * prepare_restore and its like are .prepare of their rows (table.h). What
 * they made stays with the session until the command ends.
 */
#pragma once

#include "engine/request.h"

/* What was prepared: a filter, which is the caller's from then on, or why there
 * is none. incarnation: that a payload names. */
struct prepared {
    enum bloom_status status;
    bool sum_holds; /* of a payload: its checksum */
    uint64_t incarnation;
    struct bloom *bloom;
};

/* False: nothing was, or not from this source (NULL: there is none);
 * *ret_made is untouched. Once for each command, by its handler. What the
 * source has got since is copied now. */
bool prepare_take(struct request *req, const struct bloom *source,
                  struct prepared *ret_made);
