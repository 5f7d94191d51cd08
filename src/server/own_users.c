/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/own_users.h"

#include "access/users_file.h"
#include "admin/conf_file.h"

#include <string.h>

bool
own_users_read(struct users *users, const struct conf *conf,
               struct buf *ret_reason)
{
    const char *path = conf->aclfile;
    struct users_draft draft = { 0 };
    struct buf text = { 0 }, errors = { 0 };
    int error = path[0] != '\0' ? conf_file_read(path, &text) : 0;
    bool done = error == 0;

    users_follow_password(users, slice_of(conf->requirepass));
    if (error != 0) {
        buf_printf(ret_reason, "aclfile: %s: %s", path, strerror(error));
    } else if (path[0] != '\0') {
        done = users_file_read(users, path, buf_slice(&text), &draft, &errors);
        if (done) {
            users_take(users, &draft);
        } else {
            buf_append_slice(ret_reason, slice_lit("aclfile: "));
            buf_append_slice(ret_reason, buf_slice(&errors));
        }
    }
    buf_wipe(&text);
    buf_free(&errors);
    return done;
}
