/* SPDX-License-Identifier: BSD-3-Clause */
#include "repl/offer.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum offer_stage {
    OFFER_IDLE,
    OFFER_READS,
    OFFER_WAITS,
    OFFER_ASKS,
    OFFER_STORES
};

struct offer {
    struct offer_hooks hooks;
    enum offer_stage stage;
    char host[OFFER_HOST_MAX]; /* "": no primary */
    unsigned port;
    bool linked;
    bool fails; /* an answer was LATER or MOVED: the batch is sent again */
    size_t answers, answered;
    uint64_t timeout_ms, moved_limit_ms;
    uint64_t asked_ms, at_ms, pause_ms;
    uint64_t moved_since_ms; /* since when answers to this batch were MOVED; 0:
                                none was */
    bool moved;              /* an answer to the last sending was MOVED */
};

struct offer *
offer_new(const struct offer_hooks *hooks)
{
    struct offer *offer = mem_zalloc(sizeof(*offer));

    offer->hooks = *hooks;
    offer->timeout_ms = offer->moved_limit_ms = UINT64_MAX;
    return offer;
}

void
offer_free(struct offer *offer)
{
    mem_free(offer);
}

void
offer_set_limits(struct offer *offer, uint64_t timeout_ms, uint64_t moved_ms)
{
    offer->timeout_ms = timeout_ms;
    offer->moved_limit_ms = moved_ms;
}

static void
unlink_primary(struct offer *offer)
{
    if (offer->linked) {
        offer->linked = false;
        offer->hooks.close(offer->hooks.ctx);
    }
}

static void
read_next(struct offer *offer)
{
    offer->stage = OFFER_READS;
    offer->hooks.read(offer->hooks.ctx);
}

static void
wait(struct offer *offer, uint64_t now_ms)
{
    uint64_t pause = offer->pause_ms * 2;

    if (pause < OFFER_PAUSE_MIN_MS) {
        pause = OFFER_PAUSE_MIN_MS;
    }
    offer->pause_ms = pause < OFFER_PAUSE_MAX_MS ? pause : OFFER_PAUSE_MAX_MS;
    offer->at_ms = now_ms + offer->pause_ms;
    offer->stage = OFFER_WAITS;
}

static void
ask_primary(struct offer *offer, uint64_t now_ms)
{
    bool dials = !offer->linked;

    if (offer->host[0] == '\0') {
        offer->stage = OFFER_WAITS;
        offer->at_ms = 0; /* ask as soon as there is a primary */
        return;
    }
    offer->stage = OFFER_ASKS;
    offer->answered = 0;
    offer->fails = offer->moved = false;
    offer->asked_ms = now_ms;
    offer->linked = true;
    offer->hooks.restart(offer->hooks.ctx);
    if (!offer->hooks.send(offer->hooks.ctx, dials, offer->host, offer->port)) {
        unlink_primary(offer);
        wait(offer, now_ms);
    }
}

void
offer_begin(struct offer *offer)
{
    if (offer->stage == OFFER_IDLE) {
        read_next(offer);
    }
}

void
offer_set_target(struct offer *offer, const char *host, unsigned port,
                 uint64_t now_ms)
{
    if (host != NULL && port == offer->port && strcmp(host, offer->host) == 0) {
        return;
    }
    if (host == NULL && offer->host[0] == '\0') {
        return;
    }
    unlink_primary(offer);
    offer->host[0] = '\0';
    offer->port = port;
    offer->pause_ms = 0;
    offer->moved_since_ms = 0;
    if (host != NULL) {
        (void)snprintf(offer->host, sizeof(offer->host), "%s", host);
    }
    if (offer->stage == OFFER_ASKS || offer->stage == OFFER_WAITS) {
        ask_primary(offer, now_ms);
    }
}

/* ---- events -------------------------------------------------------------- */

void
offer_batch(struct offer *offer, size_t answers, uint64_t now_ms)
{
    CHECK(offer->stage == OFFER_READS && answers > 0);
    offer->answers = answers;
    offer->moved_since_ms = 0;
    ask_primary(offer, now_ms);
}

void
offer_abandon(struct offer *offer)
{
    CHECK(offer->stage == OFFER_READS || offer->stage == OFFER_STORES);
    unlink_primary(offer);
    offer->stage = OFFER_IDLE;
}

/* Continues when all answers have arrived. */
static void
conclude(struct offer *offer, uint64_t now_ms)
{
    if (offer->moved && offer->moved_since_ms == 0) {
        offer->moved_since_ms = now_ms > 0 ? now_ms : 1;
    }
    if (offer->fails) {
        wait(offer, now_ms);
        return;
    }
    offer->pause_ms = 0;
    offer->stage = OFFER_STORES;
    offer->hooks.store(offer->hooks.ctx);
}

void
offer_answer(struct offer *offer, enum offer_verdict verdict, uint64_t now_ms)
{
    bool refused = verdict == OFFER_REFUSED;

    CHECK(offer->stage == OFFER_ASKS && offer->answered < offer->answers);
    if (verdict == OFFER_MOVED) {
        offer->moved = true;
        refused = offer->moved_since_ms > 0 &&
                  now_ms - offer->moved_since_ms >= offer->moved_limit_ms;
        offer->fails = offer->fails || !refused;
    } else if (verdict == OFFER_LATER) {
        offer->fails = true;
    }
    if (refused) {
        offer->hooks.refuse(offer->hooks.ctx, offer->answered);
    }
    offer->asked_ms = now_ms;
    if (++offer->answered == offer->answers) {
        conclude(offer, now_ms);
    }
}

void
offer_closed(struct offer *offer, uint64_t now_ms)
{
    offer->linked = false;
    if (offer->stage == OFFER_ASKS) {
        wait(offer, now_ms);
    }
}

void
offer_stored(struct offer *offer, uint64_t now_ms)
{
    (void)now_ms;
    CHECK(offer->stage == OFFER_STORES);
    read_next(offer);
}

void
offer_tick(struct offer *offer, uint64_t now_ms)
{
    if (offer->stage == OFFER_WAITS && offer->host[0] != '\0' &&
        now_ms >= offer->at_ms) {
        ask_primary(offer, now_ms);
    } else if (offer->stage == OFFER_ASKS &&
               now_ms - offer->asked_ms >= offer->timeout_ms) {
        unlink_primary(offer);
        wait(offer, now_ms);
    }
}

/* ---- queries ------------------------------------------------------------- */

bool
offer_is_idle(const struct offer *offer)
{
    return offer->stage == OFFER_IDLE;
}

bool
offer_asks(const struct offer *offer)
{
    return offer->stage == OFFER_ASKS;
}
