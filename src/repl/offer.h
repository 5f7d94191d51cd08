/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sending side of a merge. A former primary follows another server now, and
 * offers this new primary the adds that the new one lacks, batch by batch. A
 * state machine of loop 0 without I/O or a clock of its own, like replica.h:
 * the owner reports each event with its time, and hooks carry out the
 * decisions. A hook must not call back into the offer.
 *
 *   IDLE -> READS -> ASKS -> STORES -> READS ...
 *   READS, STORES -> IDLE                          no batch is left
 *   READS -> WAITS -> ASKS                         the primary cannot be asked
 *   ASKS -> WAITS -> ASKS                          an answer or the link failed
 *
 * A batch is sent as a whole. If one of its answers does not come or says
 * "later", the whole batch is sent again: adds are idempotent. When all answers
 * have arrived, the owner stores the adds that were refused. The link lasts
 * until no batch is left, the primary changes, or the link fails. Pauses begin
 * with 100 ms and double up to 5 s.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OFFER_HOST_MAX = 256,
    OFFER_PAUSE_MIN_MS = 100,
    OFFER_PAUSE_MAX_MS = 5000
};

enum offer_verdict {
    OFFER_TAKEN,
    OFFER_REFUSED,
    OFFER_LATER, /* the server cannot execute it now */
    OFFER_MOVED  /* the key belongs to another server, perhaps only for a while
                  */
};

struct offer_hooks {
    /* Reads the next batch, and answers with offer_batch, later. */
    void (*read)(void *ctx);
    /* Sends the batch; over a new link if `dials`. False: no memory. */
    bool (*send)(void *ctx, bool dials, const char *host, unsigned port);
    /* Closes the link, if there is one. offer_closed must not follow. */
    void (*close)(void *ctx);
    /* Forgets which answers of the batch were refusals, since the batch is sent
     * again. */
    void (*restart)(void *ctx);
    /* The present answer, with this index, is a final refusal. */
    void (*refuse)(void *ctx, size_t index);
    /* Stores what was refused, and answers with offer_stored, later. */
    void (*store)(void *ctx);
    void *ctx;
};

struct offer;

struct offer *offer_new(const struct offer_hooks *hooks);
void offer_free(struct offer *offer); /* NULL is fine; calls no hook */

/* Sets how long an answer may take, and how long after a batch's first MOVED
 * another MOVED counts as a refusal. */
void offer_set_limits(struct offer *offer, uint64_t timeout_ms,
                      uint64_t moved_ms);

/* Begins to offer. Call it when there is something to offer. Does nothing
 * unless the offer is idle. */
void offer_begin(struct offer *offer);

/* Sets the primary to which batches are sent from now on, or none (NULL). It
 * may be the present one. */
void offer_set_target(struct offer *offer, const char *host, unsigned port,
                      uint64_t now_ms);

/* ---- events -------------------------------------------------------------- */

/* Says that the batch was read, and how many answers it will get (at least
 * one). */
void offer_batch(struct offer *offer, size_t answers, uint64_t now_ms);

/* Ends the offer: no batch is left, or none can be read or stored now. */
void offer_abandon(struct offer *offer);

/* Handles the next answer of the batch. Only while offer_asks() is true. */
void offer_answer(struct offer *offer, enum offer_verdict verdict,
                  uint64_t now_ms);
void offer_closed(struct offer *offer, uint64_t now_ms);
void offer_stored(struct offer *offer, uint64_t now_ms);
void offer_tick(struct offer *offer, uint64_t now_ms);

/* ---- queries ------------------------------------------------------------- */
bool offer_is_idle(const struct offer *offer);
/* Returns whether the batch was sent and answers are missing. */
bool offer_asks(const struct offer *offer);
