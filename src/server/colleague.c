/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link for each question: there are few, and none holds up another.
 */
#include "server/colleague.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "cluster/holdings.h"
#include "keyspace/gate.h"
#include "net/link_dial.h"
#include "proto/reply.h"
#include "server/replication_state.h"

enum { TICK_MS = 50, REPLY_BYTES_MAX = HOLDINGS_TEXT_MAX + 4096 };

struct call {
    struct colleagues *owner;
    struct call *next;
    uint64_t number, until_ms;
    struct link *link; /* NULL: it has ended */
    struct answers *answers;
    bool logs_in;        /* the next reply is to AUTH */
    const char *failure; /* to be reported by the timer; NULL: none */
};

struct colleagues {
    struct server *server;
    colleague_fn done;
    void *ctx;
    uv_timer_t timer;
    struct call *calls;
};

static void
free_call(struct call *call)
{
    if (call->link != NULL) {
        link_close(call->link);
    }
    answers_free(call->answers);
    mem_free(call);
}

static void
finish(struct call *call, const struct answer *answer, const char *reason)
{
    struct colleagues *colleagues = call->owner;
    struct call **at = &colleagues->calls;

    while (*at != call) {
        at = &(*at)->next;
    }
    *at = call->next;
    colleagues->done(colleagues->ctx, call->number, answer, reason);
    free_call(call);
}

/* ---- the link ------------------------------------------------------------ */

static void
on_bytes(void *ctx, struct link *link, struct slice bytes, size_t *ret_used)
{
    struct call *call = ctx;
    struct answer answer;

    (void)link;
    *ret_used = bytes.len;
    answers_feed(call->answers, bytes);
    for (;;) {
        switch (answers_next(call->answers, &answer)) {
        case ANSWERS_MORE:
            return;
        case ANSWERS_BAD:
            finish(call, NULL, answers_reason(call->answers));
            return;
        case ANSWERS_ONE:
            if (!call->logs_in) {
                finish(call, &answer, NULL);
                return;
            }
            call->logs_in = false;
            if (answer.values[0].type == ANSWER_ERROR) {
                finish(call, NULL, "it refuses our login (masterauth)");
                return;
            }
        }
    }
}

static void
on_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct call *call = ctx;

    (void)link;
    (void)error;
    call->link = NULL;
    finish(call, NULL, reason);
}

static const struct link_hooks hooks = { .bytes = on_bytes,
                                         .closed = on_closed };

/* Appends AUTH if there is a password. Returns whether there is one. */
static bool
write_login(const struct server *server, struct buf *out)
{
    struct gate *gate = keyspace_gate(server->service.keyspace);
    const struct conf *conf = &server->conf;
    struct reply reply = { out, 2 };
    bool has_password;

    gate_enter(gate, 0);
    has_password = conf->masterauth[0] != '\0';
    if (has_password) {
        bool has_user = conf->masteruser[0] != '\0';

        reply_array(&reply, has_user ? 3 : 2);
        reply_bulk_text(&reply, "AUTH");
        if (has_user) {
            reply_bulk_text(&reply, conf->masteruser);
        }
        reply_bulk_text(&reply, conf->masterauth);
    }
    gate_leave(gate, 0);
    return has_password;
}

struct link *
colleague_dial(struct server *server, const char *host, unsigned port,
               unsigned timeout_ms, const struct link_hooks *link_hooks,
               void *ctx)
{
    struct link *link =
        link_dial(&server->loops[0], host, port, timeout_ms, link_hooks, ctx);

    if (server->replication->uses_tls) {
        link_secure(link, tls_new_dial(&server->tls, host));
    }
    return link;
}

bool
colleague_login(const struct server *server, struct link *link,
                bool *ret_logs_in)
{
    struct buf text = { 0 };
    bool sent;

    *ret_logs_in = write_login(server, &text);
    sent = !text.failed && link_send(link, buf_slice(&text));
    buf_wipe(&text);
    return sent;
}

static bool
begin(struct call *call, const char *host, unsigned port, struct slice command,
      unsigned timeout_ms)
{
    struct server *server = call->owner->server;

    call->answers = answers_new(REPLY_BYTES_MAX);
    if (call->answers == NULL) {
        return false;
    }
    call->link = colleague_dial(server, host, port, timeout_ms, &hooks, call);
    return colleague_login(server, call->link, &call->logs_in) &&
           link_send(call->link, command);
}

/* ---- all of them --------------------------------------------------------- */

static void
on_timer(uv_timer_t *timer)
{
    struct colleagues *colleagues = timer->data;
    struct call *call = colleagues->calls;

    while (call != NULL) { /* `done` may ask more, in front */
        struct call *next = call->next;

        if (call->failure != NULL || run_clock_ms() >= call->until_ms) {
            finish(call, NULL,
                   call->failure != NULL ? call->failure : "no answer in time");
        }
        call = next;
    }
}

struct colleagues *
colleagues_new(struct server *server, colleague_fn done, void *ctx)
{
    struct colleagues *colleagues = mem_zalloc(sizeof(*colleagues));

    colleagues->server = server;
    colleagues->done = done;
    colleagues->ctx = ctx;
    CHECK(uv_timer_init(&server->loops[0].uv, &colleagues->timer) == 0);
    colleagues->timer.data = colleagues;
    CHECK(uv_timer_start(&colleagues->timer, on_timer, TICK_MS, TICK_MS) == 0);
    return colleagues;
}

void
colleagues_ask(struct colleagues *colleagues, uint64_t number, const char *host,
               unsigned port, struct slice command, unsigned timeout_ms)
{
    struct call *call = mem_zalloc(sizeof(*call));

    call->owner = colleagues;
    call->number = number;
    call->until_ms = run_clock_ms() + timeout_ms;
    call->next = colleagues->calls;
    colleagues->calls = call;
    if (!begin(call, host, port, command, timeout_ms)) {
        call->failure = "no memory for the question";
    }
}

void
colleagues_stop(struct colleagues *colleagues)
{
    while (colleagues->calls != NULL) {
        struct call *call = colleagues->calls;

        colleagues->calls = call->next;
        free_call(call);
    }
    uv_close((uv_handle_t *)&colleagues->timer, NULL);
}

void
colleagues_free(struct colleagues *colleagues)
{
    mem_free(colleagues);
}
