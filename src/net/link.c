/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads, writes and closes. libuv sends one queued request a loop turn, so
 * there is one write under way and one buffer that gathers what comes
 * meanwhile. Long buffers are written in pieces, so that link_unsent and
 * `drained` follow what the socket takes.
 */
#include "net/link.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/link_internal.h"
#include "net/lookup.h"
#include "net/pending.h"

#include <errno.h>
#include <stdio.h>

enum {
    WRITE_BYTES = 512 * 1024,
    SEAL_BYTES = 256 * 1024, /* plain bytes that TLS encrypts in one call */
    OPENED_KEEP_BYTES = LOOP_READ_BYTES + 64 * 1024,
    /* After a failed write the other side's last bytes may still be unread, for
     * example why it closed: they are read first if they come this soon. */
    LAST_WORDS_MS = 100,
};

/* ---- the end ------------------------------------------------------------- */

void
link_handle_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;

    CHECK(link->magic == LINK_MAGIC && link->handles > 0);
    link->handles--;
    if (link->handles == 0) {
        link->magic = 0;
        buf_free(&link->kept);
        buf_free(&link->sending);
        buf_free(&link->waiting);
        buf_free(&link->sealed);
        tls_free(link->tls);
        mem_free(link);
    }
}

static void
leave_soon(struct link *link)
{
    if (link->soon_at != NULL) {
        *link->soon_at = link->next_soon;
        if (link->next_soon != NULL) {
            link->next_soon->soon_at = link->soon_at;
        }
        link->soon_at = NULL;
    }
}

static void
leave_loop(struct link *link)
{
    if (link->prev != NULL) {
        link->prev->next = link->next;
    } else {
        link->loop->links = link->next;
    }
    if (link->next != NULL) {
        link->next->prev = link->prev;
    }
}

/* Tells the other side of TLS that the link is closed on purpose, if all other
 * output was sent and the socket takes the record. */
static void
say_end(struct link *link)
{
    struct buf *sealed = &link->loop->sealed;

    if (link->tls != NULL && link->state >= LINK_OPEN && !link->writing &&
        link_unsent(link) == 0 && sealed->len == 0) {
        tls_end(link->tls, sealed);
        if (sealed->len > 0) {
            uv_buf_t part = loop_uv_buf(buf_slice(sealed));

            (void)uv_try_write(&link->uv.stream, &part, 1);
        }
        sealed->len = 0;
    }
}

void
link_close(struct link *link)
{
    CHECK(link->magic == LINK_MAGIC);
    if (link->state == LINK_CLOSED) {
        return;
    }
    say_end(link);
    link->state = LINK_CLOSED;
    leave_soon(link);
    leave_loop(link);
    lookup_free(link->lookup);
    link->lookup = NULL;
    uv_close((uv_handle_t *)&link->timer, link_handle_closed);
    if (link->has_async) {
        uv_close((uv_handle_t *)&link->async, link_handle_closed);
    }
    if (link->has_stream && !uv_is_closing(&link->uv.handle)) {
        uv_close(&link->uv.handle, link_handle_closed);
    }
}

void
link_close_all(struct loop *loop)
{
    while (loop->links != NULL) {
        link_close(loop->links);
    }
}

static void
end_link(struct link *link, int error, const char *reason)
{
    if (link->state != LINK_LEAVING && link->hooks->closed != NULL) {
        link->hooks->closed(link->ctx, link, error, reason);
    }
    link_close(link);
}

static void on_timer(uv_timer_t *timer);

static void
start_timer(struct link *link, uint64_t ms)
{
    CHECK(uv_timer_start(&link->timer, on_timer, ms, 0) == 0);
}

void
link_fail_soon(struct link *link, int error, const char *reason, uint64_t ms)
{
    if (!link->failed && link->state != LINK_CLOSED) {
        link->failed = true;
        link->error = error;
        link->reason = reason;
        start_timer(link, ms);
    }
}

/* ---- reading ------------------------------------------------------------- */

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf);
static void send_sealed(struct link *link);

/* Returns the loop's buffer, which is free until the end of on_read. */
static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    const struct link *link = handle->data;

    (void)suggested;
    *ret_buf = uv_buf_init(link->loop->read_buffer, LOOP_READ_BYTES);
}

void
link_settle(struct link *link)
{
    bool read = !link->paused && link->soon_at == NULL;

    if (link->state < LINK_SECURING || link->state == LINK_CLOSED) {
        return;
    }
    if (!read && link->reading) {
        (void)uv_read_stop(&link->uv.stream);
        link->reading = false;
    } else if (read && !link->reading) {
        int status = uv_read_start(&link->uv.stream, on_alloc, on_read);

        link->reading = status == 0;
        if (status != 0) {
            link_fail_soon(link, link_errno(status), uv_strerror(status), 0);
        }
    }
}

static void
resume_soon(struct link *link)
{
    struct loop *loop = link->loop;

    if (link->soon_at != NULL || link->state == LINK_CLOSED || loop->stopping) {
        return;
    }
    link->next_soon = loop->links_soon;
    link->soon_at = &loop->links_soon;
    if (link->next_soon != NULL) {
        link->next_soon->soon_at = &link->next_soon;
    }
    loop->links_soon = link;
    loop_resume_soon(loop);
}

/* Calls the bytes hook and returns how many bytes it used; all of them if the
 * hook closed the link, since it then wants no more. */
static size_t
give(struct link *link, struct slice bytes)
{
    size_t used = 0;

    if (link->hooks->bytes == NULL) {
        return bytes.len;
    }
    pending_flush(link->loop); /* the hook may take long */
    link->hooks->bytes(link->ctx, link, bytes, &used);
    CHECK(used <= bytes.len);
    return link->state >= LINK_LEAVING ? bytes.len : used;
}

static void
give_kept(struct link *link)
{
    size_t used = give(link, buf_slice(&link->kept));

    if (used == link->kept.len) {
        buf_free(&link->kept);
    } else if (used > 0) {
        buf_consume(&link->kept, used);
    }
}

static void
receive(struct link *link, struct slice bytes)
{
    size_t used = 0;
    bool fresh = link->kept.len == 0;

    if (fresh) {
        used = give(link, bytes);
    }
    buf_append(&link->kept, bytes.data + used, bytes.len - used);
    if (link->kept.failed) {
        end_link(link, ENOMEM, "no memory for what it sent");
    } else if (!fresh) {
        give_kept(link);
    }
}

/* Handles that the other side sends no more. */
static void
end_input(struct link *link)
{
    if (link->state == LINK_LEAVING) {
        link->paused = true; /* the other side may still read unsent bytes */
    } else {
        end_link(link, 0, "the other side closed the connection");
    }
}

/* Handles the end of the handshake. */
static void
become_secure(struct link *link)
{
    (void)uv_timer_stop(&link->timer);
    link_become_open(link);
    if (link->hooks->opened != NULL) {
        link->hooks->opened(link->ctx, link);
    }
    link_flush(link);
}

static void
receive_sealed(struct link *link, struct slice bytes)
{
    struct loop *loop = link->loop;
    enum tls_result result =
        tls_open(link->tls, bytes, &loop->opened, &loop->sealed);

    send_sealed(link);
    if (link->state == LINK_SECURING && !link->failed &&
        tls_is_established(link->tls)) {
        become_secure(link);
    }
    if (link->state == LINK_OPEN && loop->opened.len > 0) {
        receive(link, buf_slice(&loop->opened));
    }
    buf_reset(&loop->opened, OPENED_KEEP_BYTES);
    if (link->state == LINK_CLOSED) {
        return;
    }
    if (result == TLS_FAILED) {
        end_link(link, EPROTO, tls_reason(link->tls));
    } else if (result == TLS_ENDED) {
        end_input(link);
    }
}

static void
on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct link *link = stream->data;

    CHECK(link->magic == LINK_MAGIC);
    if (nread == UV_EOF) {
        end_input(link);
    } else if (nread < 0) {
        end_link(link, link_errno((int)nread), uv_strerror((int)nread));
    } else if (nread > 0) {
        if (link->kind != LINK_PIPE) {
            metric_add(METRIC_NET_REPL_INPUT, nread);
        }
        if (link->tls != NULL) {
            receive_sealed(link, (struct slice){ buf->base, (size_t)nread });
        } else if (link->state == LINK_OPEN) {
            receive(link, (struct slice){ buf->base, (size_t)nread });
        }
        if (nread == LOOP_READ_BYTES) {
            /* A full buffer makes libuv read up to 32 times at once; other
             * connections have their turn first. */
            resume_soon(link);
        }
    }
    link_settle(link);
}

void
link_pause(struct link *link, bool paused)
{
    CHECK(link->magic == LINK_MAGIC);
    if (link->state == LINK_LEAVING) {
        return;
    }
    if (link->paused && !paused) {
        link->again = true;
        resume_soon(link);
    }
    link->paused = paused;
    link_settle(link);
}

void
link_resume_all(struct loop *loop)
{
    struct link *batch = loop->links_soon;

    /* A link that asks for another turn gets it after this round. */
    loop->links_soon = NULL;
    if (batch != NULL) {
        batch->soon_at = &batch;
    }
    while (batch != NULL) {
        struct link *link = batch;
        bool again = link->again && !link->paused;

        leave_soon(link);
        if (again) {
            link->again = false;
            if (link->kept.len > 0 && link->state == LINK_OPEN) {
                give_kept(link);
            }
        }
        link_settle(link);
    }
}

/* ---- writing ------------------------------------------------------------- */

size_t
link_unsent(const struct link *link)
{
    size_t queued =
        link->writing ? uv_stream_get_write_queue_size(&link->uv.stream) : 0;

    return queued + (link->sending.len - link->sent_to) + link->sealed.len +
           (link->waiting.len - link->waiting_at);
}

static void
free_unsent(struct link *link)
{
    buf_free(&link->sending);
    buf_free(&link->waiting);
    buf_free(&link->sealed);
    link->sent_to = 0;
    link->waiting_at = 0;
}

static void
break_off(struct link *link, int status)
{
    if (link->state == LINK_LEAVING) {
        link_close(link);
        return;
    }
    free_unsent(link);
    link_fail_soon(link, link_errno(status), uv_strerror(status),
                   LAST_WORDS_MS);
}

static void on_written(uv_write_t *write, int status);

/* Returns whether anything can be sent: plain bytes wait for the handshake. */
static bool
has_next(const struct link *link)
{
    return link->sent_to < link->sending.len || link->sealed.len > 0 ||
           (link->waiting.len > link->waiting_at && link->state >= LINK_OPEN);
}

static void
start_write(struct link *link)
{
    struct slice piece;
    uv_buf_t part;
    int status;

    if (link->sent_to == link->sending.len) {
        struct buf empty = link->sending;
        struct buf *next = link->tls != NULL ? &link->sealed : &link->waiting;

        link->sending = *next;
        *next = empty;
        next->len = 0;
        link->sent_to = 0;
        if (link->tls != NULL && link->state >= LINK_OPEN &&
            !tls_seal_piece(link->tls, &link->waiting, &link->waiting_at,
                            SEAL_BYTES, &link->sending)) {
            break_off(link, UV_EPROTO);
            return;
        }
    }
    piece = (struct slice){ link->sending.data + link->sent_to,
                            link->sending.len - link->sent_to };
    if (piece.len > WRITE_BYTES) {
        piece.len = WRITE_BYTES;
    }
    part = loop_uv_buf(piece);
    link->write.data = link;
    status = uv_write(&link->write, &link->uv.stream, &part, 1, on_written);
    if (status != 0) {
        break_off(link, status);
        return;
    }
    link->writing = true;
    link->sent_to += piece.len;
    if (link->kind != LINK_PIPE) {
        metric_add(METRIC_NET_REPL_OUTPUT, (int64_t)piece.len);
    }
}

static void
call_drained(struct link *link, size_t unsent)
{
    link->peak = unsent;
    if (link->hooks->drained != NULL && link->state == LINK_OPEN &&
        !link->failed) {
        link->hooks->drained(link->ctx, link);
    }
}

static void
on_written(uv_write_t *write, int status)
{
    struct link *link = write->data;
    size_t unsent;

    CHECK(link->magic == LINK_MAGIC);
    link->writing = false;
    if (link->state == LINK_CLOSED) {
        return;
    }
    if (status < 0) {
        break_off(link, status);
        return;
    }
    unsent = link_unsent(link);
    if (has_next(link) && !link->failed) {
        start_write(link);
        unsent = link_unsent(link);
    }
    if (unsent == 0 && !link->writing) {
        free_unsent(link);
    }
    if (link->state == LINK_LEAVING && unsent == 0) {
        link_close(link);
    } else if (link->peak > 0 && unsent <= link->peak / 2) {
        call_drained(link, unsent);
    }
}

/* Returns how many bytes the socket took at once. */
static size_t
write_now(struct link *link, struct slice bytes)
{
    uv_buf_t part = loop_uv_buf(bytes);
    int written = uv_try_write(&link->uv.stream, &part, 1);

    if (written < 0) {
        if (written != UV_EAGAIN) {
            break_off(link, written);
        }
        return 0;
    }
    if (link->kind != LINK_PIPE) {
        metric_add(METRIC_NET_REPL_OUTPUT, written);
    }
    return (size_t)written;
}

void
link_flush(struct link *link)
{
    if (has_next(link) && !link->writing && !link->failed &&
        link->state != LINK_CLOSED) {
        start_write(link);
    }
}

/* Sends the records that tls_open has made. */
static void
send_sealed(struct link *link)
{
    struct buf *sealed = &link->loop->sealed;

    buf_append_slice(&link->sealed, buf_slice(sealed));
    sealed->len = 0;
    if (link->sealed.failed) {
        break_off(link, UV_ENOMEM);
    }
    link_flush(link);
}

void
link_secure(struct link *link, struct tls *tls)
{
    CHECK(link->magic == LINK_MAGIC && link->tls == NULL);
    link->tls = tls;
    if (tls == NULL) {
        link_fail_soon(link, ENOMEM, "no memory for TLS", 0);
    }
}

void
link_begin_handshake(struct link *link)
{
    link->state = LINK_SECURING;
    receive_sealed(link, (struct slice){ NULL, 0 });
    link_settle(link);
}

bool
link_send(struct link *link, struct slice bytes)
{
    size_t unsent;

    CHECK(link->magic == LINK_MAGIC && link->state != LINK_LEAVING);
    if (link->failed || link->state == LINK_CLOSED || bytes.len == 0) {
        return true;
    }
    if (link->state == LINK_OPEN && link->tls == NULL &&
        link_unsent(link) == 0 && !link->writing) {
        size_t written = write_now(link, bytes);

        bytes.data += written;
        bytes.len -= written;
        if (link->failed || bytes.len == 0) {
            return true;
        }
    }
    buf_append_slice(&link->waiting, bytes);
    if (link->waiting.failed) {
        return false;
    }
    if (link->state == LINK_OPEN) {
        link_flush(link);
    }
    unsent = link_unsent(link);
    if (link->peak < unsent) {
        link->peak = unsent;
    }
    return true;
}

void
link_close_after(struct link *link, unsigned timeout_ms)
{
    CHECK(link->magic == LINK_MAGIC);
    if (link->state != LINK_OPEN || link->failed || link_unsent(link) == 0) {
        link_close(link);
    } else {
        link->state = LINK_LEAVING;
        link->paused = false;
        start_timer(link, timeout_ms);
        link_settle(link);
    }
}

/* ---- the beginning ------------------------------------------------------- */

static void
apply_keepalive(struct link *link)
{
    if (link->kind == LINK_TCP && link->state == LINK_OPEN) {
        unsigned seconds = link->keepalive_s > 0 ? link->keepalive_s : 1;

        (void)uv_tcp_keepalive(&link->uv.tcp, link->keepalive_s > 0, seconds);
    }
}

void
link_keepalive(struct link *link, unsigned seconds)
{
    CHECK(link->magic == LINK_MAGIC);
    link->keepalive_s = seconds;
    apply_keepalive(link);
}

void
link_become_open(struct link *link)
{
    uv_os_fd_t fd = -1;

    link->state = LINK_OPEN;
    CHECK(uv_fileno(&link->uv.handle, &fd) == 0);
    if (link->kind != LINK_PIPE) {
        address_peer(fd, link->kind != LINK_TCP, link->peer);
        address_local(fd, link->kind != LINK_TCP, link->local);
        address_peer_host(fd, link->kind != LINK_TCP, link->host);
    }
    if (link->kind == LINK_TCP) {
        (void)uv_tcp_nodelay(&link->uv.tcp, 1);
        apply_keepalive(link);
    }
}

static void
on_timer(uv_timer_t *timer)
{
    struct link *link = timer->data;

    CHECK(link->magic == LINK_MAGIC && link->state != LINK_CLOSED);
    if (link->state == LINK_LEAVING) {
        link_close(link);
    } else {
        CHECK(link->failed);
        end_link(link, link->error, link->reason);
    }
}

void
link_begin(struct link *link, struct loop *loop, const struct link_hooks *hooks,
           void *ctx)
{
    link->magic = LINK_MAGIC;
    link->loop = loop;
    link->hooks = hooks;
    link->ctx = ctx;
    link->keepalive_s = (unsigned)loop->env->limits->keepalive_seconds;
    CHECK(uv_timer_init(&loop->uv, &link->timer) == 0);
    link->timer.data = link;
    link->handles = 1;
    link->next = loop->links;
    if (link->next != NULL) {
        link->next->prev = link;
    }
    loop->links = link;
}

void
link_peer_address(const struct link *link, char *ret_text)
{
    (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "%s", link->peer);
}

void
link_local_address(const struct link *link, char *ret_text)
{
    (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "%s", link->local);
}

void
link_peer_host(const struct link *link, char *ret_text)
{
    (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "%s", link->host);
}
