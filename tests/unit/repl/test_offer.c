/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When batches are read, sent, sent again and stored.
 */
#include "repl/offer.h"

#include "../test.h"

#include <stdio.h>
#include <string.h>

struct rig {
    struct offer *offer;
    uint64_t now;
    char told[512]; /* what the hooks were asked to do */
    bool send_fails;
};

static void
tell(struct rig *rig, const char *what)
{
    size_t len = strlen(rig->told);

    (void)snprintf(rig->told + len, sizeof(rig->told) - len, "%s ", what);
}

static void
on_read(void *ctx)
{
    tell(ctx, "read");
}

static bool
on_send(void *ctx, bool dials, const char *host, unsigned port)
{
    struct rig *rig = ctx;
    char text[64];

    (void)snprintf(text, sizeof(text), "%s %s:%u", dials ? "dial" : "send",
                   host, port);
    tell(rig, text);
    return !rig->send_fails;
}

static void
on_close(void *ctx)
{
    tell(ctx, "close");
}

static void
on_restart(void *ctx)
{
    (void)ctx;
}

static void
on_refuse(void *ctx, size_t index)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "refuse %zu", index);
    tell(ctx, text);
}

static void
on_store(void *ctx)
{
    tell(ctx, "store");
}

static void
rig_begin(struct rig *rig)
{
    const struct offer_hooks hooks = { .read = on_read,
                                       .send = on_send,
                                       .close = on_close,
                                       .restart = on_restart,
                                       .refuse = on_refuse,
                                       .store = on_store,
                                       .ctx = rig };

    memset(rig, 0, sizeof(*rig));
    rig->now = 1000;
    rig->offer = offer_new(&hooks);
    offer_set_limits(rig->offer, 5000, 2000);
}

static void
answer(struct rig *rig, enum offer_verdict verdict)
{
    offer_answer(rig->offer, verdict, rig->now);
}

/* Checks and forgets what the hooks were asked to do. */
static void
assert_told(struct rig *rig, const char *told)
{
    assert_string_equal(rig->told, told);
    rig->told[0] = '\0';
}

static void
begin_asking(struct rig *rig, size_t answers)
{
    offer_set_target(rig->offer, "a", 1, rig->now);
    offer_begin(rig->offer);
    offer_batch(rig->offer, answers, rig->now);
    assert_told(rig, "read dial a:1 ");
}

static void
tick(struct rig *rig, uint64_t ms)
{
    rig->now += ms;
    offer_tick(rig->offer, rig->now);
}

TEST(batches_go_over_one_link_until_none_is_left)
{
    struct rig rig;

    rig_begin(&rig);
    assert_true(offer_is_idle(rig.offer));
    begin_asking(&rig, 2);
    assert_true(offer_asks(rig.offer));
    answer(&rig, OFFER_TAKEN);
    assert_told(&rig, "");
    answer(&rig, OFFER_REFUSED);
    assert_told(&rig, "refuse 1 store ");
    offer_stored(rig.offer, rig.now);
    offer_batch(rig.offer, 1, rig.now);
    answer(&rig, OFFER_TAKEN);
    assert_told(&rig, "read send a:1 store ");
    offer_stored(rig.offer, rig.now);
    offer_abandon(rig.offer);
    assert_told(&rig, "read close ");
    assert_true(offer_is_idle(rig.offer));
    offer_begin(rig.offer);
    offer_begin(rig.offer);
    assert_told(&rig, "read ");
    offer_free(rig.offer);
}

TEST(without_a_primary_a_batch_waits_for_one)
{
    struct rig rig;

    rig_begin(&rig);
    offer_begin(rig.offer);
    offer_batch(rig.offer, 1, rig.now);
    tick(&rig, 10000);
    assert_told(&rig, "read ");
    offer_set_target(rig.offer, "b", 2, rig.now);
    assert_told(&rig, "dial b:2 ");
    offer_set_target(rig.offer, "b", 2, rig.now); /* the present one */
    assert_told(&rig, "");
    offer_set_target(rig.offer, NULL, 0, rig.now);
    offer_set_target(rig.offer, NULL, 0, rig.now);
    assert_told(&rig, "close ");
    assert_false(offer_asks(rig.offer));
    offer_free(rig.offer);
}

TEST(another_primary_gets_the_batch_from_its_begin)
{
    struct rig rig;

    rig_begin(&rig);
    begin_asking(&rig, 2);
    answer(&rig, OFFER_TAKEN);
    offer_set_target(rig.offer, "b", 2, rig.now);
    assert_told(&rig, "close dial b:2 ");
    answer(&rig, OFFER_TAKEN);
    answer(&rig, OFFER_TAKEN);
    assert_told(&rig, "store ");
    offer_free(rig.offer);
}

TEST(what_cannot_be_added_now_is_sent_again_with_growing_pauses)
{
    struct rig rig;
    uint64_t pause = OFFER_PAUSE_MIN_MS;

    rig_begin(&rig);
    begin_asking(&rig, 2);
    for (int i = 0; i < 9; i++) {
        answer(&rig, OFFER_LATER);
        answer(&rig, OFFER_TAKEN);
        tick(&rig, pause - 1);
        assert_told(&rig, "");
        tick(&rig, 1);
        assert_told(&rig, "send a:1 ");
        pause = 2 * pause < OFFER_PAUSE_MAX_MS ? 2 * pause : OFFER_PAUSE_MAX_MS;
    }
    answer(&rig, OFFER_TAKEN);
    answer(&rig, OFFER_TAKEN);
    assert_told(&rig, "store ");
    offer_free(rig.offer);
}

TEST(a_lost_link_and_a_silent_one_are_dialled_again)
{
    struct rig rig;

    rig_begin(&rig);
    begin_asking(&rig, 1);
    offer_closed(rig.offer, rig.now);
    tick(&rig, OFFER_PAUSE_MIN_MS);
    assert_told(&rig, "dial a:1 ");
    tick(&rig, 4999);
    assert_told(&rig, "");
    tick(&rig, 1);
    assert_told(&rig, "close ");
    rig.send_fails = true;
    tick(&rig, 2 * OFFER_PAUSE_MIN_MS);
    assert_told(&rig, "dial a:1 close ");
    rig.send_fails = false;
    tick(&rig, 4 * OFFER_PAUSE_MIN_MS);
    assert_told(&rig, "dial a:1 ");
    offer_free(rig.offer);
}

TEST(a_key_that_stays_moved_is_refused_after_a_while)
{
    struct rig rig;

    rig_begin(&rig);
    begin_asking(&rig, 2);
    answer(&rig, OFFER_MOVED);
    answer(&rig, OFFER_TAKEN);
    tick(&rig, OFFER_PAUSE_MIN_MS);
    assert_told(&rig, "send a:1 ");
    answer(&rig, OFFER_MOVED);
    answer(&rig, OFFER_TAKEN);
    tick(&rig, 2000);
    assert_told(&rig, "send a:1 ");
    answer(&rig, OFFER_MOVED);
    answer(&rig, OFFER_TAKEN);
    assert_told(&rig, "refuse 0 store ");
    offer_free(rig.offer);
}
