/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A window has only commands that are short, never pause and change nothing in
 * their session. So what is found out about a run here is still true when it
 * executes.
 */
#include "engine/window.h"

#include "engine/admit.h"
#include "engine/execute.h"
#include "engine/rights.h"
#include "engine/route.h"

enum {
    ITEM_AT = 2, /* argv position of the first item, in commands with items */
    /* With less memory left than this, commands that may need some execute one
     * by one, so that each is admitted, or makes room, by itself. */
    ROOM_BYTES = 4 << 20
};

static uint32_t
items_of(const struct run *run)
{
    size_t each = run->argc > ITEM_AT ? run->argc - ITEM_AT : 1;

    return each > WINDOW_ITEMS ? WINDOW_ITEMS + 1 : run->count * (uint32_t)each;
}

static bool
joins(const struct run *run)
{
    const struct command *command = run->command;

    return command != NULL && command->lock == LOCK_KEYS &&
           command->keys.first > 0 && run->argc > (size_t)command->keys.first &&
           command->prepare == NULL &&
           ((command->flags & CMD_FAST) != 0 || command->splits) &&
           items_of(run) <= WINDOW_ITEMS;
}

static bool
is_admitted(struct request *req, const struct run *run)
{
    if (run->many) {
        return true;
    }
    execute_prepare(req, run, 0);
    return admit_request(req, run->words) == OK;
}

/* In sidecar mode a window ends before a command that is redirected, and the
 * commands behind it are gathered again. So windows begin short after a
 * redirect, and double from then on. */
static uint32_t
runs_by_route(struct worker *worker, uint32_t most)
{
    uint32_t runs = worker->runs_routed;

    if (runs == 0 || runs >= most) {
        return most;
    }
    worker->runs_routed = 2 * runs;
    return runs;
}

void
window_gather_others(struct worker *worker, const struct batch *batch,
                     uint32_t end)
{
    struct window *window = worker->window;
    bool locks =
        !worker->alone && keyspace_is_shared(worker->service->keyspace);
    uint32_t most = locks ? WINDOW_LOCKED : WINDOW_RUNS;
    uint32_t items = items_of(window->run);

    if (__builtin_expect(worker->service->cluster != NULL, 0)) {
        most = runs_by_route(worker, most);
    }
    if (!joins(window->run) || worker->session->again != NULL ||
        worker->session->rights != NULL) {
        return;
    }
    while (window->count < most && end < batch->count) {
        struct run *run = &window->run[window->count];

        run_gather(batch, end, true, run - 1, run);
        if (!joins(run) || !is_admitted(worker->request, run)) {
            return;
        }
        items += items_of(run);
        if (items > WINDOW_ITEMS) {
            return;
        }
        end += run->count;
        window->count++;
    }
}

/* Returns whether there is so much memory that the commands of a window cannot
 * exceed maxmemory. */
static bool
has_room(const struct service *service)
{
    uint64_t max = service->memory.maxmemory_bytes;

    return max == 0 ||
           (max > ROOM_BYTES && !keyspace_is_over(max - ROOM_BYTES));
}

/* Returns whether the user may execute the run. If not, the window ends before
 * it, and it is refused or checked as the first run of the next window. */
static bool
has_rights(const struct request *req, const struct run *run)
{
    return req->obey || !rights_are_limited(req->session) ||
           rights_allow_short(req, run->command, run->argv, run->argc);
}

void
window_admit(struct request *req, struct window *window)
{
    const struct command *first = req->command;
    bool roomy = req->obey || has_room(req->service);
    bool routes = route_is_on(req);

    for (uint32_t i = 1; i < window->count; i++) {
        const struct command *command = window->run[i].command;
        bool admitted = (roomy || (command->flags & CMD_DENYOOM) == 0) &&
                        has_rights(req, &window->run[i]);

        if (admitted && routes) {
            const struct run *run = &window->run[i];

            admitted = route_allows(req, command, run->argv, run->argc,
                                    &window->ahead.key[i]);
            if (!admitted) {
                req->worker->runs_routed = i;
            }
        }
        if (admitted && command != req->command) {
            req->command = command;
            admitted = admit_by_state(req) == OK;
        }
        if (!admitted) {
            window->count = i;
        }
    }
    req->command = first;
    req->session->wait = CONN_RUNS;
}
