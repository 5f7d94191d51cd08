/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MONITOR: the connection gets a line for each command of other clients, until
 * it ends or resets. As in Redis, it may not use keys meanwhile (admit.c), and
 * a second MONITOR has no reply.
 */
#include "access/handlers.h"
#include "engine/observe.h"
#include "push/monitor.h"

enum err
cmd_monitor(struct request *req)
{
    struct receiver *receiver = &req->session->receiver;

    if (req->worker->in_exec) {
        return request_fail(req, ERR_CUSTOM, "%s",
                            "MONITOR isn't allowed for DENY BLOCKING client");
    }
    if (!receiver->monitors) {
        monitor_join(req->service->monitor, receiver);
        observe_count(req->service, OBSERVED_MONITOR, true);
        session_hears(req->session);
        reply_ok(req->reply);
    }
    return OK;
}
