/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server of the simulator: the shipped backlog, primary, replica, history and
 * journal (without files) around toy data: some registers, and commands that
 * give another result in any other order. It uses the hooks as a real server
 * does, at random paces, and may fail like one. This file has its data and its
 * log.
 */
#pragma once

#include "sim_net.h"

#include "journal/group.h"
#include "journal/journal.h"
#include "journal/journal_tap.h"
#include "repl/backlog.h"
#include "repl/primary.h"
#include "repl/primary_sync.h"
#include "repl/replica.h"
#include "repl/wire.h"

enum {
    REGISTERS = 32,
    DISKS_MAX = 8,
    WORDS_MAX = 8,
    GROUP_MAX = 1 << 20,
    NOBODY = -1
};

/* What a crash leaves: the state at the end of a group. */
struct disk {
    struct history history;
    uint64_t position, sequence;
    uint64_t registers[REGISTERS];
};

struct child {
    uint64_t generation; /* of events about it */
    bool runs, paused, on_its_way;
    char history[HISTORY_ID_CHARS + 1]; /* as announced */
    struct buf bytes;
    size_t at, fails_at;
};

struct load {
    uint64_t generation;
    bool on;
    bool stores; /* it is in place, and the disk does not have it yet */
    struct wire_answer answer;
    struct buf bytes;
};

struct node {
    struct sim *sim;
    unsigned index;
    bool up;
    uint64_t boot;
    char run_id[HISTORY_ID_CHARS + 1];
    int leader; /* the index of its primary, or NOBODY: it leads */
    uint64_t epoch;
    const char *password;       /* that clients must send */
    const char *other_password; /* that it sends */

    struct history history;
    uint64_t key;
    uint64_t position, sequence; /* behind the last closed group */
    uint64_t open_bytes;         /* of the open one */
    uint64_t registers[REGISTERS];
    bool absent; /* dropped to make room for what is being loaded */
    /* A primary since its start, with data of a disk: no command has said since
     * then which server leads. `ended`: the history of that data. */
    bool in_doubt;
    struct history_past ended;

    struct journal *journal;
    struct backlog *backlog;
    struct primary *primary;
    struct replica *replica;
    struct primary_limits limits;
    struct replica_options options;
    bool flush_due;
    uint64_t released;
    struct child child;
    struct load load;
    struct disk disks[DISKS_MAX];
    unsigned disk_count;
    unsigned disks_seen;
    uint64_t holds; /* the disk takes this load first; 0: it has our data */

    /* Faults, in permille of the occasions. */
    unsigned later_permille, child_fails_permille, drops_first_permille;
    uint64_t release_lag_max_ms; /* 0: everything is released */
    size_t snapshot_padding;
    uint64_t chain;   /* increased when the servers above it change */
    bool was_flipped; /* a bit that was sent to it */
};
struct node *node_at(struct sim *sim, uint64_t index, uint64_t boot);
uint64_t node_digest(const struct node *node);

/* ---- RESP, as far as it is needed here ----------------------------------- */

/* Reads the command at the begin. Returns its bytes; 0: it is not complete. */
size_t sim_read_command(struct slice data, struct slice *argv,
                        size_t *ret_argc);
uint64_t sim_read_number(struct slice text);

/* ---- the log ------------------------------------------------------------- */

void node_keep_on_disk(struct node *node);

/* Compares the data with the oracle, at the end of each group. */
void node_check_place(struct node *node);
struct journal *node_take_journal(struct node *node, uint64_t position,
                                  uint64_t sequence);
void node_give_journal(struct journal *journal);
void node_append(struct node *node, const struct slice *argv, size_t argc);
void node_note_history(struct node *node, const char *id);

/* Executes a command, on a primary and on a replica. */
void node_execute(struct node *node, const struct slice *argv, size_t argc);
void node_write(struct node *node, size_t padding_max);

/* ---- what goes out ------------------------------------------------------- */

/* Restarts the backlog if memory for it had ended. */
void node_repair(struct node *node);
void node_stream(struct node *node);
void node_flush_soon(struct node *node);

/* ---- the toy's snapshot -------------------------------------------------- */

void node_write_snapshot(struct node *node, struct buf *out);
const char *node_adopt(struct node *node);
