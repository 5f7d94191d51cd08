/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A service without sockets: a worker, a session and a keyspace made by hand,
 * commands as text, and a journal without a file, whose effects are read back
 * both as lines to compare and as bytes to repeat. For tests of the command
 * layer; one thread.
 */
#pragma once

#include "../test.h"
#include "access/users.h"
#include "base/mem.h"
#include "command/rows.h"
#include "engine/dispatch.h"
#include "engine/execute.h"
#include "engine/expiry.h"
#include "engine/txn.h"
#include "journal/group.h"
#include "journal/journal.h"
#include "keyspace/make.h"
#include "measure/sampler.h"
#include "proto/scan.h"
#include "replay/replay.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- a service without sockets --------------------------------------------
 */

struct effects {
    struct buf text; /* one effect a line; see show_effect() */
    struct buf raw;  /* the journal's groups, without their seals */
    size_t count;    /* lines */
};

struct rig {
    struct conf conf;
    struct service service;
    struct journal *journal;
    struct effects effects;
    struct worker *worker;
    struct session session;
    struct batch batch;
    struct buf words; /* of the batch */
    struct buf out;
};

extern const unsigned char fixed_seed[BLOOM_SEED_BYTES];

/* Takes the effects that were journaled since the last call. */
void effects_take(struct rig *rig);

void effects_clear(struct rig *rig);

void set_option(struct rig *rig, const char *name, const char *value);

/* With more than one thread, commands take locks. */
struct rig *rig_new_threads(unsigned threads);

struct rig *rig_new(void);

void rig_free(struct rig *rig);

/* ---- batches ---------------------------------------------------------------
 */

enum { BATCH_WORDS_MAX = 32768 };

/* Slices point into rig->words, which is large enough not to move. */
void batch_begin(struct rig *rig);

void batch_word(struct rig *rig, struct slice word);

void batch_command(struct rig *rig);

/* Sets `repeats` of the last command as the scanner does. */
void batch_note_repeat(struct batch *batch);

/* Appends a command, its words between blanks; <seed> is the fixed seed. */
void batch_text(struct rig *rig, const char *text);

void batch_run(struct rig *rig);

/* Repeats the effects that were taken as a start would. */
void repeat_effects(struct rig *to, struct slice raw);

/* Runs commands, between semicolons, in one batch or each in a batch of its
 * own. */
void run_text(struct rig *rig, const char *text, bool together);

/* Compares the replies of the last batch. */
void expect_replies(struct rig *rig, const char *expected);

/* Runs commands in one batch and compares their replies. */
void run_and_expect(struct rig *rig, const char *commands,
                    const char *expected);

/* Returns a request of BF.MADD as the dispatcher prepares it. */
struct request madd_request(struct rig *rig, const struct slice *argv,
                            size_t argc);

uint64_t count_keys(struct rig *rig, uint32_t db);
