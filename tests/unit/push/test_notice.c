/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notices arrive in order and once, and their loss is always reported.
 */
#include "push/notice.h"

#include "../net/rig.h"

static const struct slice nothing = { NULL, 0 };

/* The notices of a loop: the first byte of each payload, and X for a loss. */
struct ear {
    char heard[4096];
    size_t count;
    uint64_t last_to, last_hold;
    unsigned work_us; /* per notice */
    unsigned pieces;  /* that come before the next one is delivered */
};

static bool
hear(void *ctx, const struct notice *notice, uint64_t to, uint64_t turn_ends_ns)
{
    struct ear *ear = ctx;
    uint64_t until_ns = clock_mono_ns() + ear->work_us * 1000ULL;

    assert_true(turn_ends_ns > 0);
    if (ear->pieces > 0) {
        ear->pieces--;
        return false;
    }
    ear->heard[ear->count++] = notice->payload.data[0];
    ear->last_to = to;
    ear->last_hold = notice->hold_until;
    while (clock_mono_ns() < until_ns) {
    }
    return true;
}

static void
lose(void *ctx)
{
    struct ear *ear = ctx;

    ear->heard[ear->count++] = 'X';
}

struct post {
    struct rig *rig;
    struct inboxes *inboxes;
    _Atomic uint64_t limit;
    struct ear ear;
    struct notice_list list;
    uint64_t used;
};

/* Three inboxes, of which number 1 has a real loop. */
static struct post *
post_new(void)
{
    uint64_t used = mem_used();
    struct post *post = mem_zalloc(sizeof(*post));
    const struct inbox_reader reader = { .deliver = hear,
                                         .lost = lose,
                                         .ctx = &post->ear };

    post->used = used;
    post->rig = rig_new();
    post->limit = 1 << 20;
    post->inboxes = inboxes_new(3, &post->limit);
    for (unsigned i = 0; i < 3; i++) {
        inboxes_attach(post->inboxes, i, &post->rig->loop.mailbox, &reader);
    }
    inboxes_attach(post->inboxes, 1, &post->rig->loop.mailbox, &reader);
    return post;
}

static void
post_free(struct post *post)
{
    uint64_t used = post->used;

    rig_settle(post->rig);
    notice_list_fini(&post->list);
    inboxes_free(post->inboxes);
    rig_free(post->rig);
    mem_free(post);
    assert_int_equal(used, mem_used());
}

static void
add(struct post *post, const char *payload, unsigned loop, uint64_t to)
{
    struct notice *notice =
        notice_new(NOTICE_MESSAGE, 3, slice_lit("channel"), slice_of(payload));

    notice_list_add(&post->list, notice, loop, to);
    notice_unref(notice);
}

static void
send_all(struct post *post, uint64_t hold_until)
{
    notice_list_close(&post->list, post->inboxes, hold_until);
    notice_list_wake(&post->list, post->inboxes);
}

static void
expect_heard(struct post *post, const char *expected)
{
    rig_until(post->rig, post->ear.count >= strlen(expected));
    rig_settle(post->rig);
    assert_int_equal(strlen(expected), post->ear.count);
    assert_memory_equal(expected, post->ear.heard, post->ear.count);
}

TEST(a_notice_copies_its_channel_and_payload)
{
    uint64_t used = mem_used();
    char channel[] = "abc", payload[] = "defg";
    struct notice *notice = notice_new(NOTICE_SHARD_MESSAGE, 9,
                                       slice_of(channel), slice_of(payload));

    channel[0] = payload[0] = 'x';
    assert_int_equal(NOTICE_SHARD_MESSAGE, notice->kind);
    assert_int_equal(9, notice->from);
    assert_true(slice_equal(notice->channel, slice_lit("abc")));
    assert_true(slice_equal(notice->payload, slice_lit("defg")));
    assert_ptr_equal(notice, notice_ref(notice));
    notice_unref(notice);
    assert_true(mem_used() > used);
    notice_unref(notice);
    assert_int_equal(used, mem_used());
    mem_fail_at(1);
    assert_null(notice_new(NOTICE_MESSAGE, 0, nothing, nothing));
    assert_true(mem_fail_clear());
}

TEST(notices_arrive_in_order_and_only_where_they_are_sent)
{
    struct post *post = post_new();

    add(post, "a", 1, 5);
    add(post, "-", 0, 0);
    add(post, "b", 1, 6);
    notice_list_close(&post->list, post->inboxes, 77);
    assert_int_equal(0, post->list.count);
    add(post, "c", 1, 7);
    send_all(post, 78);
    expect_heard(post, "abc");
    assert_int_equal(7, post->ear.last_to);
    assert_int_equal(78, post->ear.last_hold);
    add(post, "d", 1, 0);
    send_all(post, 79);
    expect_heard(post, "abcd");
    post_free(post); /* frees what loop 0 never delivered */
}

TEST(a_notice_that_takes_pieces_comes_before_the_next)
{
    struct post *post = post_new();

    post->ear.pieces = 5;
    add(post, "a", 1, 0);
    add(post, "b", 1, 0);
    send_all(post, 0);
    rig_until(post->rig, post->ear.count == 2);
    expect_heard(post, "ab");
    assert_int_equal(0, post->ear.pieces);
    post_free(post);
}

TEST(nothing_arrives_before_the_list_is_closed)
{
    struct post *post = post_new();

    add(post, "a", 1, 0);
    notice_list_wake(&post->list, post->inboxes);
    mailbox_poke(&post->rig->loop.mailbox);
    rig_settle(post->rig);
    expect_heard(post, "");
    send_all(post, 0);
    expect_heard(post, "a");
    post_free(post);
}

TEST(a_full_inbox_reports_a_loss)
{
    struct post *post = post_new();
    int64_t lost = metric_sum(METRIC_NOTICES_LOST);

    post->limit = 600;
    for (unsigned i = 0; i < 20; i++) {
        add(post, "a", 1, 0);
    }
    send_all(post, 0);
    assert_true(metric_sum(METRIC_NOTICES_LOST) > lost);
    expect_heard(post, "X");
    add(post, "b", 1, 0); /* and then it goes on */
    send_all(post, 0);
    expect_heard(post, "Xb");
    post_free(post);
}

TEST(a_notice_above_the_limit_is_accepted_by_an_inbox_below_it)
{
    struct post *post = post_new();
    static char payload[10000];

    payload[0] = 'l';
    memset(payload + 1, 'o', sizeof(payload) - 2);
    post->limit = 600;
    add(post, "a", 1, 0);
    add(post, payload, 1, 0);
    send_all(post, 0);
    expect_heard(post, "al");
    add(post, payload, 1, 0);
    add(post, "b", 1, 0); /* the inbox is full */
    send_all(post, 0);
    expect_heard(post, "alX");
    post_free(post);
}

TEST(a_half_full_inbox_is_crowded_until_it_is_down_to_a_quarter)
{
    struct post *post = post_new();
    unsigned turns = 0;

    assert_false(inboxes_are_crowded(NULL));
    post->limit = 32 << 10;
    post->ear.work_us = 100;
    while (!inboxes_are_crowded(post->inboxes)) {
        add(post, "a", 1, 0);
        send_all(post, 0);
        turns++;
    }
    assert_in_range(turns, 60, 200); /* of some 100 bytes each */
    while (inboxes_are_crowded(post->inboxes)) {
        rig_turn(post->rig);
    }
    assert_in_range(post->ear.count, turns / 2, turns * 3 / 4 + 20);
    rig_until(post->rig, post->ear.count == turns);
    for (unsigned i = 0; i < 2 * turns; i++) {
        add(post, "a", 2, 0);
        add(post, "a", 1, 0);
    }
    notice_list_add(&post->list, NULL, 1, 0);
    notice_list_close(&post->list, post->inboxes, 0);
    assert_true(inboxes_are_crowded(post->inboxes)); /* loop 2 is */
    post_free(post);
}

TEST(a_loss_ends_the_crowd)
{
    struct post *post = post_new();

    post->limit = 10000;
    for (unsigned i = 0; i < 200; i++) {
        add(post, "a", 1, 0);
    }
    notice_list_close(&post->list, post->inboxes, 0);
    assert_true(inboxes_are_crowded(post->inboxes));
    notice_list_wake(&post->list, post->inboxes);
    expect_heard(post, "X");
    assert_false(inboxes_are_crowded(post->inboxes));
    post_free(post);
}

TEST(room_comes_back_with_delivery)
{
    struct post *post = post_new();
    struct buf expected = { 0 };

    post->limit = 600;
    for (unsigned i = 0; i < 200; i++) {
        add(post, "a", 1, 0);
        add(post, "b", 1, 0);
        send_all(post, 0);
        buf_append(&expected, "ab", 2);
        rig_until(post->rig, post->ear.count == expected.len);
    }
    buf_append(&expected, "", 1);
    expect_heard(post, expected.data);
    buf_free(&expected);
    post_free(post);
}

TEST(one_that_could_not_be_made_is_a_loss_too)
{
    struct post *post = post_new();

    add(post, "a", 1, 0);
    notice_list_add(&post->list, NULL, 1, 0);
    notice_list_add(&post->list, NULL, 2, 0);
    send_all(post, 0);
    expect_heard(post, "X");
    post_free(post);
}

TEST(without_memory_for_a_place_it_is_a_loss)
{
    for (unsigned nth = 2; nth <= 3; nth++) {
        struct post *post = post_new();

        mem_fail_at(nth); /* the first is the notice itself */
        add(post, "a", 1, 0);
        send_all(post, 0);
        assert_true(mem_fail_clear());
        expect_heard(post, "X");
        post_free(post);
    }
}

TEST(a_long_queue_leaves_others_their_turn)
{
    enum { COUNT = 200 };
    struct post *post = post_new();
    unsigned turns = 0;

    post->ear.work_us = 100;
    for (unsigned i = 0; i < COUNT; i++) {
        add(post, i % 2 == 0 ? "a" : "b", 1, 0);
    }
    send_all(post, 0);
    add(post, "z", 1, 0);
    send_all(post, 0);
    while (post->ear.count < COUNT + 1) {
        size_t before = post->ear.count;

        rig_turn(post->rig);
        assert_in_range(post->ear.count - before, 0, 60); /* 2 ms */
        turns++;
        assert_true(turns < 10000);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(i % 2 == 0 ? 'a' : 'b', post->ear.heard[i]);
    }
    assert_int_equal('z', post->ear.heard[COUNT]);
    post_free(post);
}

/* Sends 60 notices that take more than one turn, and waits for the first. */
static void
begin_turn(struct post *post, unsigned work_us)
{
    post->ear.work_us = work_us;
    for (unsigned i = 0; i < 60; i++) {
        add(post, "a", 1, 0);
    }
    send_all(post, 0);
    rig_until(post->rig, post->ear.count > 0);
    assert_true(post->ear.count < 60);
}

/* Its poke merges with the one for the rest of the turn. */
TEST(a_notice_sent_during_an_unfinished_turn_is_delivered)
{
    struct post *post = post_new();

    begin_turn(post, 100);
    add(post, "z", 1, 0);
    send_all(post, 0);
    rig_until(post->rig, post->ear.count == 61);
    assert_int_equal('z', post->ear.heard[60]);
    post_free(post);
}

TEST(a_loss_also_drops_the_rest_of_a_turn)
{
    struct post *post = post_new();

    begin_turn(post, 500);
    notice_list_add(&post->list, NULL, 1, 0);
    send_all(post, 0);
    rig_settle(post->rig);
    assert_int_equal('X', post->ear.heard[post->ear.count - 1]);
    assert_true(post->ear.count < 60);
    post_free(post);
}
