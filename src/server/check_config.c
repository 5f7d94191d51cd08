/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/check_config.h"

#include "access/table.h"
#include "access/users.h"
#include "base/buf.h"
#include "cli/exit_status.h"
#include "command/rows.h"
#include "conf/conf_args.h"
#include "conf/conf_tls.h"
#include "engine/role.h"
#include "persist/directory.h"
#include "server/own_users.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Appends a mistake as a line. */
__attribute__((format(printf, 2, 3))) static void
add(struct buf *reasons, const char *format, ...)
{
    struct conf_error text;
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text.text, sizeof(text.text), format, ap);
    va_end(ap);
    text.no_memory = false;
    (void)!conf_error_note(&text, reasons);
}

static void
check_ports(const struct conf *conf, struct buf *reasons)
{
    if (conf->port > 0 && conf->port == conf->tls_port) {
        add(reasons, "port and tls-port are both %lld", (long long)conf->port);
    }
    if (conf->port == 0 && conf->tls_port == 0 && conf->admin_port == 0 &&
        conf->unixsocket[0] == '\0') {
        add(reasons, "there is nothing to listen on: port, tls-port, "
                     "admin-port and unixsocket are not set");
    }
}

static void
check_primary(const struct conf *conf, struct buf *reasons)
{
    struct slice words = slice_of(conf->replicaof);
    struct slice host;

    if (slice_next_word(&words, &host) && !role_host_is_allowed(conf, host)) {
        add(reasons, "replicaof: replicaof-allowed does not name it: %.*s",
            slice_shown(host), host.data);
    }
}

bool
check_options(const struct conf *conf, struct buf *ret_reasons)
{
    size_t before = ret_reasons->len;
    char names[1024];

    check_ports(conf, ret_reasons);
    check_primary(conf, ret_reasons);
    if (directory_names_clash(conf, names, sizeof(names))) {
        add(ret_reasons, "%s", names);
    }
    return ret_reasons->len == before && !ret_reasons->failed;
}

/* Checks dir. A start makes files there, but not the directory itself. Whether
 * a start may write there depends on the user that runs it. */
static void
check_dir(const struct conf *conf, struct buf *reasons)
{
    struct stat info;

    if (stat(conf->dir, &info) != 0) {
        if (errno != EACCES) {
            add(reasons, "dir: %s: %s: create it, or name another one",
                conf->dir, strerror(errno));
        }
    } else if (!S_ISDIR(info.st_mode)) {
        add(reasons, "dir: %s: %s", conf->dir, strerror(ENOTDIR));
    }
}

static void
check_tls(const struct conf *conf, struct buf *reasons)
{
    const struct tls_settings settings =
        conf_tls_settings(conf, conf->tls_port > 0);
    struct tls_contexts contexts;
    char reason[TLS_REASON_MAX];

    if (!settings.serves && !settings.dials) {
        return;
    }
    tls_contexts_init(&contexts);
    if (!tls_contexts_load(&contexts, &settings, reason)) {
        add(reasons, "%s", reason);
    }
    tls_contexts_fini(&contexts);
}

static void
check_users(const struct conf *conf, struct buf *reasons)
{
    struct users *users;

    command_table_init(command_rows);
    own_users_forbid(conf);
    users = users_new();
    if (!own_users_read(users, conf, reasons)) {
        buf_append(reasons, "\n", 1);
    }
    users_free(users);
}

/* Prints the lines. Returns whether there were any. */
static bool
print_lines(struct slice lines, const char *before, const char *after)
{
    bool some = lines.len > 0;
    struct slice line;

    while (conf_next_note(&lines, &line)) {
        (void)fprintf(stderr, "bloomery-server: %s%s%.*s\n", before, after,
                      (int)line.len, line.data);
    }
    return some;
}

int
check_config(const struct conf *conf, struct conf_args *args)
{
    const char *what = args->file == NULL ? "the command line" : args->file;
    struct buf reasons = { 0 };
    bool bad;

    (void)print_lines(slice_of(args->notes.text), "warning: ", "");
    (void)check_options(conf, &reasons);
    check_dir(conf, &reasons);
    check_tls(conf, &reasons);
    check_users(conf, &reasons);
    bad = print_lines(buf_slice(&args->mistakes), "", "");
    bad = print_lines(buf_slice(&reasons), what, ": ") || bad;
    if (!bad) {
        (void)printf("%s: the configuration is good\n", what);
    }
    buf_free(&reasons);
    buf_free(&args->mistakes);
    return bad ? SERVER_EXIT_MISTAKE : SERVER_EXIT_STOPPED;
}
