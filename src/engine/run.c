/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that look for duplicates mostly add items that are there already,
 * which changes nothing. Only a lookup shows this, and it is almost all the
 * work of an add. So dispatch tries a lookup under the shared lock only for
 * keys whose last runs changed nothing.
 */
#include "engine/run.h"

enum {
    RUN_MAX = 64,       /* commands that may share one lock */
    ONE_ITEM_ARGC = 3,  /* name, key, item */
    UNCHANGED_RUNS = 8, /* after so many in a row, the next is expected to be */
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

struct run
run_gather(const struct batch *batch, uint32_t first, bool may_group)
{
    const struct batch_command *bytes = &batch->command[first];
    const struct slice *argv = &batch->argv[bytes->first];
    unsigned words;
    const struct command *command = command_resolve(argv, bytes->argc, &words);
    struct run run = run_of(command, words, argv, bytes->argc);
    uint32_t end = first + 1;

    if (!may_group || bytes->argc != ONE_ITEM_ARGC || command == NULL ||
        command->many == NULL) {
        return run;
    }
    while (end < batch->count && batch->command[end].repeats &&
           end - first < RUN_MAX) {
        end++;
    }
    run.count = end - first;
    run.many = true;
    return run;
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
           *unchanged_of(req) >= UNCHANGED_RUNS;
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
