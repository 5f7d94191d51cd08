/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a snapshot says about itself and about each key, and how far its writer
 * or loader is.
 */
#pragma once

#include "base/slice.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    SNAPSHOT_VERSION = 3,
    SNAPSHOT_HISTORY_BYTES = 40,
    SNAPSHOT_SECTION_BYTES = 1 << 20,  /* roughly, for small filters */
    SNAPSHOT_CHUNK_BYTES = 16 << 20,   /* at most, for a large filter */
    SNAPSHOT_DIRECT_BYTES = 128 << 10, /* filters from here on are large */
    SNAPSHOT_EPOCHS = 1 << 16          /* a record's epoch is below this */
};

/* The number of keys if nobody knows it: in a salvaged file, or in one with a
 * part of the keys. */
#define SNAPSHOT_KEYS_UNKNOWN UINT64_MAX

/* A place in the log. A file has two of them, the begin B of its writing and
 * the end E, at which the state is complete: snapshot_format.h explains. */
struct snapshot_stamp {
    char history[SNAPSHOT_HISTORY_BYTES + 1]; /* journal/history.h; all
                                                 zeros: no history */
    uint32_t version;  /* of the file that was read; writers write the newest */
    uint64_t position; /* of the log, in bytes since its beginning */
    uint64_t begins;   /* B; set by readers */
    uint64_t sequence; /* of the last journal group that the state includes */
    uint64_t created_ms;
    uint64_t keys; /* keys of the state; in the stamp of B a hint */
};

/* One key. name is borrowed for the call. */
struct snapshot_record {
    struct slice name;
    uint32_t db; /* the database's number at B, even if SWAPDB has changed it
                    since */
    uint64_t expires_at_ms; /* 0: never */
    uint64_t incarnation;
    uint32_t epoch;     /* how often the database was flushed between B and this
                           record */
    uint64_t copied_at; /* the copy includes the log up to here: B or later */
};

/* A group of the log between B and E. */
struct snapshot_effects {
    uint64_t position, sequence; /* position: where its text begins */
    struct slice commands;       /* without the seal */
    bool behind_gap; /* effects before it are lost: the file is salvaged */
};

/* How far a writer or loader is. Any thread reads it. */
struct snapshot_progress {
    _Atomic uint64_t bytes, keys;
};
