/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CONFIG GET SET REWRITE RESETSTAT over the option table. SET and RESETSTAT run
 * under the raised gate: no other loop is inside a section meanwhile.
 */
#include "access/handlers.h"
#include "base/glob.h"
#include "base/longest.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "cluster/cluster.h"
#include "conf/conf_file.h"
#include "engine/request.h"
#include "info/info_persist.h"
#include "info/info_replication.h"
#include "persist/figures.h"

/* Finds the name under which GET shows an option. If a pattern is the option's
 * name, the name is spelt as the client wrote it, since clients look for that.
 * Otherwise it is spelt as in the table. *ret_name is empty if no pattern
 * matches. All options share *work. */
static enum err
name_for(const char *option, const struct slice *patterns, size_t count,
         size_t *work, struct slice *ret_name)
{
    struct slice name = slice_of(option);

    *ret_name = (struct slice){ NULL, 0 };
    for (size_t i = 0; i < count; i++) {
        if (slice_is_word(patterns[i], option)) {
            *ret_name = patterns[i];
            return OK;
        }
        switch (glob_match(patterns[i], name, true, work)) {
        case GLOB_YES:
            *ret_name = name;
            return OK;
        case GLOB_OVER:
            return ERR_PATTERN_WORK;
        case GLOB_NO:
            break;
        }
    }
    return OK;
}

/* Sets *value to an option's value (for replicaof, the present primary). */
static void
get_value(const struct service *service, const struct conf_row *row,
          struct buf *value)
{
    const struct role *role = &service->role;

    value->len = 0;
    if (row->offset != conf_table[CONF_OPTION_replicaof].offset) {
        conf_get(service->conf, row, value);
    } else if (role->replica) {
        buf_append_slice(value, slice_of(role->host));
        buf_printf(value, " %u", role->port);
    }
}

/* Options of the neighbour that clients of a cluster ask for. */
static const char *const cluster_options[] = {
    "cluster-enabled",
    "cluster-node-timeout",
    "cluster-require-full-coverage",
    "cluster-allow-reads-when-down",
    "cluster-databases",
    "cluster-preferred-endpoint-type",
};
enum { CLUSTER_OPTIONS = sizeof(cluster_options) / sizeof(cluster_options[0]) };

static void
get_cluster_value(const struct cluster_settings *settings, unsigned option,
                  struct buf *value)
{
    static const char *const endpoints[] = { "ip", "hostname",
                                             "unknown-endpoint" };
    const char *texts[CLUSTER_OPTIONS] = {
        "yes",
        NULL,
        settings->full_coverage ? "yes" : "no",
        settings->reads_when_down ? "yes" : "no",
        NULL,
        endpoints[settings->endpoint]
    };

    value->len = 0;
    if (texts[option] != NULL) {
        buf_append_slice(value, slice_of(texts[option]));
    } else {
        buf_printf(value, "%llu",
                   option == 1 ? (unsigned long long)settings->node_timeout_ms
                               : (unsigned long long)settings->databases);
    }
}

struct getting {
    struct request *req;
    struct buf value;
    size_t work;  /* work that is left for patterns */
    size_t count; /* of options found */
};

/* Replies with the name and the value of an option if a pattern matches.
 * cluster: `option` is an index in cluster_options, not in conf_table. */
static enum err
get_option(struct getting *getting, unsigned option, bool cluster)
{
    struct request *req = getting->req;
    const char *text =
        cluster ? cluster_options[option] : conf_table[option].name;
    struct slice name;
    enum err err =
        name_for(text, req->argv + 2, req->argc - 2, &getting->work, &name);

    if (err != OK || name.len == 0) {
        return err;
    }
    if (cluster) {
        get_cluster_value(&req->service->cluster->view->settings, option,
                          &getting->value);
    } else {
        get_value(req->service, &conf_table[option], &getting->value);
    }
    reply_bulk(req->reply, name);
    reply_bulk(req->reply, buf_slice(&getting->value));
    getting->count++;
    return OK;
}

/* Returns whether options of the cluster are known: in sidecar mode, once the
 * neighbour was read. */
static bool
has_cluster_options(const struct service *service)
{
    return service->cluster != NULL && service->cluster->view != NULL;
}

enum err
cmd_config_get(struct request *req)
{
    struct getting getting = { .req = req, .work = GLOB_WORK };
    enum err err = OK;
    size_t place;

    if (req->argc - 2 > 2 * (size_t)CONF_OPTION_COUNT) {
        return ERR_PATTERN_COUNT;
    }
    for (size_t i = 2; i < req->argc; i++) {
        if (!glob_is_fair(req->argv[i])) {
            return ERR_PATTERN_LONG;
        }
    }
    place = reply_begin(req->reply);
    for (unsigned i = 0; i < CONF_OPTION_COUNT && err == OK; i++) {
        err = get_option(&getting, i, false);
    }
    for (unsigned i = 0; i < CLUSTER_OPTIONS && err == OK; i++) {
        if (has_cluster_options(req->service)) {
            err = get_option(&getting, i, true);
        }
    }
    reply_map_end(req->reply, place, getting.count);
    if (getting.value.failed) {
        req->reply->buf->failed = true;
    }
    buf_free(&getting.value);
    return err;
}

/* Returns whether the journal has every change. */
static bool
is_journaled(const struct persist_info *info)
{
    const struct journal_status *journal = &info->journal;

    return journal->on && !journal->building && !journal->holding &&
           !journal->faulted;
}

/* Waits for the journal that was switched on: `failures` is how many attempts
 * to begin it had failed before. */
static enum err
await_journal(struct request *req, uint64_t *failures)
{
    struct persist_info info;

    persist_get_info(req->service->persist, &info);
    if (!info.appendonly) {
        return request_fail(req, ERR_CUSTOM,
                            "appendonly was switched off before there was a "
                            "journal");
    }
    if (is_journaled(&info)) {
        reply_ok(req->reply);
        return OK;
    }
    if (info.rewrite_failures > *failures) {
        return request_fail(req, ERR_CUSTOM,
                            "appendonly is on, but the journal cannot be "
                            "written; see the server's log. The server tries "
                            "again, and INFO says journal_state:on when the "
                            "journal has all data");
    }
    request_wait(req, failures, mem_free);
    return ERR_AGAIN;
}

/* Returns whether the request sets appendonly. If it was on already, an earlier
 * CONFIG SET may still wait, so this one waits, too. */
static bool
names_journal(const struct request *req)
{
    for (size_t i = 2; i < req->argc; i += 2) {
        if (slice_is_word(req->argv[i], "appendonly")) {
            return true;
        }
    }
    return false;
}

/* Returns whether a transaction sets appendonly, and its reply, which cannot
 * wait, would come before every change is journaled. A journal that is switched
 * on during a load is there before the first change. */
static bool
promises_too_much(const struct request *req, const struct conf *fresh)
{
    struct persist *persist = req->service->persist;
    struct persist_info info;

    if (request_may_pause(req) || !fresh->appendonly || !names_journal(req) ||
        persist == NULL || atomic_load(&req->service->loading)) {
        return false;
    }
    persist_get_info(persist, &info);
    return !is_journaled(&info);
}

/* Waits until every change is journaled, or replies if it cannot wait. */
static enum err
begin_to_await(struct request *req)
{
    struct persist *persist = req->service->persist;
    struct persist_info info;
    uint64_t *failures;

    if (persist == NULL || !request_may_pause(req) ||
        atomic_load(&req->service->loading)) {
        reply_ok(req->reply);
        return OK;
    }
    failures = mem_alloc(sizeof(*failures));
    persist_get_info(persist, &info);
    *failures = info.rewrite_failures;
    request_wait(req, failures, mem_free);
    return ERR_AGAIN;
}

/* Sets the options in `fresh`, and takes it over if all of them are good. */
static enum err
set_in(struct request *req, struct conf *fresh)
{
    struct service *service = req->service;
    char reason[TLS_REASON_MAX];
    struct conf_changes changes;
    struct conf_error error;

    if (!conf_set_many(fresh, req->argv + 2, (req->argc - 2) / 2, &changes,
                       &error)) {
        return error.no_memory
                   ? ERR_NOMEM
                   : request_fail(req, ERR_CUSTOM, "%s", error.text);
    }
    if (service->conf_allows != NULL &&
        !service->conf_allows(service->ctx, fresh, &changes, reason)) {
        return request_fail(req, ERR_CUSTOM, "CONFIG SET failed - %s", reason);
    }
    if (promises_too_much(req, fresh)) {
        return request_fail(req, ERR_CUSTOM,
                            "CONFIG SET failed - the reply to appendonly yes "
                            "waits until the journal has all data, and a "
                            "transaction cannot wait: send it outside MULTI");
    }
    conf_take(service->conf, fresh, &changes);
    service->conf_changed(service->ctx, &changes);
    if (service->conf->appendonly && names_journal(req)) {
        return begin_to_await(req);
    }
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_config_set(struct request *req)
{
    struct conf_error error;
    struct conf fresh;
    enum err err;

    if (request_resumed(req) != NULL) {
        return await_journal(req, request_resumed(req));
    }
    if (req->argc % 2 != 0) {
        return ERR_SYNTAX;
    }
    if (!conf_copy(req->service->conf, &fresh, &error)) {
        return ERR_NOMEM;
    }
    err = set_in(req, &fresh);
    conf_fini(&fresh);
    return err;
}

/* ---- REWRITE ------------------------------------------------------------- */

static enum err
rewrite_ended(struct request *req, const struct conf_file_job *job)
{
    const char *error = conf_file_error(job);

    if (error != NULL) {
        return request_fail(req, ERR_CUSTOM, "Rewriting config file: %s",
                            error);
    }
    reply_ok(req->reply);
    return OK;
}

static void
forget_job(void *job)
{
    conf_file_forget(job);
}

/* A transaction cannot pause, so its loop waits for the disk. */
static enum err
rewrite_in_exec(struct request *req)
{
    struct conf_file *file = req->service->conf_file;
    struct conf_file_job *job = NULL;
    enum err err = conf_file_begin(file, req->service->conf, true, &job);

    if (err != OK) {
        return err;
    }
    conf_file_wait(file, job);
    err = rewrite_ended(req, job);
    conf_file_forget(job);
    return err;
}

enum err
cmd_config_rewrite(struct request *req)
{
    struct conf_file *file = req->service->conf_file;
    struct conf_file_job *job = request_resumed(req);
    enum err err = OK;

    if (!request_may_pause(req)) {
        return rewrite_in_exec(req);
    }
    if (job == NULL) {
        err = conf_file_begin(file, req->service->conf, false, &job);
    } else if (conf_file_is_done(job)) {
        return rewrite_ended(req, job);
    }
    if (err != OK) {
        /* ERR_AGAIN: another rewrite is running. */
        req->session->wait = err == ERR_AGAIN ? CONN_FOR_EVENT : CONN_RUNS;
        return err;
    }
    request_wait(req, job, forget_job);
    return ERR_AGAIN;
}

enum err
cmd_config_resetstat(struct request *req)
{
    metric_reset_counters();
    stats_reset(req->service->stats);
    longest_reset();
    info_persist_reset(req->service);
    info_replication_reset(req->service);
    reply_ok(req->reply);
    return OK;
}
