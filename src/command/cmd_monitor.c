/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MONITOR: the connection is shown what others do, until it ends or resets. To
 * Redis it is a kind of replica then: it may do nothing with keys (admit.c),
 * and to ask twice has no answer at all.
 */
#include "admin/monitor.h"
#include "engine/handlers.h"
#include "engine/observe.h"

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
