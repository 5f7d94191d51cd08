/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that look for duplicates mostly add items that are there already,
 * which changes nothing. Only a lookup can show this, and a lookup is almost
 * all the work of an add. So dispatch tries a lookup under the shared lock only
 * for keys whose last runs changed nothing.
 */
#include "engine/run.h"

enum {
    RUN_MAX = 64,       /* commands that may share one lock */
    ONE_ITEM_ARGC = 3,  /* name, key, item */
    UNCHANGED_RUNS = 8, /* after so many in a row, the next run is expected to
                           change nothing, too */
};

struct run
run_of(const struct command *command, unsigned words, const struct slice *argv,
       size_t argc)
{
    return (struct run){ .command = command,
                         .argv = argv,
                         .argc = argc,
                         .words = words,
                         .count = 1 };
}

static const struct command *
resolve(const struct run *last, const struct slice *argv, size_t argc,
        unsigned *ret_words)
{
    if (last != NULL && last->words == 1 && !last->command->container &&
        slice_equal(last->argv[0], argv[0])) {
        *ret_words = 1;
        return last->command;
    }
    return command_resolve(argv, argc, ret_words);
}

void
run_gather(const struct batch *batch, uint32_t first, bool may_group,
           const struct run *last, struct run *ret_run)
{
    const struct batch_command *bytes = &batch->command[first];
    const struct slice *argv = &batch->argv[bytes->first];
    const struct command *command =
        resolve(last, argv, bytes->argc, &ret_run->words);
    const struct batch_command *end = bytes + 1;

    ret_run->command = command;
    ret_run->argv = argv;
    ret_run->argc = bytes->argc;
    ret_run->count = 1;
    ret_run->many = may_group && bytes->argc == ONE_ITEM_ARGC &&
                    command != NULL && command->many != NULL &&
                    !command_is_forbidden(command->id);
    if (ret_run->many) {
        uint32_t left = batch->count - first;
        const struct batch_command *most =
            bytes + (left < RUN_MAX ? left : RUN_MAX);

        while (end < most && end->repeats) {
            end++;
        }
        ret_run->count = (uint32_t)(end - bytes);
    }
}

/* Returns the counter of the runs in a row that changed nothing. Several keys
 * may share a counter. */
static uint8_t *
unchanged_of(const struct request *req)
{
    return &req->worker->unchanged[req->key.hash % WORKER_PLACES];
}

bool
run_changes_nothing(const struct request *req, const struct run *run)
{
    return run->command->known != NULL && !req->worker->alone &&
           *unchanged_of(req) >= UNCHANGED_RUNS && !req->worker->silent;
}

void
run_note_change(const struct request *req, const struct run *run, bool changed)
{
    uint8_t *unchanged = unchanged_of(req);

    if (run->command->known == NULL) {
        return;
    }
    if (changed) {
        *unchanged = 0;
    } else if (*unchanged < UNCHANGED_RUNS) {
        (*unchanged)++;
    }
}
