/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes the stage, and decides when to connect again.
 */
#include "repl/replica_link.h"

#include "base/log.h"
#include "proto/compose.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 5000,
    REFUSED_MAX_MS = 60 * 1000, /* after snapshots that could not be loaded */
    GOOD_MS = 1000, /* after a link of this age, connect again at once */
    LOG_AGAIN_MS = 60 * 1000
};

/* ---- the end of a link --------------------------------------------------- */

void
replica_link_explain(struct replica *replica, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 errs */
    (void)vsnprintf(replica->reason, sizeof(replica->reason), format, ap);
    va_end(ap);
    for (char *c = replica->reason; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == '\x7f') {
            *c = '?';
        } else if (*c == '"') {
            *c = '\'';
        }
    }
}

static void
log_reason(struct replica *replica, uint64_t now_ms)
{
    if (strcmp(replica->reason, replica->logged) == 0 &&
        now_ms - replica->logged_ms < LOG_AGAIN_MS) {
        return;
    }
    memcpy(replica->logged, replica->reason, sizeof(replica->logged));
    replica->logged_ms = now_ms;
    log_warn("repl.replica", "does not follow the primary",
             "primary=%s:%u reason=\"%s\"", replica->host, replica->port,
             replica->reason);
}

/* The transitions of enum replica_stage, except to STAGE_IDLE and STAGE_WAITS,
 * which follow any stage. */
static bool
may_follow(enum replica_stage from, enum replica_stage to)
{
    static const unsigned before[] = {
        [STAGE_DIALS] =
            1 << STAGE_IDLE | 1 << STAGE_WAITS | 1 << STAGE_SWITCHES,
        [STAGE_AUTHENTICATES] = 1 << STAGE_DIALS,
        [STAGE_GREETS] = 1 << STAGE_DIALS | 1 << STAGE_AUTHENTICATES,
        [STAGE_SECRETS] = 1 << STAGE_GREETS | 1 << STAGE_SECRETS,
        [STAGE_ANNOUNCES] = 1 << STAGE_GREETS | 1 << STAGE_SECRETS,
        [STAGE_ASKS] = 1 << STAGE_ANNOUNCES,
        [STAGE_LOADS] = 1 << STAGE_ASKS,
        [STAGE_SWITCHES] = 1 << STAGE_LOADS,
        [STAGE_FOLLOWS] = 1 << STAGE_ASKS | 1 << STAGE_SWITCHES,
    };

    return to <= STAGE_WAITS || (before[to] >> from & 1) != 0;
}

void
replica_link_enter(struct replica *replica, enum replica_stage stage,
                   uint64_t now_ms)
{
    CHECK(may_follow(replica->stage, stage));
    replica->stage = stage;
    replica->stage_ms = now_ms;
}

/* Returns `ms` plus a random part of up to a quarter. */
static uint64_t
jittered(struct replica *replica, uint64_t ms)
{
    replica->retry.jitter =
        replica->retry.jitter * UINT64_C(6364136223846793005) +
        UINT64_C(1442695040888963407);
    return ms + (replica->retry.jitter >> 33) % (ms / 4 + 1);
}

static uint64_t
doubled(uint64_t ms)
{
    if (ms == 0) {
        return BACKOFF_MIN_MS;
    }
    return ms < BACKOFF_MAX_MS / 2 ? 2 * ms : BACKOFF_MAX_MS;
}

void
replica_link_drop(struct replica *replica)
{
    uint64_t number = replica->link.number;

    replica->link = (struct replica_link){ 0 };
    buf_reset(&replica->gathered, REPLICA_KEPT_BYTES);
    if (number != 0) {
        replica->hooks.close(replica->hooks.ctx, number);
    }
}

void
replica_link_lose(struct replica *replica, uint64_t now_ms)
{
    bool followed = replica->stage == STAGE_FOLLOWS;
    bool good = followed && (replica->link.progressed ||
                             now_ms - replica->stage_ms >= GOOD_MS);

    replica_link_drop(replica);
    log_reason(replica, now_ms);
    if (followed) {
        replica->down_ms = now_ms;
    }
    if (replica->stage == STAGE_SWITCHES) {
        return; /* the snapshot is complete: the load goes on */
    }
    if (replica->stage == STAGE_LOADS) {
        replica->hooks.load_cancel(replica->hooks.ctx);
    }
    replica_link_enter(replica, STAGE_WAITS, now_ms);
    if (good && !replica->retry.distrusted) {
        replica->retry.backoff_ms = 0;
        replica_link_dial(replica, now_ms);
        return;
    }
    replica->retry.backoff_ms = doubled(good ? 0 : replica->retry.backoff_ms);
    if (replica->retry.backoff_ms < replica->retry.doubt_ms) {
        replica->retry.backoff_ms = replica->retry.doubt_ms;
    }
    replica->retry.at_ms =
        now_ms + jittered(replica, replica->retry.backoff_ms);
}

/* The next snapshot would probably fail, too, and costs the primary much. So
 * the pause doubles each time, up to a minute. */
void
replica_link_refuse(struct replica *replica, uint64_t now_ms)
{
    uint64_t before = replica->retry.refused_ms;

    memcpy(replica->refused, replica->reason, sizeof(replica->refused));
    if (replica->secrets.refusal[0] != '\0') {
        replica_link_explain(replica, "%s Asked for it, the primary said: %s",
                             replica->refused, replica->secrets.refusal);
        memcpy(replica->refused, replica->reason, sizeof(replica->refused));
    }
    replica->retry.refused_ms = before == 0 ? BACKOFF_MIN_MS : 2 * before;
    if (replica->retry.refused_ms > REFUSED_MAX_MS) {
        replica->retry.refused_ms = REFUSED_MAX_MS;
    }
    replica_link_lose(replica, now_ms);
    if (replica->stage == STAGE_WAITS) {
        replica->retry.at_ms =
            now_ms + jittered(replica, replica->retry.refused_ms);
    }
}

/* Full synchronizations are expensive for the primary: repeated ones are
 * delayed more and more. */
void
replica_link_doubt(struct replica *replica, uint64_t now_ms)
{
    replica->retry.distrusted = true;
    replica->retry.doubt_ms = doubled(replica->retry.doubt_ms);
    replica_link_lose(replica, now_ms);
}

void
replica_link_dial(struct replica *replica, uint64_t now_ms)
{
    CHECK(replica->host != NULL && replica->link.number == 0);
    replica->link.number = ++replica->links;
    replica->link.reader =
        (struct wire_reader){ .phase = WIRE_LINES,
                              .group_max = replica->options.group_max };
    replica_link_enter(replica, STAGE_DIALS, now_ms);
    replica->hooks.dial(replica->hooks.ctx, replica->link.number, replica->host,
                        replica->port, replica->options.timeout_ms);
}

bool
replica_link_flush(struct replica *replica, uint64_t now_ms)
{
    bool sent = !replica->out.failed &&
                replica->hooks.send(replica->hooks.ctx, replica->link.number,
                                    buf_slice(&replica->out));

    buf_reset(&replica->out, REPLICA_KEPT_BYTES);
    if (!sent) {
        replica_link_explain(replica,
                             "the primary does not read acknowledgements, or "
                             "there is no memory for them");
        replica_link_lose(replica, now_ms);
    }
    return sent;
}

void
replica_link_pause(struct replica *replica)
{
    CHECK(replica->link.number != 0);
    replica->link.paused = true;
    replica->hooks.pause(replica->hooks.ctx, replica->link.number, true);
}

/* The first bad seal counts as a fault of the link. A second one at the same
 * position means that the primary's stream is bad. */
void
replica_link_bad(struct replica *replica, const char *why, uint64_t now_ms)
{
    replica_link_explain(replica, "the primary's output cannot be read: %s",
                         why);
    if (replica->stage != STAGE_FOLLOWS) {
        replica_link_lose(replica, now_ms);
    } else if (replica->retry.bad_position == replica->position) {
        replica->retry.bad_position = REPLICA_NO_POSITION;
        replica_link_doubt(replica, now_ms);
    } else {
        replica->retry.bad_position = replica->position;
        replica_link_lose(replica, now_ms);
    }
}

void
replica_link_say(struct replica *replica, enum replica_stage stage,
                 const struct slice *argv, size_t argc, uint64_t now_ms)
{
    compose_command(&replica->out, argv, argc);
    replica_link_enter(replica, stage, now_ms);
    (void)replica_link_flush(replica, now_ms);
}
