/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO [section ...]. Runs on the loop of its connection; the figures are
 * those of the whole server.
 */
#include "access/handlers.h"
#include "engine/request.h"
#include "info/info.h"

enum err
cmd_info(struct request *req)
{
    uint32_t sections = info_select(req->argv + 1, req->argc - 1);
    struct buf text = { 0 };

    info_write(req->service, sections, &text);
    reply_text(req->reply, &text);
    return OK;
}
