/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/own_users.h"

#include "access/peer_names.h"
#include "access/table.h"
#include "access/users_file.h"
#include "base/log.h"
#include "conf/conf_file.h"

#include <string.h>

void
own_users_forbid(const struct conf *conf)
{
    struct slice rest = slice_of(conf->disabled_commands), name;

    while (slice_next_word(&rest, &name)) {
        (void)!command_forbid(name); /* own_users_read checks the names */
    }
}

static bool
check_forbidden(const struct conf *conf, struct buf *ret_reason)
{
    struct slice rest = slice_of(conf->disabled_commands), name;

    while (slice_next_word(&rest, &name)) {
        if (command_find(name) == NULL && !peer_names_have(name)) {
            buf_printf(ret_reason,
                       "disabled-commands: there is no command '%.*s'",
                       slice_shown(name), name.data);
            return false;
        }
    }
    return true;
}

static void
warn_of_password(const struct users *users, const char *path)
{
    if (users_ignore_password(users)) {
        log_warn("server", "requirepass has no effect",
                 "aclfile=\"%s\" next=\"the file has the user default: ACL "
                 "SETUSER default resetpass '>password', then ACL SAVE\"",
                 path);
    }
}

bool
own_users_read(struct users *users, const struct conf *conf,
               struct buf *ret_reason)
{
    const char *path = conf->aclfile;
    struct users_draft draft = { 0 };
    struct buf text = { 0 }, errors = { 0 };
    int error = path[0] != '\0' ? conf_file_read(path, &text) : 0;
    bool done = error == 0 && check_forbidden(conf, ret_reason);

    users_follow_password(users, slice_of(conf->requirepass));
    if (error != 0) {
        buf_printf(ret_reason, "aclfile: %s: %s", path, strerror(error));
    } else if (done && path[0] != '\0') {
        done = users_file_read(users, path, buf_slice(&text), &draft, &errors);
        if (done) {
            users_take(users, &draft);
            warn_of_password(users, path);
        } else {
            buf_append_slice(ret_reason, slice_lit("aclfile: "));
            buf_append_slice(ret_reason, buf_slice(&errors));
        }
    }
    buf_wipe(&text);
    buf_free(&errors);
    return done;
}
