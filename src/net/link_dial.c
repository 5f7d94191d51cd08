/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nothing is tried before link_dial has returned: an address in digits comes
 * through the async too.
 */
#include "net/link_dial.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "net/link_internal.h"
#include "net/lookup.h"

#include <errno.h>

static void try_next(struct link *link);
static void on_timeout(uv_timer_t *timer);

static void
start_timer(struct link *link, uint64_t ms)
{
    link->timeout_ms = run_clock_ms() + ms;
    CHECK(uv_timer_start(&link->timer, on_timeout, ms, 0) == 0);
}

static void
on_try_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;

    link->has_stream = false;
    if (link->state == LINK_CLOSED) {
        link_handle_closed(handle);
    } else {
        link->handles--;
        try_next(link);
    }
}

/* Closes the handle of an address that does not answer; the next one follows.
 */
static void
give_up_address(struct link *link, int status)
{
    link->error = link_errno(status);
    link->reason = uv_strerror(status);
    (void)uv_timer_stop(&link->timer);
    uv_close(&link->uv.handle, on_try_closed);
}

static uint64_t
left_ms(const struct link *link)
{
    uint64_t now = run_clock_ms();

    return link->deadline_ms > now ? link->deadline_ms - now : 0;
}

static void
on_connected(uv_connect_t *connect, int status)
{
    struct link *link = connect->data;

    CHECK(link->magic == LINK_MAGIC);
    if (link->state == LINK_CLOSED || uv_is_closing(&link->uv.handle)) {
        return;
    }
    if (status != 0) {
        give_up_address(link, status);
        return;
    }
    (void)uv_timer_stop(&link->timer);
    lookup_free(link->lookup);
    link->lookup = NULL;
    if (link->tls != NULL) {
        start_timer(link, left_ms(link));
        link_begin_handshake(link);
        return;
    }
    link_become_open(link);
    if (link->hooks->opened != NULL) {
        link->hooks->opened(link->ctx, link);
    }
    link_flush(link);
    link_settle(link);
}

/* Returns an equal share of the time left, so that an address that does not
 * answer leaves time for the others. */
static uint64_t
share_ms(const struct link *link)
{
    uint64_t count = 1;

    for (const struct addrinfo *at = link->next_address; at != NULL;
         at = at->ai_next) {
        count++;
    }
    return left_ms(link) / count;
}

/* Begins to connect. The stream's handle is initialised. */
static void
begin_try(struct link *link)
{
    link->state = LINK_CONNECTING;
    link->uv.handle.data = link;
    link->connect.data = link;
    link->has_stream = true;
    link->handles++;
}

static void
try_next(struct link *link)
{
    const struct addrinfo *address = link->next_address;
    int status;

    if (address == NULL) {
        link_fail_soon(link, link->error, link->reason, 0);
        return;
    }
    link->next_address = address->ai_next;
    CHECK(uv_tcp_init(&link->loop->uv, &link->uv.tcp) == 0);
    begin_try(link);
    status = uv_tcp_connect(&link->connect, &link->uv.tcp, address->ai_addr,
                            on_connected);
    if (status != 0) {
        give_up_address(link, status);
    } else {
        start_timer(link, share_ms(link));
    }
}

/* Ends an attempt, a handshake or a look-up that has taken too long. */
static void
on_timeout(uv_timer_t *timer)
{
    struct link *link = timer->data;
    uint64_t now_ms = run_clock_ms();

    CHECK(link->magic == LINK_MAGIC && !link->failed &&
          link->state < LINK_OPEN);
    if (now_ms < link->timeout_ms) { /* this process was paused */
        start_timer(link, link->timeout_ms - now_ms);
    } else if (link->state == LINK_CONNECTING) {
        give_up_address(link, UV_ETIMEDOUT);
    } else if (link->state == LINK_SECURING) {
        link_fail_soon(link, ETIMEDOUT, "the TLS handshake took too long", 0);
    } else {
        link_fail_soon(link, ETIMEDOUT,
                       "the host's address was not found in time", 0);
    }
}

static void
try_addresses(struct link *link)
{
    int error = lookup_error(link->lookup);

    if (error != 0) {
        link_fail_soon(link, EHOSTUNREACH, gai_strerror(error), 0);
        return;
    }
    link->next_address = lookup_found(link->lookup);
    link->error = EHOSTUNREACH;
    link->reason = "the host has no address";
    try_next(link);
}

static void
on_found(uv_async_t *async)
{
    struct link *link = async->data;

    if (link->state == LINK_LOOKING && !link->failed &&
        lookup_is_done(link->lookup)) {
        try_addresses(link);
    }
}

/* Called on the lookup's thread. */
static void
on_lookup_done(void *ctx)
{
    struct link *link = ctx;

    CHECK(uv_async_send(&link->async) == 0);
}

struct link *
link_dial(struct loop *loop, const char *host, unsigned port,
          unsigned timeout_ms, const struct link_hooks *hooks, void *ctx)
{
    struct link *link = mem_zalloc(sizeof(*link));

    link_begin(link, loop, hooks, ctx);
    link->kind = LINK_TCP;
    if (loop->stopping) {
        link_fail_soon(link, ECANCELED, "the server stops", 0);
        return link;
    }
    uv_update_time(&loop->uv); /* uv_now may be old */
    link->deadline_ms = run_clock_ms() + timeout_ms;
    CHECK(uv_async_init(&loop->uv, &link->async, on_found) == 0);
    link->async.data = link;
    link->has_async = true;
    link->handles++;
    start_timer(link, timeout_ms);
    link->lookup = lookup_new(host, port, on_lookup_done, link);
    if (link->lookup == NULL) {
        link_fail_soon(link, ENOMEM,
                       "no memory or no thread to look the host up", 0);
    } else if (lookup_is_done(link->lookup)) {
        CHECK(uv_async_send(&link->async) == 0);
    }
    return link;
}

/* There is one address, so nothing is looked up. */
struct link *
link_dial_unix(struct loop *loop, const char *path, unsigned timeout_ms,
               const struct link_hooks *hooks, void *ctx)
{
    struct link *link = mem_zalloc(sizeof(*link));

    link_begin(link, loop, hooks, ctx);
    link->kind = LINK_UNIX;
    if (loop->stopping) {
        link_fail_soon(link, ECANCELED, "the server stops", 0);
        return link;
    }
    uv_update_time(&loop->uv); /* uv_now may be old */
    link->deadline_ms = run_clock_ms() + timeout_ms;
    CHECK(uv_pipe_init(&loop->uv, &link->uv.pipe, 0) == 0);
    begin_try(link);
    start_timer(link, timeout_ms);
    uv_pipe_connect(&link->connect, &link->uv.pipe, path, on_connected);
    return link;
}
