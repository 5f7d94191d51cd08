/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The snapshot and the log of the server that a pull takes its slots from.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "dial/secrets.h"
#include "engine/role.h"
#include "engine/service.h"
#include "journal/group.h"
#include "keyspace/exchange.h"
#include "keyspace/gate.h"
#include "replay/complete.h"
#include "replay/inject.h"
#include "slots/pull_adopt.h"
#include "slots/pull_log.h"
#include "slots/pull_state.h"

#include <stdio.h>

enum {
    QUEUE_BYTES = 8 << 20,
    SLICE_NS = 500000 /* of adoption, between turns of loop 0 */
};

/* Whether the pull may write. Inside the gate: a replica's log is its
 * primary's.
 */
static bool
may_write(const struct pull *pull)
{
    return !pull->roles.loop0->service->role.replica;
}

/* ---- the link ------------------------------------------------------------ */

static void
dial_source(void *ctx, uint64_t number, const char *host, unsigned port,
            uint64_t timeout_ms)
{
    struct pull *pull = ctx;

    upstream_dial(&pull->up, number, host, port, timeout_ms);
}

static bool
send_bytes(void *ctx, uint64_t number, struct slice bytes)
{
    struct pull *pull = ctx;

    return upstream_send(&pull->up, number, bytes);
}

static void
close_link(void *ctx, uint64_t number)
{
    struct pull *pull = ctx;

    upstream_close(&pull->up, number);
}

static void
pause_link(void *ctx, uint64_t number, bool paused)
{
    struct pull *pull = ctx;

    upstream_pause(&pull->up, number, paused);
}

static void
where(void *ctx, struct replica_place *ret_place)
{
    const struct pull *pull = ctx;

    if (pull->follows) {
        memcpy(ret_place->history, pull->arriving.history,
               sizeof(ret_place->history));
        ret_place->position = pull->position;
        ret_place->sequence = pull->sequence;
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
note_lag(struct pull *pull, const struct wire_piece *group)
{
    uint64_t sealed_ms = group_seal_time(group->seal);
    uint64_t now_ms = clock_wall_ms();

    pull->lag_ms = now_ms > sealed_ms ? now_ms - sealed_ms : 0;
}

static enum replica_applied
apply(void *ctx, const struct wire_piece *group, char *ret_reason,
      size_t reason_size)
{
    struct pull *pull = ctx;
    struct gate *gate = keyspace_gate(pull->roles.loop0->service->keyspace);
    enum replica_applied applied = REPLICA_LATER;

    if (secrets_are_missing(group->value, ret_reason, reason_size)) {
        return REPLICA_RENEW;
    }
    if (!service_takes_logs(pull->roles.loop0->service)) {
        pull->waits_for_room = true;
        return REPLICA_LATER;
    }
    gate_enter(gate, 0);
    if (may_write(pull)) { /* else the pull ends soon */
        applied = pull_log_group(pull->log, group->value, pull->position,
                                 group->sequence, ret_reason, reason_size)
                      ? REPLICA_APPLIED
                      : REPLICA_REFUSED;
    }
    gate_leave(gate, 0);
    inject_wake(pull->inject);
    if (applied == REPLICA_APPLIED) {
        pull->position += group->value.len + GROUP_SEAL_BYTES;
        pull->sequence = group->sequence;
        note_lag(pull, group);
    } else if (applied == REPLICA_REFUSED) {
        pull->follows = false;
    }
    return applied;
}

/* ---- snapshots ----------------------------------------------------------- */

static void
on_transfer_poke(void *ctx)
{
    struct pull *pull = ctx;

    pull->roles.poke(pull->roles.ctx);
}

static void
forget_load(struct pull *pull)
{
    transfer_free(pull->transfer);
    adoption_free(pull->adoption);
    pull_log_free(pull->log);
    pull->transfer = NULL;
    pull->adoption = NULL;
    pull->log = NULL;
    pull->complete = pull->follows = pull->waits_for_room = false;
    pull->durable_at = 0;
    pull->keys = pull->bytes = pull->lag_ms = 0;
}

static bool
load_begin(void *ctx, const struct wire_answer *answer, char *ret_reason,
           size_t reason_size)
{
    struct pull *pull = ctx;
    struct service *service = pull->roles.loop0->service;
    struct transfer_options options = {
        .keyspace = { .threads = service->threads,
                      .databases = (unsigned)service->conf->databases },
        .present = service->keyspace,
        .env = &service->obey_env,
        .completion = &complete_calls,
        .part = &pull->part,
        .queue_bytes = QUEUE_BYTES,
        .poke = on_transfer_poke,
        .ctx = pull
    };

    forget_load(pull);
    pull->attempts++;
    pull->arriving = *answer;
    pull->transfer = transfer_new(&options);
    if (pull->transfer == NULL) {
        (void)snprintf(ret_reason, reason_size,
                       "there is no memory or no thread to load it");
    }
    return pull->transfer != NULL;
}

static bool
load_bytes(void *ctx, struct slice bytes)
{
    struct pull *pull = ctx;

    CHECK(pull->transfer != NULL && !pull->complete);
    pull->bytes += bytes.len;
    if (transfer_put(pull->transfer, bytes)) {
        return true;
    }
    pull->waits_for_room = true;
    return false;
}

static void
load_end(void *ctx)
{
    struct pull *pull = ctx;

    pull->complete = true;
    transfer_finish(pull->transfer);
}

static void
load_cancel(void *ctx)
{
    forget_load(ctx);
}

static void
fail_load(struct pull *pull, const char *reason)
{
    forget_load(pull);
    replica_loaded(pull->replica, false, reason, run_clock_ms());
}

/* The snapshot is loaded: its keys are to become ours. */
static void
begin_adoption(struct pull *pull)
{
    struct keyspace *ks = pull->roles.loop0->service->keyspace;
    struct keyspace *fresh = transfer_take(pull->transfer, &pull->stamp);

    transfer_free(pull->transfer);
    pull->transfer = NULL;
    pull->adoption = adoption_new(fresh, ks, pull->inject, &pull->slots);
}

static void
look_at_transfer(struct pull *pull)
{
    char reason[STATUS_TEXT_MAX];

    switch (transfer_poll(pull->transfer, reason, sizeof(reason))) {
    case TRANSFER_RUNS:
        break;
    case TRANSFER_LOADED:
        if (pull->complete) {
            begin_adoption(pull);
        }
        break;
    case TRANSFER_FAILED:
        fail_load(pull, reason);
        break;
    }
}

static void
end_adoption(struct pull *pull)
{
    struct keyspace *ks = pull->roles.loop0->service->keyspace;

    adoption_free(pull->adoption);
    pull->adoption = NULL;
    pull->log = pull_log_new(pull->inject, ks, &pull->slots);
    pull->position = pull->stamp.position;
    pull->sequence = pull->stamp.sequence;
    pull->follows = true;
    log_notice("server.pull", "took the keys of slots over",
               "slots=%u keys=%llu bytes=%llu position=%llu",
               slot_set_count(&pull->slots), (unsigned long long)pull->keys,
               (unsigned long long)pull->bytes,
               (unsigned long long)pull->position);
    replica_loaded(pull->replica, true, "", run_clock_ms());
}

static void
adopt(struct pull *pull)
{
    struct gate *gate = keyspace_gate(pull->roles.loop0->service->keyspace);
    enum adoption_state state = ADOPTION_RUNS;
    char reason[STATUS_TEXT_MAX];

    if (!service_takes_logs(pull->roles.loop0->service)) {
        return; /* the next tick tries again */
    }
    gate_enter(gate, 0);
    if (may_write(pull)) {
        state = adoption_step(pull->adoption, SLICE_NS, reason, sizeof(reason));
    }
    gate_leave(gate, 0);
    inject_wake(pull->inject);
    pull->keys = adoption_keys(pull->adoption);
    pull->bytes = adoption_bytes(pull->adoption);
    if (state == ADOPTION_DONE) {
        end_adoption(pull);
    } else if (state == ADOPTION_FAILED) {
        fail_load(pull, reason);
    }
}

void
pull_link_look(struct pull *pull)
{
    if (pull->transfer != NULL) {
        look_at_transfer(pull);
    }
    if (pull->adoption != NULL) {
        adopt(pull);
    }
    if (pull->waits_for_room &&
        (pull->transfer == NULL ? service_takes_logs(pull->roles.loop0->service)
                                : transfer_has_room(pull->transfer))) {
        pull->waits_for_room = false;
        replica_go_on(pull->replica, run_clock_ms());
    }
}

/* ---- begin and end ------------------------------------------------------- */

void
pull_link_begin(struct pull *pull)
{
    struct replica_target target = { .host = pull->host, .port = pull->port };

    forget_load(pull);
    pull->attempts = 0;
    pull->part =
        (struct walk_part){ .of = WALK_PART_SLOTS, .slots = &pull->slots };
    pull->slots = pull->claimed;
    buf_reset(&pull->text, 4096);
    slot_set_write(&pull->text, &pull->slots);
    buf_append(&pull->text, "", 1);
    CHECK(!pull->text.failed);
    replica_set_slots(pull->replica, pull->text.data);
    replica_follow(pull->replica, &target, run_clock_ms());
}

void
pull_link_end(struct pull *pull)
{
    replica_stop(pull->replica);
    forget_load(pull);
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
    struct pull *pull = ctx;

    return secrets_learn(pull->roles.loop0->service->persist, fingerprint,
                         digits);
}

const struct replica_hooks pull_link_hooks = { .dial = dial_source,
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
