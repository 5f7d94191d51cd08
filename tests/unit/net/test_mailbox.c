/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls arrive on the owner's thread, each once, in the order of their poster,
 * and never more than the box may hold.
 */
#include "net/mailbox.h"

#include "rig.h"

struct inbox {
    uint64_t count;   /* calls that came */
    uint64_t next[4]; /* the number expected from each poster */
    bool in_order;
    struct loop *loop;
};

static void
take_number(struct loop *loop, void *ptr, uint64_t number)
{
    struct inbox *inbox = ptr;
    unsigned poster = (unsigned)(number >> 32);

    inbox->in_order = inbox->in_order && loop == inbox->loop &&
                      inbox->next[poster] == (number & UINT32_MAX);
    inbox->next[poster]++;
    inbox->count++;
}

static struct inbox
inbox_of(struct rig *rig)
{
    return (struct inbox){ .in_order = true, .loop = &rig->loop };
}

TEST(calls_come_in_order_and_once)
{
    struct rig *rig = rig_new();
    struct inbox inbox = inbox_of(rig);

    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(mailbox_post(&rig->loop.mailbox, take_number, &inbox, i));
        if (i % 300 == 0) {
            rig_settle(rig);
        }
    }
    assert_true(inbox.count < 1000); /* not before the loop turns */
    rig_until(rig, inbox.count == 1000);
    rig_settle(rig);
    assert_int_equal(1000, inbox.count);
    assert_true(inbox.in_order);
    rig_free(rig);
}

TEST(a_full_box_refuses_and_is_usable_again_when_drained)
{
    struct rig *rig = rig_new();
    struct inbox inbox = inbox_of(rig);

    for (int round = 0; round < 3; round++) {
        inbox = inbox_of(rig);
        for (uint64_t i = 0; i < MAILBOX_MAX; i++) {
            assert_true(
                mailbox_post(&rig->loop.mailbox, take_number, &inbox, i));
        }
        assert_false(mailbox_post(&rig->loop.mailbox, take_number, &inbox, 0));
        rig_until(rig, inbox.count == MAILBOX_MAX);
        rig_settle(rig);
        assert_int_equal(MAILBOX_MAX, inbox.count);
        assert_true(inbox.in_order);
    }
    rig_free(rig);
}

TEST(a_call_that_finds_no_memory_is_refused_and_the_others_come)
{
    struct rig *rig = rig_new();
    struct inbox inbox = inbox_of(rig);
    uint64_t posted = 0;
    bool fired = true;

    for (unsigned nth = 1; fired && nth < 100; nth++) {
        mem_fail_at(nth);
        for (int i = 0; i < 200; i++) {
            posted +=
                mailbox_post(&rig->loop.mailbox, take_number, &inbox, posted);
        }
        fired = mem_fail_clear();
        rig_until(rig, inbox.count == posted);
        assert_true(inbox.in_order);
    }
    assert_false(fired);
    rig_free(rig);
}

struct relay {
    struct inbox inbox;
    struct rig *rig;
    uint64_t left;
};

static void
post_again(struct loop *loop, void *ptr, uint64_t number)
{
    struct relay *relay = ptr;

    take_number(loop, &relay->inbox, number);
    if (relay->left > 0) {
        relay->left--;
        assert_true(
            mailbox_post(&loop->mailbox, post_again, relay, number + 1));
    }
}

TEST(a_call_may_post_to_its_own_box)
{
    struct rig *rig = rig_new();
    struct relay relay = { inbox_of(rig), rig, 500 };

    assert_true(mailbox_post(&rig->loop.mailbox, post_again, &relay, 0));
    rig_until(rig, relay.inbox.count == 501);
    assert_true(relay.inbox.in_order);
    rig_free(rig);
}

enum { POSTERS = 3, POSTS = 20000 };

struct poster {
    struct rig *rig;
    struct inbox *inbox;
    uint64_t number;
};

static void
post_many(void *arg)
{
    struct poster *poster = arg;

    for (uint64_t i = 0; i < POSTS;) {
        i += mailbox_post(&poster->rig->loop.mailbox, take_number,
                          poster->inbox, poster->number << 32 | i);
    }
    metric_thread_exit();
}

TEST(posters_on_other_threads_lose_nothing)
{
    struct rig *rig = rig_new();
    struct inbox inbox = inbox_of(rig);
    struct poster poster[POSTERS];
    uv_thread_t thread[POSTERS];

    for (uint64_t i = 0; i < POSTERS; i++) {
        poster[i] = (struct poster){ rig, &inbox, i };
        assert_int_equal(0,
                         uv_thread_create(&thread[i], post_many, &poster[i]));
    }
    rig_until(rig, inbox.count == (uint64_t)POSTERS * POSTS);
    for (int i = 0; i < POSTERS; i++) {
        assert_int_equal(0, uv_thread_join(&thread[i]));
    }
    rig_settle(rig);
    assert_int_equal((uint64_t)POSTERS * POSTS, inbox.count);
    assert_true(inbox.in_order);
    rig_free(rig);
}

static void
drop_it(void *ptr)
{
    unsigned *dropped = ptr;

    (*dropped)++;
}

static void
take_it(struct loop *loop, void *ptr, uint64_t number)
{
    unsigned *dropped = ptr;

    (void)loop;
    (void)number;
    *dropped += 100;
}

TEST(what_a_mail_owns_is_dropped_if_the_loop_stops_before)
{
    struct rig *rig = rig_new();
    unsigned dropped[2] = { 0, 0 };

    assert_true(mailbox_give(&rig->loop.mailbox, take_it, drop_it, dropped));
    rig_until(rig, dropped[0] == 100);
    loop_stop_here(&rig->loop);
    assert_true(
        mailbox_give(&rig->loop.mailbox, take_it, drop_it, &dropped[1]));
    rig_free(rig);
    assert_int_equal(100, dropped[0]);
    assert_int_equal(1, dropped[1]);
}
