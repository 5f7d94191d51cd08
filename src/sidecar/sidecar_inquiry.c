/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar/sidecar_inquiry.h"

#include "base/mem.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "journal/journal.h"
#include "net/loop.h"
#include "persist/persist.h"
#include "persist/place.h"

#include <pthread.h>

struct sidecar_inquiry {
    const struct loop0 *loop0;
    void (*take)(void *ctx, struct fence_order *order);
    void *ctx;
    struct holdings *shown; /* the holdings in the text; loop 0 */
    pthread_mutex_t mutex;  /* guards what follows */
    struct buf text;        /* of the holdings */
    uint64_t version;       /* of the text */
};

/* ---- any loop, inside a section of the gate ------------------------------ */

static bool
holdings(void *ctx, uint64_t seen, struct buf *ret_text, char *ret_history,
         uint64_t *ret_position)
{
    struct sidecar_inquiry *inquiry = ctx;
    struct persist *persist = inquiry->loop0->service->persist;
    uint64_t sequence;
    bool known;

    pthread_mutex_lock(&inquiry->mutex);
    known = inquiry->text.len > 0;
    if (seen == 0 || seen != inquiry->version) {
        buf_append_slice(ret_text, buf_slice(&inquiry->text));
    }
    pthread_mutex_unlock(&inquiry->mutex);
    /* Read the position after the text: a copy that has reached it has all data
     * that the text names. */
    memcpy(ret_history, persist_history(persist)->id, HISTORY_ID_CHARS + 1);
    persist_place(persist, ret_position, &sequence);
    return known;
}

static void
on_order(struct loop *loop, void *ptr, uint64_t number)
{
    const struct worker *worker = loop->owner;
    struct sidecar_inquiry *inquiry = worker->service->sidecar.ctx;

    (void)number;
    inquiry->take(inquiry->ctx, ptr);
}

static bool
fence(void *ctx, struct fence_order *order)
{
    struct sidecar_inquiry *inquiry = ctx;
    bool given = mailbox_give(&inquiry->loop0->loop->mailbox, on_order,
                              fence_order_drop, order);

    if (!given) {
        fence_order_drop(order);
    }
    return given;
}

/* ---- loop 0 -------------------------------------------------------------- */

struct sidecar_inquiry *
sidecar_inquiry_new(const struct loop0 *loop0,
                    void (*take)(void *ctx, struct fence_order *order),
                    void *ctx)
{
    struct sidecar_inquiry *inquiry = mem_zalloc(sizeof(*inquiry));

    inquiry->loop0 = loop0;
    inquiry->take = take;
    inquiry->ctx = ctx;
    inquiry->shown = mem_zalloc(sizeof(*inquiry->shown));
    CHECK(pthread_mutex_init(&inquiry->mutex, NULL) == 0);
    loop0->service->sidecar = (struct sidecar_calls){ .holdings = holdings,
                                                      .fence = fence,
                                                      .ctx = inquiry };
    return inquiry;
}

void
sidecar_inquiry_free(struct sidecar_inquiry *inquiry)
{
    if (inquiry == NULL) {
        return;
    }
    inquiry->loop0->service->sidecar =
        (struct sidecar_calls){ .holdings = NULL };
    pthread_mutex_destroy(&inquiry->mutex);
    buf_free(&inquiry->text);
    mem_free(inquiry->shown);
    mem_free(inquiry);
}

void
sidecar_inquiry_publish(struct sidecar_inquiry *inquiry,
                        const struct holdings *holdings)
{
    struct buf text = { 0 };

    if (inquiry->text.len > 0 && holdings_equal(holdings, inquiry->shown)) {
        return;
    }
    *inquiry->shown = *holdings;
    holdings_write(holdings, &text);
    CHECK(!text.failed);
    pthread_mutex_lock(&inquiry->mutex);
    buf_exchange(&text, &inquiry->text);
    inquiry->version = holdings_version(buf_slice(&inquiry->text));
    pthread_mutex_unlock(&inquiry->mutex);
    buf_free(&text);
}

void
sidecar_inquiry_answer(struct sidecar_inquiry *inquiry,
                       struct fence_order *order)
{
    order->answer.granted = &order->granted;
    atomic_store_explicit(&order->done, true, memory_order_release);
    fence_order_drop(order);
    service_wake_loops(inquiry->loop0->service);
}
