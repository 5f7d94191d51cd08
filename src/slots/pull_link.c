/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the snapshot and the log of the server from which a pull takes its
 * slots.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "engine/role.h"
#include "engine/service.h"
#include "journal/group.h"
#include "keyspace/exchange.h"
#include "keyspace/gate.h"
#include "replay/inject.h"
#include "slots/pull_adopt.h"
#include "slots/pull_log.h"
#include "slots/pull_state.h"

#include <stdio.h>

enum { SLICE_NS = 500000 /* of adoption in one look of loop 0 */ };

/* Returns whether the pull may write: a replica executes only its primary's
 * log. Inside a section of the gate. */
static bool
may_write(const struct pull *pull)
{
    return !pull->roles.loop0->service->role.replica;
}

/* ---- the log ------------------------------------------------------------- */

static void
where(void *ctx, struct replica_place *ret_place)
{
    const struct pull *pull = upstream_owner(ctx);

    if (pull->follows) {
        memcpy(ret_place->history, pull->up.arriving.history,
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
    struct pull *pull = upstream_owner(ctx);
    struct gate *gate = keyspace_gate(pull->roles.loop0->service->keyspace);
    enum replica_applied applied =
        upstream_takes(&pull->up, group, ret_reason, reason_size);

    if (applied != REPLICA_APPLIED) {
        return applied;
    }
    applied = REPLICA_LATER;
    gate_enter(gate, 0);
    if (may_write(pull)) { /* otherwise the pull ends soon */
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
forget_load(struct pull *pull)
{
    upstream_drop(&pull->up);
    adoption_free(pull->adoption);
    pull_log_free(pull->log);
    pull->adoption = NULL;
    pull->log = NULL;
    pull->up.complete = pull->up.put_off = pull->follows = false;
    pull->durable_at = 0;
    pull->keys = pull->bytes = pull->lag_ms = 0;
}

static bool
load_begin(void *ctx, const struct wire_answer *answer, char *ret_reason,
           size_t reason_size)
{
    struct pull *pull = upstream_owner(ctx);
    static const struct transfer_copy nowhere;

    forget_load(pull);
    pull->attempts++;
    pull->up.arriving = *answer;
    return upstream_load(&pull->up, &pull->part, &nowhere, ret_reason,
                         reason_size);
}

static bool
load_bytes(void *ctx, struct slice bytes)
{
    struct pull *pull = upstream_owner(ctx);

    pull->bytes += bytes.len;
    return upstream_load_bytes(ctx, bytes);
}

static void
load_cancel(void *ctx)
{
    forget_load(upstream_owner(ctx));
}

static void
fail_load(struct pull *pull, const char *reason)
{
    forget_load(pull);
    replica_loaded(pull->replica, false, reason, run_clock_ms());
}

/* Begins to adopt the keys of the snapshot, which is loaded. */
static void
begin_adoption(struct pull *pull)
{
    struct keyspace *ks = pull->roles.loop0->service->keyspace;
    struct keyspace *fresh = upstream_take(&pull->up, &pull->stamp);

    pull->adoption = adoption_new(fresh, ks, pull->inject, &pull->slots);
}

static void
look_at_transfer(struct pull *pull)
{
    char reason[STATUS_TEXT_MAX];

    switch (upstream_poll(&pull->up, reason, sizeof(reason))) {
    case TRANSFER_RUNS:
        break;
    case TRANSFER_LOADED:
        begin_adoption(pull);
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
    if (pull->up.transfer != NULL) {
        look_at_transfer(pull);
    }
    if (pull->adoption != NULL) {
        adopt(pull);
    }
    upstream_look(&pull->up);
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

const struct replica_hooks pull_link_hooks = { .dial = upstream_dial,
                                               .send = upstream_send,
                                               .close = upstream_close,
                                               .pause = upstream_pause,
                                               .where = where,
                                               .apply = apply,
                                               .load_begin = load_begin,
                                               .load_bytes = load_bytes,
                                               .load_end = upstream_load_end,
                                               .load_cancel = load_cancel,
                                               .key = take_key,
                                               .chained = chained,
                                               .wants = upstream_wants,
                                               .learn = upstream_learn };
