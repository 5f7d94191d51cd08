/* SPDX-License-Identifier: BSD-3-Clause */
#include "slots/pull_log.h"

#include "base/mem.h"
#include "engine/logged.h"
#include "keyspace/hash_slot.h"
#include "replay/excerpt.h"
#include "replay/inject.h"
#include "slots/sweep.h"

#include <errno.h>
#include <stdio.h>

struct pull_log {
    struct inject *inject;
    struct keyspace *ks;
    struct walk_part part;
    struct excerpt *excerpt;
    struct logged_reader reader;
    /* About the present group: */
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
    logged_fini(&log->reader);
    mem_free(log);
}

/* ---- commands ------------------------------------------------------------ */

/* Deletes all keys of the slots, without pauses: the commands that follow in
 * the log rely on that. */
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
judge_logged(struct pull_log *log, const struct logged *logged)
{
    struct look look = { log->part.slots, logged->argv, false, false };
    size_t argc = logged->argc;

    switch (logged->kind) { /* logged_next() sets the kind */
    case LOGGED_SELECT:
        return slice_to_u64(logged->argv[1], &log->db) ? VERDICT_RUN
                                                       : VERDICT_REFUSE;
    case LOGGED_FLUSH_ALL:
        return VERDICT_FLUSH_ALL;
    case LOGGED_FLUSH_DB:
        return VERDICT_FLUSH_DB;
    case LOGGED_SWAP:
        return is_swap(logged->argv) ? VERDICT_REFUSE : VERDICT_SKIP;
    case LOGGED_MERGE: /* the words INCARNATION n follow its keys */
        argc -= 2;
        break;
    default:
        break;
    }
    command_each_key(logged->row, argc, look_at_key, &look);
    if (!look.inside) { /* none of its keys is of these slots */
        return VERDICT_SKIP;
    }
    return look.outside ? VERDICT_REFUSE : VERDICT_RUN;
}

static bool
run_commands(struct pull_log *log, struct slice commands)
{
    return commands.len == 0 ||
           inject_run(log->inject, commands, log->reason, log->reason_size);
}

/* Executes a piece of a group. Consecutive commands are executed together. */
static int
run_piece(void *ctx, const struct snapshot_effects *piece)
{
    struct pull_log *log = ctx;
    struct slice text = piece->commands;
    struct logged logged;
    size_t begin = 0; /* of the commands that are not executed yet */

    logged_begin(&log->reader, text);
    while (logged_next(&log->reader, &logged)) {
        enum verdict verdict = judge_logged(log, &logged);

        if (verdict == VERDICT_RUN) {
            continue;
        }
        if (verdict == VERDICT_REFUSE) {
            (void)snprintf(log->reason, log->reason_size,
                           "the log has %.*s on keys of these slots and of "
                           "others",
                           slice_shown(logged.argv[0]), logged.argv[0].data);
            return ECANCELED;
        }
        if (!run_commands(log, (struct slice){ text.data + begin,
                                               logged.begin - begin }) ||
            (verdict != VERDICT_SKIP &&
             !flush(log, verdict == VERDICT_FLUSH_DB))) {
            return ECANCELED;
        }
        begin = logged.end;
    }
    if (log->reader.error != 0) {
        return log->reader.error;
    }
    return run_commands(log,
                        (struct slice){ text.data + begin, text.len - begin })
               ? 0
               : ECANCELED;
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
