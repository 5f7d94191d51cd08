/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pull_log.h"

#include "access/table.h"
#include "base/mem.h"
#include "engine/excerpt.h"
#include "engine/inject.h"
#include "keyspace/hash_slot.h"
#include "proto/batch.h"
#include "proto/scan.h"
#include "server/sweep.h"

#include <errno.h>
#include <stdio.h>

struct pull_log {
    struct inject *inject;
    struct keyspace *ks;
    struct walk_part part;
    struct excerpt *excerpt;
    struct batch batch;
    /* Of the group: */
    uint64_t db;
    char *reason;
    size_t reason_size;
};

struct pull_log *
pull_log_new(struct inject *inject, struct keyspace *ks,
             const struct slot_set *slots)
{
    struct pull_log *log = mem_zalloc(sizeof(*log));

    log->inject = inject;
    log->ks = ks;
    log->part = (struct walk_part){ .of = WALK_PART_SLOTS, .slots = slots };
    log->excerpt = excerpt_new(&log->part);
    return log;
}

void
pull_log_free(struct pull_log *log)
{
    if (log == NULL) {
        return;
    }
    excerpt_free(log->excerpt);
    batch_fini(&log->batch);
    mem_free(log);
}

/* ---- commands ------------------------------------------------------------ */

/* Deletes all keys of the slots, in one go: what follows in the log relies on
 * it. */
static bool
flush(struct pull_log *log, bool one_db)
{
    struct sweep sweep = { .inject = log->inject,
                           .ks = log->ks,
                           .slots = log->part.slots,
                           .one_db = one_db,
                           .db = (uint32_t)log->db };
    bool good = true;

    while (good && !sweep.done) {
        good = sweep_step(&sweep, log->reason, log->reason_size);
    }
    sweep_fini(&sweep);
    inject_select(log->inject, (uint32_t)log->db);
    return good;
}

struct look {
    const struct slot_set *slots;
    const struct slice *argv;
    bool inside, outside;
};

static void
look_at_key(void *ctx, size_t position)
{
    struct look *look = ctx;

    if (slot_set_has(look->slots, hash_slot_of(look->argv[position]))) {
        look->inside = true;
    } else {
        look->outside = true;
    }
}

static bool
is_swap(const struct slice *argv)
{
    return !slice_equal(argv[1], argv[2]);
}

enum verdict {
    VERDICT_RUN,
    VERDICT_FLUSH_DB,
    VERDICT_FLUSH_ALL,
    VERDICT_SKIP,
    VERDICT_REFUSE
};

static enum verdict
judge(struct pull_log *log, const struct slice *argv, size_t argc)
{
    const struct command *command = command_find(argv[0]);
    struct look look = { log->part.slots, argv, false, false };

    switch (command->id) { /* the excerpt knows it */
    case CMD_ID_SELECT:
        return slice_to_u64(argv[1], &log->db) ? VERDICT_RUN : VERDICT_REFUSE;
    case CMD_ID_FLUSHALL:
        return VERDICT_FLUSH_ALL;
    case CMD_ID_FLUSHDB:
        return VERDICT_FLUSH_DB;
    case CMD_ID_SWAPDB:
        return is_swap(argv) ? VERDICT_REFUSE : VERDICT_SKIP;
    case CMD_ID_BF_MERGE: /* INCARNATION n stands behind its keys */
        argc -= 2;
        break;
    default:
        break;
    }
    command_each_key(command, argc, look_at_key, &look);
    if (!look.inside) { /* only a word that is no key has such a slot */
        return VERDICT_SKIP;
    }
    return look.outside ? VERDICT_REFUSE : VERDICT_RUN;
}

static bool
run(struct pull_log *log, struct slice commands)
{
    return commands.len == 0 ||
           inject_run(log->inject, commands, log->reason, log->reason_size);
}

/* Executes the commands of the batch, which ends at `end` of the text. Those
 * that follow each other are executed together. */
static bool
run_batch(struct pull_log *log, struct slice text, size_t begin, size_t end)
{
    const struct batch *batch = &log->batch;

    for (uint32_t i = 0; i < batch->count; i++) {
        const struct batch_command *bytes = &batch->command[i];
        const struct slice *argv = &batch->argv[bytes->first];
        size_t next = i + 1 < batch->count ? batch->command[i + 1].begin : end;
        enum verdict verdict = judge(log, argv, bytes->argc);

        if (verdict == VERDICT_RUN) {
            continue;
        }
        if (verdict == VERDICT_REFUSE) {
            (void)snprintf(log->reason, log->reason_size,
                           "the log has %.*s on keys of these slots and of "
                           "others",
                           slice_shown(argv[0]), argv[0].data);
            return false;
        }
        if (!run(log,
                 (struct slice){ text.data + begin, bytes->begin - begin })) {
            return false;
        }
        if (verdict != VERDICT_SKIP &&
            !flush(log, verdict == VERDICT_FLUSH_DB)) {
            return false;
        }
        begin = next;
    }
    return run(log, (struct slice){ text.data + begin, end - begin });
}

static int
run_piece(void *ctx, const struct snapshot_effects *piece)
{
    static const struct parse_limits limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                false };
    struct pull_log *log = ctx;
    size_t at = 0;

    while (at < piece->commands.len) {
        size_t begin = at;

        batch_clear(&log->batch);
        if (scan_commands(piece->commands, &limits, &log->batch, &at) != OK) {
            return ENOMEM;
        }
        if (!run_batch(log, piece->commands, begin, at)) {
            return ECANCELED;
        }
    }
    return 0;
}

bool
pull_log_group(struct pull_log *log, struct slice commands, uint64_t position,
               uint64_t sequence, char *ret_reason, size_t reason_size)
{
    const struct snapshot_effects effects = { .position = position,
                                              .sequence = sequence,
                                              .commands = commands };
    int error;

    log->reason = ret_reason;
    log->reason_size = reason_size;
    error = excerpt_group(log->excerpt, &effects, run_piece, log);
    if (error == ENOMEM) {
        (void)snprintf(ret_reason, reason_size, "there is no memory for it");
    } else if (error == EINVAL) {
        (void)snprintf(ret_reason, reason_size,
                       "a command is none that a log may have");
    }
    return error == 0;
}
