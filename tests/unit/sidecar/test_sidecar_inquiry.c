/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An order waits in the mailbox of loop 0 until it has its answer; a stop lets
 * go of those that wait.
 */
#include "sidecar/sidecar_inquiry.h"

#include "../test.h"
#include "base/mem.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "net/loop.h"

enum { ORDERS_MAX = 3 };

struct place {
    struct service service;
    struct worker worker;
    struct loop loop;
    struct loop0 loop0;
    struct sidecar_inquiry *inquiry;
    struct fence_order *taken[ORDERS_MAX];
    unsigned count, wakes;
};

static void
note_wake(void *ctx)
{
    struct place *place = ctx;

    place->wakes++;
}

static void
take(void *ctx, struct fence_order *order)
{
    struct place *place = ctx;

    assert_true(place->count < ORDERS_MAX);
    place->taken[place->count++] = order;
}

static void
on_mail(uv_async_t *async)
{
    (void)mailbox_collect(async->data);
    mailbox_deliver(async->data);
}

static struct place *
place_new(void)
{
    struct place *place = mem_zalloc(sizeof(*place));

    place->service.wake_loops = note_wake;
    place->service.ctx = place;
    place->worker.service = &place->service;
    place->loop.owner = &place->worker;
    place->loop0 =
        (struct loop0){ .service = &place->service, .loop = &place->loop };
    assert_int_equal(0, uv_loop_init(&place->loop.uv));
    mailbox_init(&place->loop.mailbox, &place->loop, &place->loop.uv, on_mail);
    place->inquiry = sidecar_inquiry_new(&place->loop0, take, place);
    return place;
}

/* As a server does that ends. */
static void
place_free(struct place *place)
{
    mailbox_close(&place->loop.mailbox);
    (void)uv_run(&place->loop.uv, UV_RUN_DEFAULT);
    assert_int_equal(0, uv_loop_close(&place->loop.uv));
    mailbox_fini(&place->loop.mailbox);
    sidecar_inquiry_free(place->inquiry);
    assert_null(place->service.sidecar.fence);
    mem_free(place);
}

/* Turns loop 0. */
static void
turn(struct place *place)
{
    (void)uv_run(&place->loop.uv, UV_RUN_NOWAIT);
}

static struct fence_order *
make(uint64_t epoch)
{
    struct slot_set set = { { 0 } };
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_FENCE_EMPTY,
                                     .node = "n",
                                     .set = &set,
                                     .epoch = epoch };
    struct fence_order *order = fence_order_new(&ask);

    assert_non_null(order);
    return order;
}

static bool
give(struct place *place, struct fence_order *order)
{
    return place->service.sidecar.fence(place->service.sidecar.ctx, order);
}

/* Asks, as a loop does that has a client, and keeps the order. */
static struct fence_order *
ask(struct place *place, uint64_t epoch)
{
    struct fence_order *order = make(epoch);

    assert_true(give(place, order));
    return order;
}

TEST(an_order_goes_to_loop_0_and_comes_back_with_its_answer)
{
    struct place *place = place_new();
    struct fence_order *order = ask(place, 7);

    assert_int_equal(0, place->count); /* not before loop 0 turns */
    turn(place);
    assert_int_equal(1, place->count);
    assert_ptr_equal(order, place->taken[0]);
    assert_false(atomic_load(&order->done));
    order->answer.kind = SIDECAR_GONE;
    sidecar_inquiry_answer(place->inquiry, order);
    assert_int_equal(1, place->wakes);
    assert_true(atomic_load(&order->done));
    assert_int_equal(SIDECAR_GONE, order->answer.kind);
    assert_ptr_equal(&order->granted, order->answer.granted);
    fence_order_drop(order);
    place_free(place);
}

TEST(orders_come_in_their_order_and_none_is_lost)
{
    struct place *place = place_new();
    struct fence_order *orders[] = { ask(place, 1), ask(place, 2),
                                     ask(place, 3) };

    turn(place);
    assert_int_equal(ORDERS_MAX, place->count);
    for (size_t i = 0; i < ORDERS_MAX; i++) {
        assert_ptr_equal(orders[i], place->taken[i]);
        sidecar_inquiry_answer(place->inquiry, orders[i]);
        assert_true(atomic_load(&orders[i]->done));
        fence_order_drop(orders[i]);
    }
    place_free(place);
}

static void
ignore(struct loop *loop, void *ptr, uint64_t number)
{
    (void)loop;
    (void)ptr;
    (void)number;
}

TEST(an_order_that_finds_no_room_belongs_to_the_client_alone)
{
    struct place *place = place_new();
    struct fence_order *order = make(1);

    while (mailbox_post(&place->loop.mailbox, ignore, NULL, 0)) {
    }
    assert_false(give(place, order));
    assert_int_equal(1, atomic_load(&order->users));
    turn(place);
    assert_int_equal(0, place->count);
    fence_order_drop(order);
    place_free(place);
}

TEST(a_stop_lets_go_of_what_waits)
{
    struct place *place = place_new();
    struct fence_order *order = ask(place, 1);

    place_free(place);
    assert_int_equal(1, atomic_load(&order->users)); /* the client's */
    assert_false(atomic_load(&order->done));
    fence_order_drop(order);
    sidecar_inquiry_free(NULL);
}
