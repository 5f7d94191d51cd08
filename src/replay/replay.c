/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker is `alone`, so nothing is locked, and MULTI and EXEC are skipped.
 */
#include "replay/replay.h"

#include "base/mem.h"
#include "replay/obey.h"

struct replay {
    struct obey obey;
};

struct replay *
replay_new(struct service *service)
{
    struct replay *replay = mem_zalloc(sizeof(*replay));

    obey_init(&replay->obey, service, 0);
    replay->obey.worker->alone = true;
    return replay;
}

void
replay_free(struct replay *replay)
{
    if (replay != NULL) {
        obey_fini(&replay->obey);
        mem_free(replay);
    }
}

bool
replay_group(void *ctx, struct slice commands, char *ret_reason,
             size_t reason_size)
{
    struct replay *replay = ctx;

    return obey_group(&replay->obey, commands, 0, ret_reason, reason_size);
}
