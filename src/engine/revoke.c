/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loop may be serving one of the connections just now, so it sends itself a
 * mail for each connection that must be closed.
 */
#include "engine/revoke.h"

#include "access/users.h"
#include "engine/client.h"
#include "engine/observe.h"
#include "keyspace/gate.h"
#include "net/loop.h"
#include "net/serve.h"
#include "push/pubsub_feed.h"

/* Returns whether the user may still subscribe to the filter of a topic. */
static bool
may_read(const struct user *user, struct slice topic)
{
    struct slice argv[] = { slice_lit("bf.subscribe"), pubsub_feed_key(topic) };
    const struct permission_query query = { .command =
                                                command_at(CMD_ID_BF_SUBSCRIBE),
                                            .argv = argv,
                                            .argc = 2,
                                            .db = pubsub_feed_db(topic) };
    size_t at = 0;

    return user_check(user, &query, &at) == DENIED_NOTHING;
}

static bool
may_hear(void *ctx, enum pubsub_kind kind, struct slice name)
{
    return kind == PUBSUB_FILTER
               ? may_read(ctx, name)
               : user_has_channel(ctx, name, kind == PUBSUB_PATTERN);
}

/* Returns whether the user may still run MONITOR, which the connection has
 * begun. */
static bool
may_monitor(const struct session *session)
{
    struct slice argv[] = { slice_lit("monitor") };
    const struct permission_query query = {
        .command = command_at(CMD_ID_MONITOR), .argv = argv, .argc = 1
    };
    size_t at = 0;

    return !session->receiver.monitors ||
           user_check(session->user, &query, &at) == DENIED_NOTHING;
}

/* Returns whether the connection must be closed. */
static bool
is_lost(const struct session *session, uint64_t seen)
{
    struct user *user = session->user;

    return user->changed > seen && !session->closing &&
           (user->gone || (!user->unrestricted &&
                           (!may_monitor(session) ||
                            !pubsub_each(&session->receiver, may_hear, user))));
}

void
revoke_lost(void *ctx)
{
    struct worker *worker = ctx;
    const struct users *users = worker->service->users;
    struct gate *gate = keyspace_gate(worker->service->keyspace);
    bool mailed = true;
    uint64_t now;

    if (atomic_load(&users->changes) == worker->users_seen) {
        return;
    }
    gate_enter(gate, worker->index);
    now = atomic_load(&users->changes);
    for (struct conn *conn = worker->loop->conns.first; conn != NULL;
         conn = conn->next) {
        struct session *session = &client_of(conn)->session;

        if (conn->state == CONN_OPEN && is_lost(session, worker->users_seen)) {
            observe_leave(worker, session);
            mailed = serve_kill(worker->loop, conn_id(conn)) && mailed;
        }
    }
    gate_leave(gate, worker->index);
    if (mailed) { /* else the loop looks again at the next notice */
        worker->users_seen = now;
    }
}
