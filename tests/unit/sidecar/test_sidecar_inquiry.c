/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fences wait for loop 0, each until it has its answer; a stop lets go of those
 * that wait.
 */
#include "sidecar/sidecar_inquiry.h"

#include "../test.h"
#include "base/mem.h"
#include "engine/service.h"

struct place {
    struct service service;
    struct sidecar_inquiry *inquiry;
    unsigned pokes, wakes;
};

static void
note_poke(void *ctx)
{
    struct place *place = ctx;

    place->pokes++;
}

static void
note_wake(void *ctx)
{
    struct place *place = ctx;

    place->wakes++;
}

static struct place *
place_new(void)
{
    struct place *place = mem_zalloc(sizeof(*place));

    place->service.wake_loops = note_wake;
    place->service.ctx = place;
    place->inquiry = sidecar_inquiry_new(&place->service, note_poke, place);
    return place;
}

static void
place_free(struct place *place)
{
    sidecar_inquiry_free(place->inquiry);
    mem_free(place);
}

/* Asks, as a loop does that has a client, and keeps the order. */
static struct fence_order *
ask(struct place *place, uint64_t epoch)
{
    struct slot_set set = { { 0 } };
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_FENCE_EMPTY,
                                     .node = "n",
                                     .set = &set,
                                     .epoch = epoch };
    struct fence_order *order = fence_order_new(&ask);

    assert_non_null(order);
    place->service.sidecar.fence(place->service.sidecar.ctx, order);
    return order;
}

TEST(an_order_goes_to_loop_0_and_comes_back_with_its_answer)
{
    struct place *place = place_new();
    struct fence_order *order = ask(place, 7);

    assert_int_equal(1, place->pokes);
    assert_false(atomic_load(&order->done));
    assert_ptr_equal(order, sidecar_inquiry_take(place->inquiry));
    assert_null(sidecar_inquiry_take(place->inquiry));
    order->answer.kind = SIDECAR_GONE;
    sidecar_inquiry_answer(place->inquiry, order);
    assert_int_equal(1, place->wakes);
    assert_true(atomic_load(&order->done));
    assert_int_equal(SIDECAR_GONE, order->answer.kind);
    assert_ptr_equal(&order->granted, order->answer.granted);
    fence_order_drop(order);
    place_free(place);
}

TEST(orders_are_independent_and_none_is_lost)
{
    struct place *place = place_new();
    struct fence_order *orders[3] = { ask(place, 1), ask(place, 2),
                                      ask(place, 3) };
    struct fence_order *order;
    unsigned seen = 0;

    while ((order = sidecar_inquiry_take(place->inquiry)) != NULL) {
        seen |= 1U << order->ask.epoch;
        sidecar_inquiry_answer(place->inquiry, order);
    }
    assert_int_equal(1U << 1 | 1U << 2 | 1U << 3, seen);
    assert_int_equal(3, place->pokes);
    for (size_t i = 0; i < 3; i++) {
        assert_true(atomic_load(&orders[i]->done));
        fence_order_drop(orders[i]);
    }
    place_free(place);
}

TEST(a_stop_lets_go_of_what_waits)
{
    struct place *place = place_new();
    struct fence_order *order = ask(place, 1);

    sidecar_inquiry_free(place->inquiry);
    assert_null(place->service.sidecar.fence);
    assert_int_equal(1, atomic_load(&order->users)); /* the client's */
    assert_false(atomic_load(&order->done));
    fence_order_drop(order);
    sidecar_inquiry_free(NULL);
    mem_free(place);
}
