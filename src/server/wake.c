/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/wake.h"

#include "server/server_state.h"

void
wake_loops(void *ctx)
{
    struct server *server = ctx;

    for (unsigned i = 0; i < server->threads; i++) {
        loop_wake(&server->loops[i]);
    }
}

void
wake_persist(void *ctx)
{
    struct server *server = ctx;

    (void)uv_async_send(&server->poke);
}
