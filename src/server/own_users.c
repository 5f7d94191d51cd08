/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/own_users.h"

#include "access/users_file.h"
#include "admin/conf_file.h"
#include "base/log.h"
#include "server/server_state.h"

#include <string.h>

bool
own_users_load(struct server *server)
{
    struct users *users = server->service.users;
    const char *path = server->conf.aclfile;
    struct users_draft draft = { 0 };
    struct buf text = { 0 }, errors = { 0 };
    int error = path[0] != '\0' ? conf_file_read(path, &text) : 0;
    bool done = error == 0;

    users_follow_password(users, slice_of(server->conf.requirepass));
    if (error != 0) {
        server->exit = SERVER_EXIT_MISTAKE;
        log_error("server", "cannot read the aclfile",
                  "file=\"%s\" reason=\"%s\"", path, strerror(error));
    } else if (path[0] != '\0') {
        done = users_file_read(users, path, buf_slice(&text), &draft, &errors);
        if (done) {
            users_take(users, &draft);
        } else {
            server->exit = SERVER_EXIT_MISTAKE;
            log_error("server", "the aclfile has errors", "reason=\"%.*s\"",
                      (int)errors.len, errors.data);
        }
    }
    buf_wipe(&text);
    buf_free(&errors);
    return done;
}
