/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Does the long part of RESTORE, BF.LOAD, COPY and BF.MERGE of large filters
 * before their locks are taken: checks and loads a payload, or copies a source,
 * a piece at a time while other clients are served. The handler then only puts
 * the filter under its name. In EXEC, in a replay, and for filters that are not
 * large, nothing is prepared, and the handler does all of the work.
 *
 * The rows of these commands (access/table.h) name prepare_restore,
 * prepare_load, prepare_copy and prepare_merge as .prepare. The session keeps
 * what such a function has made until the command ends.
 */
#pragma once

#include "engine/request.h"

/* What was prepared: a filter, which the caller then owns, or why there is
 * none. incarnation: the one in a payload. */
struct prepared {
    enum bloom_status status;
    bool sum_holds; /* the checksum of the payload is right */
    uint64_t incarnation;
    struct bloom *bloom;
};

/* Takes the filter that was prepared from this source (NULL: from a payload),
 * after copying the source again if it has changed since. Returns false, and
 * leaves *ret_made as it is, if nothing was prepared or the source has another
 * shape now. The handler calls it once for each command. */
bool prepare_take(struct request *req, const struct bloom *source,
                  struct prepared *ret_made);
