/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence without a server: a directory, a keyspace, options, and hooks
 * that count. One thread plays loop 0 and all clients. A "write" creates a
 * filter of the given name, and its effect, NEW name, does the same at a
 * replay; so tests can tell what was journaled, what a base holds and what was
 * lost. prig_relay plays a primary: such a write comes from another server.
 */
#pragma once

#include "../home.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "journal/group.h"
#include "journal/journal_tap.h"
#include "keyspace/gate.h"
#include "keyspace/make.h"
#include "keyspace/memory.h"
#include "persist/adopt.h"
#include "persist/figures.h"
#include "persist/persist.h"
#include "persist/persist_state.h"
#include "persist/place.h"
#include "proto/scan.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct prig {
    char dir[64];
    struct conf conf;
    struct keyspace_memory memory;
    struct bloom_env env;
    struct keyspace *ks;
    struct persist *persist;
    struct journal *journal; /* as the hook said */
    struct stage stage;
    enum err writes, ping; /* as the hook said */
    enum persist_parks parks;
    uint64_t watched; /* a save's ticket, and its outcome at that time */
    enum persist_outcome outcome;
    atomic_int pokes, moves, taps;
    unsigned written; /* keys w0 .. w<written - 1> */
    unsigned reloads;
    /* The stream of the tap: groups with zeros for seals. */
    struct buf taped;
    uint64_t tape_begin; /* position of its first byte */
    uint64_t tape_begin_sequence, tape_sequence;
    /* The last sync. */
    unsigned syncs_begun, syncs_ended;
    int sync_fd, sync_error;
    uint64_t sync_position, sync_sequence;
    struct buf coming; /* the snapshot of prig_send */
    char coming_name[80];
    struct persist_arrival arrival;
};

/* ---- the tap ------------------------------------------------------------- */

void prig_tap(struct prig *rig, bool on);

bool prig_taped(const struct prig *rig, const char *text);

/* ---- options ------------------------------------------------------------- */

void prig_set(struct prig *rig, const char *name, const char *value);

void prig_create(struct prig *rig, struct slice name);

bool prig_has(const struct prig *rig, unsigned number);

/* Returns the position to wait for; 0 without a journal, or if there was no
 * memory. */
uint64_t prig_write(struct prig *rig);

/* Opens persist on the directory, without loading. */
bool prig_open(struct prig *rig);

bool prig_load(struct prig *rig);

/* Stops as a server does. */
bool prig_stop(struct prig *rig, const struct persist_end *end);

/* Ends as kill -9 does: nothing is written any more. */
void prig_close(struct prig *rig);

struct prig *prig_new(const char *appendonly, const char *appendfsync);

struct prig *prig_start(const char *appendonly, const char *appendfsync);

void prig_free(struct prig *rig);

void prig_restart(struct prig *rig);

/* Ticks until it is true; poll() with no descriptor is a pause. */
#define PRIG_WAIT(rig, condition)                                              \
    do {                                                                       \
        int prig_left = 20000;                                                 \
        persist_tick((rig)->persist);                                          \
        while (!(condition)) {                                                 \
            if (--prig_left == 0) {                                            \
                fail_msg("never: %s", #condition);                             \
            }                                                                  \
            (void)poll(NULL, 0, 1);                                            \
            persist_tick((rig)->persist);                                      \
        }                                                                      \
    } while (0)

struct journal_status prig_status(const struct prig *rig);

struct persist_info prig_info(const struct prig *rig);

uint64_t prig_released(const struct prig *rig);

/* Writes and waits until the position is released. Returns the position. */
uint64_t prig_write_released(struct prig *rig);

bool prig_exists(const struct prig *rig, const char *name);

void prig_check_all(const struct prig *rig);

/* Restarts and checks that all keys are there. */
void prig_restart_all(struct prig *rig);

/* Saves, and waits until it is done. */
void prig_save(struct prig *rig);

/* ---- replication --------------------------------------------------------- */

void prig_place(struct prig *rig, uint64_t *ret_position,
                uint64_t *ret_sequence);

uint64_t prig_position(struct prig *rig);

void prig_renew(struct prig *rig);

struct history prig_history(const struct prig *rig);

/* Returns whether the disk has all data up to this position of history `id`. */
bool prig_has_stored(const struct prig *rig, struct slice id,
                     uint64_t position);

/* A group of the primary's that says a new history. Returns its end. */
uint64_t prig_relay_history(struct prig *rig, const char *id);

/* A group of the primary's: creates w<written>. Returns its end. */
uint64_t prig_relay(struct prig *rig);

/* Makes data of another server: only the keys w<first> .. w<first + count - 1>,
 * at this place of that history. */
void prig_adopt(struct prig *rig, unsigned first, unsigned count,
                const char *id, uint64_t position);

/* The same through persist_receive: send makes the data and its snapshot;
 * receive has it written, and waits for that; take exchanges the data. */
void prig_send(struct prig *rig, unsigned first, unsigned count, const char *id,
               uint64_t position);
void prig_receive(struct prig *rig);
void prig_take(struct prig *rig);

/* Exactly these keys of w0 .. w<written - 1>. */
bool prig_has_exactly(const struct prig *rig, unsigned first, unsigned end);
