/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/check_config.h"

#include "access/table.h"
#include "access/users.h"
#include "base/buf.h"
#include "cli/exit_status.h"
#include "command/rows.h"
#include "conf/conf_load.h"
#include "conf/conf_tls.h"
#include "engine/role.h"
#include "persist/directory.h"
#include "server/own_users.h"

#include <stdio.h>

static bool
check_ports(const struct conf *conf, struct buf *ret_reason)
{
    if (conf->port > 0 && conf->port == conf->tls_port) {
        buf_printf(ret_reason, "port and tls-port are both %lld",
                   (long long)conf->port);
        return false;
    }
    if (conf->port == 0 && conf->tls_port == 0 && conf->admin_port == 0 &&
        conf->unixsocket[0] == '\0') {
        buf_printf(ret_reason, "there is nothing to listen on: port, tls-port, "
                               "admin-port and unixsocket are not set");
        return false;
    }
    return true;
}

static bool
check_primary(const struct conf *conf, struct buf *ret_reason)
{
    struct slice words = slice_of(conf->replicaof);
    struct slice host;

    if (!slice_next_word(&words, &host)) {
        return true;
    }
    if (!role_host_is_allowed(conf, host)) {
        buf_printf(ret_reason,
                   "replicaof: replicaof-allowed does not name it: %.*s",
                   slice_shown(host), host.data);
        return false;
    }
    return true;
}

bool
check_options(const struct conf *conf, struct buf *ret_reason)
{
    char names[1024];

    if (!check_ports(conf, ret_reason) || !check_primary(conf, ret_reason)) {
        return false;
    }
    if (directory_names_clash(conf, names, sizeof(names))) {
        buf_printf(ret_reason, "%s", names);
        return false;
    }
    return true;
}

static bool
check_tls(const struct conf *conf, struct buf *ret_reason)
{
    const struct tls_settings settings =
        conf_tls_settings(conf, conf->tls_port > 0);
    struct tls_contexts contexts;
    char reason[TLS_REASON_MAX];
    bool good;

    if (!settings.serves && !settings.dials) {
        return true;
    }
    tls_contexts_init(&contexts);
    good = tls_contexts_load(&contexts, &settings, reason);
    tls_contexts_fini(&contexts);
    if (!good) {
        buf_printf(ret_reason, "%s", reason);
    }
    return good;
}

static bool
check_users(const struct conf *conf, struct buf *ret_reason)
{
    struct users *users;
    bool good;

    command_table_init(command_rows);
    own_users_forbid(conf);
    users = users_new();
    good = own_users_read(users, conf, ret_reason);
    users_free(users);
    return good;
}

int
check_config(const struct conf *conf, const struct conf_args *args)
{
    const char *what = args->file == NULL ? "the command line" : args->file;
    struct slice notes = slice_of(args->notes.text), line;
    struct buf reason = { 0 };
    bool good;

    while (conf_next_note(&notes, &line)) {
        (void)fprintf(stderr, "bloomery-server: warning: %.*s\n", (int)line.len,
                      line.data);
    }
    good = check_options(conf, &reason) && check_tls(conf, &reason) &&
           check_users(conf, &reason);
    if (good) {
        (void)printf("%s: the configuration is good\n", what);
    } else {
        (void)fprintf(stderr, "bloomery-server: %s: %.*s\n", what,
                      (int)reason.len, reason.data);
    }
    buf_free(&reason);
    return good ? SERVER_EXIT_STOPPED : SERVER_EXIT_MISTAKE;
}
