/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link has at most one question, so no question delays another. After the
 * answer the link is idle, and serves the next question to the same server. One
 * idle link is kept for each server.
 */
#include "dial/colleague.h"

#include "base/buf.h"
#include "base/host_port.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "cluster/holdings.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "keyspace/gate.h"
#include "net/link_dial.h"
#include "net/loop.h"
#include "proto/compose.h"

#include <stdio.h>

enum {
    TICK_MS = 50,
    IDLE_MS = 60 * 1000, /* then an idle link is closed */
    REPLY_BYTES_MAX = HOLDINGS_TEXT_MAX + 4096
};

struct call {
    struct colleagues *owner;
    struct call *next, *before; /* in the list owner->calls */
    char *address;              /* host:port */
    struct link *link;          /* NULL: it has ended */
    struct answers *answers;
    bool secure;
    bool logs_in;        /* the next reply is to AUTH */
    bool asks;           /* there is a question; else the link is idle */
    bool again;          /* the link was idle before: it may have just ended */
    uint64_t number;     /* of the question */
    uint64_t until_ms;   /* when the question fails, or the idle link is
                            closed */
    struct buf question; /* while it may be asked again */
    const char *failure; /* to be reported by the timer; NULL: none */
};

struct colleagues {
    const struct loop0 *loop0;
    colleague_fn done;
    void *ctx;
    uv_timer_t timer;
    struct call *calls;
    struct map idle; /* by address */
};

static void
leave_idle(struct call *call)
{
    struct map *idle = &call->owner->idle;

    if (map_find(idle, slice_of(call->address)) == call) {
        (void)map_remove(idle, slice_of(call->address));
    }
}

static void
free_call(struct call *call)
{
    if (call->before != NULL) {
        call->before->next = call->next;
    } else {
        call->owner->calls = call->next;
    }
    if (call->next != NULL) {
        call->next->before = call->before;
    }
    leave_idle(call);
    if (call->link != NULL) {
        link_close(call->link);
    }
    answers_free(call->answers);
    buf_free(&call->question);
    mem_free(call->address);
    mem_free(call);
}

static struct call *
new_call(struct colleagues *colleagues, const char *address)
{
    struct call *call = mem_zalloc(sizeof(*call));

    call->owner = colleagues;
    call->address = mem_copy_text(slice_of(address));
    call->next = colleagues->calls;
    if (call->next != NULL) {
        call->next->before = call;
    }
    colleagues->calls = call;
    return call;
}

/* Ends a question that gets no answer. */
static void
fail_call(struct call *call, const char *reason)
{
    struct colleagues *colleagues = call->owner;

    if (call->asks) {
        call->asks = false;
        colleagues->done(colleagues->ctx, call->number, NULL, reason);
    }
    free_call(call);
}

/* Keeps the link if its server has no idle one. `done` may use it at once. */
static void
finish(struct call *call, const struct answer *answer)
{
    struct colleagues *colleagues = call->owner;
    struct slice address = slice_of(call->address);
    bool kept = map_find(&colleagues->idle, address) == NULL &&
                map_put(&colleagues->idle, address, call);

    call->asks = false;
    call->until_ms = run_clock_ms() + IDLE_MS;
    colleagues->done(colleagues->ctx, call->number, answer, NULL);
    if (!kept) {
        free_call(call);
    }
}

/* ---- the link ------------------------------------------------------------ */

/* Takes one reply. False: the call has ended, and may have been freed. */
static bool
take_reply(struct call *call, const struct answer *answer)
{
    if (call->logs_in) {
        call->logs_in = false;
        if (answer->values[0].type == ANSWER_ERROR) {
            fail_call(call, "it refuses our login (masterauth)");
            return false;
        }
        return true;
    }
    if (!call->asks) {
        fail_call(call, "it answers what nobody asked");
        return false;
    }
    finish(call, answer);
    return false;
}

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
            fail_call(call, answers_reason(call->answers));
            return;
        case ANSWERS_ONE:
            if (!take_reply(call, &answer)) {
                return;
            }
        }
    }
}

static bool dial_call(struct call *call, const char *host, unsigned port,
                      struct slice command, unsigned timeout_ms);

/* Asks over a new link. An idle one may end just when it is used again. */
static bool
ask_again(struct call *call)
{
    uint64_t now_ms = run_clock_ms();
    struct host_port parts = { .bracketed = false };
    unsigned port = 0;
    bool good = call->again && now_ms < call->until_ms &&
                host_port_split(slice_of(call->address), &parts) &&
                host_port_number(&parts, &port);
    char *host = good ? mem_copy_text(parts.host) : NULL;

    call->again = false;
    answers_free(call->answers);
    call->answers = NULL;
    good = good && dial_call(call, host, port, buf_slice(&call->question),
                             (unsigned)(call->until_ms - now_ms));
    mem_free(host);
    return good;
}

static void
on_call_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct call *call = ctx;

    (void)link;
    (void)error;
    call->link = NULL;
    if (!call->asks || !ask_again(call)) {
        fail_call(call, reason);
    }
}

static const struct link_hooks hooks = { .bytes = on_bytes,
                                         .closed = on_call_closed };

/* Returns whether tls-replication is on. */
static bool
uses_tls(const struct loop0 *loop0)
{
    struct gate *gate = keyspace_gate(loop0->service->keyspace);
    bool on;

    gate_enter(gate, 0);
    on = loop0->service->conf->tls_replication;
    gate_leave(gate, 0);
    return on;
}

/* Appends AUTH if there is a password. Returns whether there is one. */
static bool
write_login(const struct loop0 *loop0, struct buf *out)
{
    struct gate *gate = keyspace_gate(loop0->service->keyspace);
    const struct conf *conf = loop0->service->conf;
    bool has_password;

    gate_enter(gate, 0);
    has_password = compose_login(out, slice_of(conf->masteruser),
                                 slice_of(conf->masterauth));
    gate_leave(gate, 0);
    return has_password;
}

struct link *
colleague_dial(const struct loop0 *loop0, const char *host, unsigned port,
               unsigned timeout_ms, const struct link_hooks *link_hooks,
               void *ctx)
{
    struct link *link =
        link_dial(loop0->loop, host, port, timeout_ms, link_hooks, ctx);

    if (uses_tls(loop0)) {
        link_secure(link, tls_new_dial(loop0->service->tls, host));
    }
    return link;
}

bool
colleague_login(const struct loop0 *loop0, struct link *link, bool *ret_logs_in)
{
    struct buf text = { 0 };
    bool sent;

    *ret_logs_in = write_login(loop0, &text);
    sent = !text.failed && link_send(link, buf_slice(&text));
    buf_wipe(&text);
    return sent;
}

static bool
dial_call(struct call *call, const char *host, unsigned port,
          struct slice command, unsigned timeout_ms)
{
    const struct loop0 *loop0 = call->owner->loop0;

    call->secure = uses_tls(loop0);
    call->answers = answers_new(REPLY_BYTES_MAX);
    if (call->answers == NULL) {
        return false;
    }
    call->link = colleague_dial(loop0, host, port, timeout_ms, &hooks, call);
    return colleague_login(loop0, call->link, &call->logs_in) &&
           link_send(call->link, command);
}

/* ---- all calls ----------------------------------------------------------- */

static void
on_timer(uv_timer_t *timer)
{
    struct colleagues *colleagues = timer->data;
    struct call *call = colleagues->calls;
    uint64_t now_ms = run_clock_ms();

    /* `done` may ask more: it puts new calls at the front of the list. */
    while (call != NULL) {
        struct call *next = call->next;

        if (call->failure != NULL || now_ms >= call->until_ms) {
            fail_call(call, call->failure != NULL ? call->failure
                                                  : "no answer in time");
        }
        call = next;
    }
}

struct colleagues *
colleagues_new(const struct loop0 *loop0, colleague_fn done, void *ctx)
{
    struct colleagues *colleagues = mem_zalloc(sizeof(*colleagues));

    colleagues->loop0 = loop0;
    colleagues->done = done;
    colleagues->ctx = ctx;
    CHECK(uv_timer_init(&loop0->loop->uv, &colleagues->timer) == 0);
    colleagues->timer.data = colleagues;
    CHECK(uv_timer_start(&colleagues->timer, on_timer, TICK_MS, TICK_MS) == 0);
    return colleagues;
}

/* Asks over the idle link to that address. False: there is none. */
static bool
ask_idle(struct colleagues *colleagues, const char *address, uint64_t number,
         struct slice command, unsigned timeout_ms)
{
    struct call *call = map_remove(&colleagues->idle, slice_of(address));

    if (call == NULL) {
        return false;
    }
    if (call->secure != uses_tls(colleagues->loop0)) {
        call->failure = "tls-replication has changed"; /* the timer frees it */
        return false;
    }
    call->asks = true;
    call->number = number;
    call->until_ms = run_clock_ms() + timeout_ms;
    buf_reset(&call->question, command.len);
    buf_append_slice(&call->question, command);
    call->again = !call->question.failed;
    if (!link_send(call->link, command)) {
        call->failure = "no memory for the question";
    }
    return true;
}

void
colleagues_ask(struct colleagues *colleagues, uint64_t number, const char *host,
               unsigned port, struct slice command, unsigned timeout_ms)
{
    char address[TOPOLOGY_HOST_MAX + 8];
    struct call *call;

    (void)snprintf(address, sizeof(address), "%s:%u", host, port);
    if (ask_idle(colleagues, address, number, command, timeout_ms)) {
        return;
    }
    call = new_call(colleagues, address);
    call->asks = true;
    call->number = number;
    call->until_ms = run_clock_ms() + timeout_ms;
    if (!dial_call(call, host, port, command, timeout_ms)) {
        call->failure = "no memory for the question";
    }
}

void
colleagues_stop(struct colleagues *colleagues)
{
    while (colleagues->calls != NULL) {
        free_call(colleagues->calls);
    }
    map_free(&colleagues->idle);
    uv_close((uv_handle_t *)&colleagues->timer, NULL);
}

void
colleagues_free(struct colleagues *colleagues)
{
    mem_free(colleagues);
}
