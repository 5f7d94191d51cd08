/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A primary whose links only record what was sent, for its tests. rig_received
 * reads the recorded bytes as a replica would and describes them in words.
 */
#pragma once

#include "../test.h"

#include "../journal/log_help.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "repl/primary.h"
#include "repl/primary_sync.h"
#include "repl/wire_stream.h"

#include <stdlib.h>

#define RIG_HISTORY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RIG_OTHER   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define RIG_THIRD   "cccccccccccccccccccccccccccccccccccccccc"
#define RIG_FOURTH  "dddddddddddddddddddddddddddddddddddddddd"

enum { RIG_LINKS = 6, RIG_START = 5000, RIG_WORDS = 2048 };

struct rig_link {
    struct buf sent;
    size_t described; /* bytes of `sent` that rig_received has described */
    size_t unsent;    /* grows while stuck */
    bool stuck, fails;
    unsigned drops;
    char reason[200];
    struct wire_reader reader;
};

struct rig {
    struct backlog *backlog;
    struct primary *primary;
    struct primary_limits limits;
    struct history history;
    uint64_t now, sequence, position, released;
    unsigned asked, cancelled, acked;
    struct slot_set asked_slots; /* empty: for all keys */
    bool paused;
    struct rig_link links[RIG_LINKS]; /* by id; 0 is not used */
    char words[RIG_WORDS];
};
void rig_begin(struct rig *rig);
void rig_end(struct rig *rig);

/* Writes, closes and seals a group of about `bytes` bytes. */
void rig_write(struct rig *rig, size_t bytes);
bool rig_stream(struct rig *rig);

/* Writes a group and streams. */
void rig_publish(struct rig *rig, size_t bytes);

/* Lets the socket of a stuck link take everything. */
void rig_unstick(struct rig *rig, uint64_t id);

/* A client waits for acknowledgements of this position. */
void rig_ask(struct rig *rig, uint64_t position);

/* Lets time pass in ticks. The links whose bits are set in `ackers` acknowledge
 * the end of the log each second. */
void rig_pass(struct rig *rig, uint64_t ms, unsigned ackers);

/* Server number `server` asks to follow on link id. history NULL: it has no
 * data. */
bool rig_attach(struct rig *rig, uint64_t id, unsigned server,
                const char *history, uint64_t position);
/* It takes these slots over. */
bool rig_pull(struct rig *rig, uint64_t id, unsigned server, const char *slots);
void rig_sync_begins(struct rig *rig);

/* Adds a replica that follows from the end of the log on. */
void rig_follow(struct rig *rig, uint64_t id);

/* Describes what was sent since the last call: lines by their first word,
 * groups by their sequence, chunks by their lengths; "..." for an unfinished
 * piece. */
const char *rig_received(struct rig *rig, uint64_t id);

/* Returns the figures of a replica; their id is 0 if there is none. */
struct status_replica rig_shown(const struct rig *rig, uint64_t id);
void rig_send_snapshot(struct rig *rig, size_t bytes);

/* Begins a snapshot for links 1 to `last`. */
void rig_begin_snapshot(struct rig *rig, uint64_t last);
