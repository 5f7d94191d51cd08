/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a link begins, and what becomes of one that ends.
 */
#include "repl/replica_internal.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 5000,
    GOOD_MS = 1000, /* so long a link lasts that is worth another at once */
    LOG_AGAIN_MS = 60 * 1000
};

/* ---- the end of a link --------------------------------------------------- */

/* Why there is no link. It may hold a stranger's words, which end up in the log
 * and in INFO. */
__attribute__((format(printf, 2, 3))) void
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
             "primary=%s:%u reason=\"%s\"", replica->host,
             replica->primary_port, replica->reason);
}

void
replica_link_enter(struct replica *replica, enum stage stage, uint64_t now_ms)
{
    replica->stage = stage;
    replica->stage_ms = now_ms;
}

/* Up to a quarter more than `ms`. */
static uint64_t
jittered(struct replica *replica, uint64_t ms)
{
    replica->jitter = replica->jitter * UINT64_C(6364136223846793005) +
                      UINT64_C(1442695040888963407);
    return ms + (replica->jitter >> 33) % (ms / 4 + 1);
}

static uint64_t
doubled(uint64_t ms)
{
    if (ms == 0) {
        return BACKOFF_MIN_MS;
    }
    return ms < BACKOFF_MAX_MS / 2 ? 2 * ms : BACKOFF_MAX_MS;
}

/* Forgets the link and what came over it. */
void
replica_link_drop(struct replica *replica)
{
    uint64_t number = replica->number;

    replica->number = 0;
    replica->paused = false;
    replica->ack_due = false;
    replica->disk_due = 0;
    buf_reset(&replica->gathered, REPLICA_KEPT_BYTES);
    if (number != 0) {
        replica->hooks.close(replica->hooks.ctx, number);
    }
}

/* The link is of no use any more, for the reason that was explained. */
void
replica_link_lose(struct replica *replica, uint64_t now_ms)
{
    bool followed = replica->stage == FOLLOWS;
    bool good = followed &&
                (replica->progressed || now_ms - replica->stage_ms >= GOOD_MS);

    replica_link_drop(replica);
    log_reason(replica, now_ms);
    if (followed) {
        replica->down_ms = now_ms;
    }
    if (replica->stage == SWITCHES) {
        return; /* all of the snapshot is here */
    }
    if (replica->stage == LOADS) {
        replica->hooks.load_cancel(replica->hooks.ctx);
    }
    replica_link_enter(replica, WAITS, now_ms);
    if (good && !replica->distrusted) {
        replica->backoff_ms = 0;
        replica_link_dial(replica, now_ms);
        return;
    }
    replica->backoff_ms = doubled(good ? 0 : replica->backoff_ms);
    if (replica->backoff_ms < replica->doubt_ms) {
        replica->backoff_ms = replica->doubt_ms;
    }
    replica->retry_ms = now_ms + jittered(replica, replica->backoff_ms);
}

/* What the primary sends does not fit our data. A full synchronization costs
 * the primary something: if they follow each other, then slowly. */
void
replica_link_doubt(struct replica *replica, uint64_t now_ms)
{
    replica->distrusted = true;
    replica->doubt_ms = doubled(replica->doubt_ms);
    replica_link_lose(replica, now_ms);
}

void
replica_link_dial(struct replica *replica, uint64_t now_ms)
{
    replica->number = ++replica->numbers;
    replica->reader = (struct wire_reader){ .phase = WIRE_LINES,
                                            .group_max = replica->group_max };
    replica_link_enter(replica, DIALS, now_ms);
    replica->hooks.dial(replica->hooks.ctx, replica->number, replica->host,
                        replica->primary_port, replica->timeout_ms);
}

/* Sends what `out` holds; false if the link was lost over it. */
bool
replica_link_flush(struct replica *replica, uint64_t now_ms)
{
    bool sent = !replica->out.failed &&
                replica->hooks.send(replica->hooks.ctx, replica->number,
                                    buf_slice(&replica->out));

    buf_reset(&replica->out, REPLICA_KEPT_BYTES);
    if (!sent) {
        replica_link_explain(replica,
                             "the primary does not take what is sent to it, or "
                             "there is no memory for it");
        replica_link_lose(replica, now_ms);
    }
    return sent;
}

void
replica_link_pause(struct replica *replica)
{
    replica->paused = true;
    replica->hooks.pause(replica->hooks.ctx, replica->number, true);
}

/* A fault of the link, as long as it does not happen again at the same
 * place. */
void
replica_link_bad(struct replica *replica, const char *why, uint64_t now_ms)
{
    replica_link_explain(replica, "what the primary sends cannot be read: %s",
                         why);
    if (replica->stage != FOLLOWS) {
        replica_link_lose(replica, now_ms);
    } else if (replica->bad_before &&
               replica->bad_position == replica->position) {
        replica->bad_before = false;
        replica_link_doubt(replica, now_ms);
    } else {
        replica->bad_before = true;
        replica->bad_position = replica->position;
        replica_link_lose(replica, now_ms);
    }
}
