/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The snapshot and the log of the server that a pull takes its slots from.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal/group.h"
#include "keyspace/exchange.h"
#include "replay/complete.h"
#include "replay/inject.h"
#include "server/following.h"
#include "server/pull_adopt.h"
#include "server/pull_log.h"
#include "server/pull_state.h"
#include "server/secrets.h"
#include "server/server_state.h"

#include <stdio.h>

enum {
    QUEUE_BYTES = 8 << 20,
    SLICE_NS = 500000 /* of adoption, between turns of loop 0 */
};

/* Whether pulls may write. Inside the gate: a replica's log is its primary's.
 */
static bool
may_write(const struct pulls *pulls)
{
    return !pulls->r->server->service.role.replica;
}

/* ---- the link ------------------------------------------------------------ */

static void
dial(void *ctx, uint64_t number, const char *host, unsigned port,
     uint64_t timeout_ms)
{
    struct pulls *pulls = ctx;

    upstream_dial(&pulls->up, number, host, port, timeout_ms);
}

static bool
send_bytes(void *ctx, uint64_t number, struct slice bytes)
{
    struct pulls *pulls = ctx;

    return upstream_send(&pulls->up, number, bytes);
}

static void
close_link(void *ctx, uint64_t number)
{
    struct pulls *pulls = ctx;

    upstream_close(&pulls->up, number);
}

static void
pause_link(void *ctx, uint64_t number, bool paused)
{
    struct pulls *pulls = ctx;

    upstream_pause(&pulls->up, number, paused);
}

static void
where(void *ctx, struct replica_place *ret_place)
{
    const struct pulls *pulls = ctx;

    if (pulls->follows) {
        memcpy(ret_place->history, pulls->arriving.history,
               sizeof(ret_place->history));
        ret_place->position = pulls->position;
        ret_place->sequence = pulls->sequence;
    }
}

static void
take_key(void *ctx, uint64_t key)
{
    (void)ctx;
    (void)key;
}

static void
chained(void *ctx)
{
    (void)ctx;
}

/* ---- groups -------------------------------------------------------------- */

static void
note_lag(struct pulls *pulls, const struct wire_piece *group)
{
    uint64_t sealed_ms = group_seal_time(group->seal);
    uint64_t now_ms = clock_wall_ms();

    pulls->lag_ms = now_ms > sealed_ms ? now_ms - sealed_ms : 0;
}

static enum replica_applied
apply(void *ctx, const struct wire_piece *group, char *ret_reason,
      size_t reason_size)
{
    struct pulls *pulls = ctx;
    struct gate *gate = replication_gate(pulls->r);
    enum replica_applied applied = REPLICA_LATER;

    if (secrets_are_missing(group->value, ret_reason, reason_size)) {
        return REPLICA_RENEW;
    }
    if (!following_has_room(pulls->r)) {
        pulls->waits_for_room = true;
        return REPLICA_LATER;
    }
    gate_enter(gate, 0);
    if (may_write(pulls)) { /* else the pull ends soon */
        applied = pull_log_group(pulls->log, group->value, pulls->position,
                                 group->sequence, ret_reason, reason_size)
                      ? REPLICA_APPLIED
                      : REPLICA_REFUSED;
    }
    gate_leave(gate, 0);
    inject_wake(pulls->inject);
    if (applied == REPLICA_APPLIED) {
        pulls->position += group->value.len + GROUP_SEAL_BYTES;
        pulls->sequence = group->sequence;
        note_lag(pulls, group);
    } else if (applied == REPLICA_REFUSED) {
        pulls->follows = false;
    }
    return applied;
}

/* ---- snapshots ----------------------------------------------------------- */

static void
on_transfer_poke(void *ctx)
{
    struct pulls *pulls = ctx;

    (void)uv_async_send(&pulls->r->poke);
}

static void
forget_load(struct pulls *pulls)
{
    transfer_free(pulls->transfer);
    adoption_free(pulls->adoption);
    pull_log_free(pulls->log);
    pulls->transfer = NULL;
    pulls->adoption = NULL;
    pulls->log = NULL;
    pulls->complete = pulls->follows = pulls->waits_for_room = false;
    pulls->durable_at = 0;
    pulls->keys = pulls->bytes = pulls->lag_ms = 0;
}

static bool
load_begin(void *ctx, const struct wire_answer *answer, char *ret_reason,
           size_t reason_size)
{
    struct pulls *pulls = ctx;
    struct server *server = pulls->r->server;
    struct transfer_options options = {
        .keyspace = { .threads = server->threads,
                      .databases = (unsigned)server->conf.databases },
        .present = server->service.keyspace,
        .env = &server->service.obey_env,
        .completion = &complete_calls,
        .part = &pulls->part,
        .queue_bytes = QUEUE_BYTES,
        .poke = on_transfer_poke,
        .ctx = pulls
    };

    forget_load(pulls);
    pulls->attempts++;
    pulls->arriving = *answer;
    pulls->transfer = transfer_new(&options);
    if (pulls->transfer == NULL) {
        (void)snprintf(ret_reason, reason_size,
                       "there is no memory or no thread to load it");
    }
    return pulls->transfer != NULL;
}

static bool
load_bytes(void *ctx, struct slice bytes)
{
    struct pulls *pulls = ctx;

    CHECK(pulls->transfer != NULL && !pulls->complete);
    pulls->bytes += bytes.len;
    if (transfer_put(pulls->transfer, bytes)) {
        return true;
    }
    pulls->waits_for_room = true;
    return false;
}

static void
load_end(void *ctx)
{
    struct pulls *pulls = ctx;

    pulls->complete = true;
    transfer_finish(pulls->transfer);
}

static void
load_cancel(void *ctx)
{
    forget_load(ctx);
}

static void
fail_load(struct pulls *pulls, const char *reason)
{
    forget_load(pulls);
    replica_loaded(pulls->replica, false, reason, replication_now_ms());
}

/* The snapshot is loaded: its keys are to become ours. */
static void
begin_adoption(struct pulls *pulls)
{
    struct keyspace *ks = pulls->r->server->service.keyspace;
    struct keyspace *fresh = transfer_take(pulls->transfer, &pulls->stamp);

    transfer_free(pulls->transfer);
    pulls->transfer = NULL;
    pulls->adoption = adoption_new(fresh, ks, pulls->inject, &pulls->slots);
}

static void
look_at_transfer(struct pulls *pulls)
{
    char reason[STATUS_TEXT_MAX];

    switch (transfer_poll(pulls->transfer, reason, sizeof(reason))) {
    case TRANSFER_RUNS:
        break;
    case TRANSFER_LOADED:
        if (pulls->complete) {
            begin_adoption(pulls);
        }
        break;
    case TRANSFER_FAILED:
        fail_load(pulls, reason);
        break;
    }
}

static void
end_adoption(struct pulls *pulls)
{
    struct keyspace *ks = pulls->r->server->service.keyspace;

    adoption_free(pulls->adoption);
    pulls->adoption = NULL;
    pulls->log = pull_log_new(pulls->inject, ks, &pulls->slots);
    pulls->position = pulls->stamp.position;
    pulls->sequence = pulls->stamp.sequence;
    pulls->follows = true;
    log_notice("server.pull", "took the keys of slots over",
               "slots=%u keys=%llu bytes=%llu position=%llu",
               slot_set_count(&pulls->slots), (unsigned long long)pulls->keys,
               (unsigned long long)pulls->bytes,
               (unsigned long long)pulls->position);
    replica_loaded(pulls->replica, true, "", replication_now_ms());
}

static void
adopt(struct pulls *pulls)
{
    struct gate *gate = replication_gate(pulls->r);
    enum adoption_state state = ADOPTION_RUNS;
    char reason[STATUS_TEXT_MAX];

    if (!following_has_room(pulls->r)) {
        return; /* the next tick tries again */
    }
    gate_enter(gate, 0);
    if (may_write(pulls)) {
        state =
            adoption_step(pulls->adoption, SLICE_NS, reason, sizeof(reason));
    }
    gate_leave(gate, 0);
    inject_wake(pulls->inject);
    pulls->keys = adoption_keys(pulls->adoption);
    pulls->bytes = adoption_bytes(pulls->adoption);
    if (state == ADOPTION_DONE) {
        end_adoption(pulls);
    } else if (state == ADOPTION_FAILED) {
        fail_load(pulls, reason);
    }
}

void
pull_link_look(struct pulls *pulls)
{
    if (pulls->transfer != NULL) {
        look_at_transfer(pulls);
    }
    if (pulls->adoption != NULL) {
        adopt(pulls);
    }
    if (pulls->waits_for_room &&
        (pulls->transfer == NULL ? following_has_room(pulls->r)
                                 : transfer_has_room(pulls->transfer))) {
        pulls->waits_for_room = false;
        replica_go_on(pulls->replica, replication_now_ms());
    }
}

/* ---- begin and end ------------------------------------------------------- */

/* Says to the source which slots it is about, at the next connection. */
static void
set_slots(struct pulls *pulls)
{
    pulls->slots = pulls->first->slots;
    buf_reset(&pulls->text, 4096);
    slot_set_write(&pulls->text, &pulls->slots);
    buf_append(&pulls->text, "", 1);
    CHECK(!pulls->text.failed);
    replica_set_slots(pulls->replica, pulls->text.data);
}

void
pull_link_begin(struct pulls *pulls)
{
    const struct pull *pull = pulls->first;
    struct replica_target target = { .host = pull->host, .port = pull->port };

    forget_load(pulls);
    pulls->attempts = 0;
    pulls->part =
        (struct walk_part){ .of = WALK_PART_SLOTS, .slots = &pulls->slots };
    set_slots(pulls);
    replica_follow(pulls->replica, &target, replication_now_ms());
}

void
pull_link_narrow(struct pulls *pulls)
{
    CHECK(pulls->follows && !slot_set_is_empty(&pulls->first->slots));
    set_slots(pulls);
    if (pulls->durable_at > 0) { /* these have all of the log that counts */
        slot_set_subtract(&pulls->slots, &pulls->first->claim.slots);
    }
}

void
pull_link_end(struct pulls *pulls)
{
    replica_stop(pulls->replica);
    forget_load(pulls);
}

static bool
wants_secret(void *ctx, uint64_t fingerprint)
{
    (void)ctx;
    return secrets_wants(fingerprint);
}

static enum replica_learned
learn(void *ctx, uint64_t fingerprint, const char *digits)
{
    struct pulls *pulls = ctx;

    return secrets_learn(pulls->r->server->persist, fingerprint, digits);
}

const struct replica_hooks pull_link_hooks = { .dial = dial,
                                               .send = send_bytes,
                                               .close = close_link,
                                               .pause = pause_link,
                                               .where = where,
                                               .apply = apply,
                                               .load_begin = load_begin,
                                               .load_bytes = load_bytes,
                                               .load_end = load_end,
                                               .load_cancel = load_cancel,
                                               .key = take_key,
                                               .chained = chained,
                                               .wants = wants_secret,
                                               .learn = learn };
