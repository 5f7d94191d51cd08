/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/web.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "command/rows.h"
#include "engine/refusal.h"
#include "info/info.h"
#include "info/info_put.h"
#include "info/live.h"
#include "info/readiness.h"
#include "info/scrape.h"
#include "keyspace/gate.h"
#include "net/http.h"
#include "server/server_state.h"

#include <stdio.h>

/* How long an answer is reused for all clients (the page asks once a second),
 * and how often web_tick() looks at filters. */
static const uint64_t METRICS_KEPT_NS = 100000000;
static const uint64_t STATUS_KEPT_NS = 500000000;
static const uint64_t LOOK_NS = 1000000000;

enum { NONCE_CHARS = 32 };

/* An answer that is kept. */
struct kept {
    struct buf text;
    uint64_t made_ns; /* 0: never */
};

struct web {
    struct server *server;
    struct http http;
    struct kept metrics[2]; /* plain, OpenMetrics */
    struct kept status;
    struct kept ready; /* why the server is not ready, or empty */
    struct ranking ranking;
    struct trend trend;
    uint64_t looked_ns; /* when it last looked at filters */
    char policy[512];   /* policy for the page that is being sent */
};

/* ---- filters ------------------------------------------------------------- */

/* Chooses the filters of metrics-filters if metrics-show-keys is on. */
static void
choose_filters(struct web *web)
{
    const struct conf *conf = web->server->service.conf;

    ranking_choose(&web->ranking,
                   conf->metrics_show_keys ? conf->metrics_filters : "");
}

/* Looks at filters, unless data is being loaded or is absent: then no key can
 * be read. */
static void
look_at_filters(struct web *web)
{
    const struct service *service = &web->server->service;

    choose_filters(web);
    if (!atomic_load(&service->loading) && !atomic_load(&service->absent)) {
        ranking_step(&web->ranking, service->keyspace, 0, clock_wall_ms());
    }
    web->looked_ns = clock_mono_ns();
}

/* ---- answers that are kept ----------------------------------------------- */

static void
write_metrics(struct web *web, bool open, struct buf *text)
{
    const struct service *service = &web->server->service;
    struct gate *gate = keyspace_gate(service->keyspace);

    gate_enter(gate, 0);
    choose_filters(web);
    scrape_write(service, &web->ranking.chosen, open, text);
    gate_leave(gate, 0);
}

/* Returns whether the kept answer is too old; if so, empties its text. */
static bool
is_due(struct kept *kept, uint64_t kept_ns)
{
    uint64_t now_ns = clock_mono_ns();

    if (kept->made_ns > 0 && now_ns - kept->made_ns < kept_ns) {
        return false;
    }
    kept->made_ns = now_ns;
    buf_reset(&kept->text, HTTP_BODY_MAX);
    kept->text.failed = false;
    kept->text.limit = HTTP_BODY_MAX;
    return true;
}

/* Sends a copy. A text that was cut off by a lack of memory is not kept. */
static void
send_kept(struct kept *kept, struct http_reply *reply)
{
    buf_append_slice(&reply->body, buf_slice(&kept->text));
    if (kept->text.failed) {
        reply->body.failed = true;
        kept->made_ns = 0;
    }
}

static void
send_metrics(struct web *web, bool open, struct http_reply *reply)
{
    struct kept *kept = &web->metrics[open];

    if (is_due(kept, METRICS_KEPT_NS)) {
        write_metrics(web, open, &kept->text);
    }
    reply->type = open ? "application/openmetrics-text; version=1.0.0; "
                         "charset=utf-8"
                       : "text/plain; version=0.0.4; charset=utf-8";
    send_kept(kept, reply);
}

/* ---- the status page ----------------------------------------------------- */

static void
write_status(struct web *web, struct buf *text)
{
    const struct service *service = &web->server->service;
    struct gate *gate = keyspace_gate(service->keyspace);

    gate_enter(gate, 0);
    look_at_filters(web);
    live_write(service,
               &(struct live){ .ranking = &web->ranking,
                               .trend = &web->trend,
                               .names = service->conf->metrics_show_keys },
               text);
    gate_leave(gate, 0);
}

static void
send_status(struct web *web, struct http_reply *reply)
{
    struct kept *kept = &web->status;

    if (is_due(kept, STATUS_KEPT_NS)) {
        write_status(web, &kept->text);
    }
    reply->type = "application/json";
    send_kept(kept, reply);
}

/* The nonce permits the page's own style and script, and nothing else: names
 * of filters could not smuggle in code even if the page failed to escape
 * them. */
static void
send_page(struct web *web, struct http_reply *reply)
{
    struct slice rest = live_page();
    const size_t mark = sizeof(LIVE_PAGE_MARK) - 1;
    char nonce[NONCE_CHARS + 1];
    const char *at;

    random_hex(nonce, NONCE_CHARS);
    while ((at = memmem(rest.data, rest.len, LIVE_PAGE_MARK, mark)) != NULL) {
        size_t len = (size_t)(at - rest.data);

        buf_append(&reply->body, rest.data, len);
        buf_append(&reply->body, nonce, NONCE_CHARS);
        rest.data += len + mark;
        rest.len -= len + mark;
    }
    buf_append_slice(&reply->body, rest);
    (void)snprintf(web->policy, sizeof(web->policy),
                   "default-src 'none'; style-src 'nonce-%s'; script-src "
                   "'nonce-%s'; connect-src 'self'; img-src data:; base-uri "
                   "'none'; form-action 'none'; frame-ancestors 'none'",
                   nonce, nonce);
    reply->type = "text/html; charset=utf-8";
    reply->policy = web->policy;
}

/* ---- probes -------------------------------------------------------------- */

/* Returns the error that PING would get, or OK. Inside a section of the gate.
 */
static enum err
ping_error(const struct service *service)
{
    enum err err = refusal_of_ping(service);

    if (err == OK) {
        err = refusal_of_data(service, command_rows[CMD_ID_PING].flags);
    }
    return err == OK && refusal_flag(&service->loading) ? ERR_LOADING : err;
}

/* Writes why --ping=ready would fail. */
static void
write_readiness(struct web *web, struct buf *text)
{
    static const char *const names[] = { READINESS_SECTIONS };
    const struct service *service = &web->server->service;
    struct gate *gate = keyspace_gate(service->keyspace);
    struct slice sections[sizeof(names) / sizeof(names[0])];
    size_t count = sizeof(names) / sizeof(names[0]);
    struct buf info = { .limit = HTTP_BODY_MAX };
    const char *why = NULL;
    enum err err;

    for (size_t i = 0; i < count; i++) {
        sections[i] = slice_of(names[i]);
    }
    gate_enter(gate, 0);
    err = ping_error(service);
    if (err == OK) {
        info_write(service, info_select(sections, count), &info);
        why = info.failed ? "there is no memory to look"
                          : readiness_refusal(buf_slice(&info));
    }
    gate_leave(gate, 0);
    if (err != OK) {
        buf_printf(text, "%s %s", err_prefix(err), err_text(err));
    } else if (why != NULL) {
        buf_append_slice(text, slice_of(why));
    }
    buf_free(&info);
}

static void
send_alive(struct http_reply *reply)
{
    reply->type = "text/plain; charset=utf-8";
    buf_append_slice(&reply->body, slice_lit("OK\n"));
}

static void
send_ready(struct web *web, struct http_reply *reply)
{
    struct kept *kept = &web->ready;

    if (is_due(kept, METRICS_KEPT_NS)) {
        write_readiness(web, &kept->text);
        buf_append(&kept->text, "", 1); /* ends it with a zero byte */
    }
    if (kept->text.failed) {
        kept->made_ns = 0;
        reply->body.failed = true;
    } else if (kept->text.len > 1) {
        http_fail(reply, 503, kept->text.data);
    } else {
        send_alive(reply);
    }
}

/* ---- requests ------------------------------------------------------------ */

static void
answer_path(void *ctx, const struct http_head *head, struct http_reply *reply)
{
    struct web *web = ctx;

    if (slice_equal(head->path, slice_lit("/metrics"))) {
        send_metrics(web, head->open_metrics, reply);
    } else if (slice_equal(head->path, slice_lit("/status.json"))) {
        send_status(web, reply);
    } else if (slice_equal(head->path, slice_lit("/"))) {
        send_page(web, reply);
    } else if (slice_equal(head->path, slice_lit("/livez"))) {
        send_alive(reply);
    } else if (slice_equal(head->path, slice_lit("/readyz"))) {
        send_ready(web, reply);
    } else {
        http_fail(reply, 404,
                  "there are /, /metrics, /status.json, /livez and /readyz");
    }
}

struct web *
web_new(struct server *server)
{
    struct web *web = mem_zalloc(sizeof(*web));

    web->server = server;
    return web;
}

void
web_free(struct web *web)
{
    if (web == NULL) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        buf_free(&web->metrics[i].text);
    }
    ranking_fini(&web->ranking);
    buf_free(&web->status.text);
    buf_free(&web->ready.text);
    mem_free(web);
}

void
web_start(struct web *web)
{
    struct server *server = web->server;

    if (server->listeners.has_metrics) {
        http_start(&web->http, &server->loops[0], answer_path, web);
        server->listeners.http = &web->http;
    }
}

static void
add_to_trend(struct web *web, uint64_t now_ns)
{
    struct stats_histogram times;

    (void)stats_sum_spreads(web->server->service.stats, &times);
    trend_take(&web->trend, now_ns, info_put_metric_value(METRIC_COMMANDS),
               &times);
}

/* Looks at filters with metrics of their own even if nobody has the page. */
void
web_tick(struct web *web)
{
    const struct service *service = &web->server->service;
    const struct conf *conf = service->conf;
    uint64_t now_ns = clock_mono_ns();
    struct gate *gate = keyspace_gate(service->keyspace);

    if (web->server->listeners.http == NULL) {
        return;
    }
    gate_enter(gate, 0);
    if (trend_is_due(&web->trend, now_ns)) {
        add_to_trend(web, now_ns);
    }
    if (conf->metrics_filters[0] != '\0' && conf->metrics_show_keys &&
        now_ns - web->looked_ns >= LOOK_NS) {
        look_at_filters(web);
    }
    gate_leave(gate, 0);
}

void
web_stop(struct web *web)
{
    http_stop(&web->http);
}
