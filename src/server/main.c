/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-server: reads the command line, then serves. The exit statuses are
 * in server.h.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/reserve.h"
#include "base/systemd.h"
#include "base/thread.h"
#include "cli/ping.h"
#include "cli/print.h"
#include "cli/print_plan.h"
#include "conf/conf_convert.h"
#include "conf/conf_print.h"
#include "keyspace/sparse.h"
#include "net/loop_run.h"
#include "server/check_config.h"
#include "server/server.h"
#include "server/server_state.h"
#include "server/version.h"
#include "tls/tls_context.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
print_usage(void)
{
    (void)printf("Usage: bloomery-server [FILE] [--OPTION VALUE]...\n"
                 "A Bloom filter server that speaks RESP. FILE - is standard "
                 "input.\n\n"
                 "  --help              this text\n"
                 "  --version           the version, and what it is built "
                 "with\n"
                 "  --check-config [FILE] [--OPTION VALUE]...\n"
                 "                      says what is wrong with the "
                 "configuration\n"
                 "  --convert FILE      prints the configuration that a "
                 "redis.conf or valkey.conf\n"
                 "                      means here, and writes its users to "
                 "./users.acl\n"
                 "  --ping[=HOW] [--ping-WORD]... [FILE] [--OPTION "
                 "VALUE]...\n"
                 "                      sends PING to the server that has "
                 "this configuration;\n"
                 "                      HOW alive: a server that loads is "
                 "good too; ready: a\n"
                 "                      replica or sidecar must have data to "
                 "serve; complete: no\n"
                 "                      data may be missing. The words:\n"
                 "                      --ping-timeout=SECONDS (default 5), "
                 "--ping-user=NAME,\n"
                 "                      --ping-password-file=FILE\n"
                 "  --print=WHAT        commands, options (a configuration "
                 "file), metrics,\n"
                 "                      errors; man, commands-man, "
                 "commands-md and words (for man\n"
                 "                      pages, documents and shells)\n"
                 "  --plan WORDS        what a filter would take: the words "
                 "of BF.PLAN,\n"
                 "                      under the default options\n\n"
                 "Options, in FILE or on the command line:\n\n");
    conf_print_help(stdout);
}

static int
finish_output(void)
{
    return fflush(stdout) == 0 && ferror(stdout) == 0 ? SERVER_EXIT_STOPPED
                                                      : SERVER_EXIT_FAILED;
}

/* Prints the configuration file that a redis.conf means, and writes its users
 * to users.acl in the working directory. */
static int
convert(const char *path)
{
    static const char name[] = "users.acl";
    struct buf text = { 0 }, users = { 0 };
    struct conf_error error;
    char folder[PATH_MAX], full[PATH_MAX + sizeof(name) + 1];
    bool done;

    (void)snprintf(full, sizeof(full), "%s/%s",
                   getcwd(folder, sizeof(folder)) != NULL ? folder : ".", name);
    done = conf_convert(path, full, &text, &users, &error);
    if (done && users.len > 0) {
        int fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

        done =
            file != NULL && fwrite(users.data, 1, users.len, file) == users.len;
        done = file != NULL && fclose(file) == 0 && done;
        if (!done) {
            conf_error_set(&error, "%.512s: %s", full, strerror(errno));
        }
    }
    if (done) {
        (void)fwrite(text.data, 1, text.len, stdout);
    } else {
        (void)fprintf(stderr, "bloomery-server: %s\n", error.text);
    }
    buf_wipe(&text);
    buf_wipe(&users);
    return done ? SERVER_EXIT_STOPPED : SERVER_EXIT_MISTAKE;
}

/* Prints what --help and the other actions asked for. */
static int
answer_action(struct conf_args *args, struct conf *conf, int argc, char **argv)
{
    int status = SERVER_EXIT_STOPPED;

    switch (args->action) {
    case CONF_ACTION_PLAN:
        status = print_plan(conf, argc - 1, argv + 1) ? SERVER_EXIT_STOPPED
                                                      : SERVER_EXIT_MISTAKE;
        break;
    case CONF_ACTION_CONVERT:
        status = convert(args->convert);
        break;
    case CONF_ACTION_CHECK:
        status = check_config(conf, args);
        break;
    case CONF_ACTION_PING:
        status = ping(conf, args, argv + 2);
        break;
    case CONF_ACTION_HELP:
        print_usage();
        break;
    case CONF_ACTION_VERSION:
        version_print();
        break;
    default:
        if (!print_reference(args->print)) {
            (void)fprintf(stderr,
                          "bloomery-server: --print takes commands, options, "
                          "metrics, errors, man, commands-man, "
                          "commands-md or words, not "
                          "\"%s\"\n",
                          args->print);
            status = SERVER_EXIT_MISTAKE;
        }
        break;
    }
    return status != SERVER_EXIT_STOPPED ? status : finish_output();
}

static int
serve(struct conf *conf, struct conf *given, const struct conf_args *args,
      int argc, char **argv)
{
    static struct server server;

    thread_settle_main();
    if (!mem_set_aside()) {
        (void)fprintf(stderr,
                      "bloomery-server: no memory to start with: %u "
                      "bytes are set aside for when it ends\n",
                      RESERVE_BYTES);
        return SERVER_EXIT_FAILED;
    }
    sparse_start();
    loop_use_mem();
    tls_use_mem();
    if (!systemd_init()) {
        log_warn("server", "cannot reach the service manager", "%s", "");
    }
    if (!server_init(&server, conf, given, args, argc, argv)) {
        return (int)server.exit;
    }
    server_run(&server);
    server_fini(&server);
    sparse_stop();
    return (int)server.exit;
}

int
main(int argc, char **argv)
{
    struct conf_error error;
    struct conf_args args;
    struct conf conf;
    struct conf given = { 0 }; /* stays empty if nothing is read */

    conf_init(&conf);
    if (!conf_args_load(&conf, &given, argc, argv, &args, &error)) {
        (void)fprintf(stderr, "bloomery-server: %s\n", error.text);
        conf_fini(&conf);
        return SERVER_EXIT_MISTAKE;
    }
    if (args.action != CONF_ACTION_RUN) {
        int code = answer_action(&args, &conf, argc, argv);

        conf_fini(&conf);
        conf_fini(&given);
        return code;
    }
    log_find_journal();
    log_set_format((enum log_format)conf.log_format);
    if (conf.logfile[0] != '\0') {
        int error_code = log_open(conf.logfile);

        if (error_code != 0) {
            (void)fprintf(stderr, "bloomery-server: logfile: %s: %s\n",
                          conf.logfile, strerror(error_code));
            conf_fini(&conf);
            conf_fini(&given);
            return SERVER_EXIT_FAILED;
        }
    }
    return serve(&conf, &given, &args, argc, argv);
}
