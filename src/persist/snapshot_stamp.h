/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a snapshot says of itself and of each key, and how far a writer or a
 * loader of one is.
 */
#pragma once

#include "base/slice.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    SNAPSHOT_VERSION = 2,
    SNAPSHOT_HISTORY_BYTES = 40,
    SNAPSHOT_SECTION_BYTES = 1 << 20, /* of small filters, roughly */
    SNAPSHOT_CHUNK_BYTES = 16 << 20,  /* of a large one, at most */
    SNAPSHOT_DIRECT_BYTES = 128 << 10 /* filters from here on are large */
};

/* The position of the log at which a snapshot was taken. */
struct snapshot_stamp {
    char history[SNAPSHOT_HISTORY_BYTES + 1]; /* persist/history.h; all
                                                 zeros: no history */
    uint32_t version;  /* of the file that was read; writers write the newest */
    uint64_t position; /* of the log, in bytes since its beginning */
    uint64_t sequence; /* of the last journal group that the state includes */
    uint64_t created_ms;
    uint64_t keys; /* that it holds */
};

/* One key. name is borrowed for the call. */
struct snapshot_record {
    struct slice name;
    uint32_t db;
    uint64_t expires_at_ms; /* 0: stays */
    uint64_t incarnation;
};

/* How far a writer or loader is. It may lie in memory that a parent shares with
 * its child. */
struct snapshot_progress {
    _Atomic uint64_t bytes, keys;
};
