/* SPDX-License-Identifier: BSD-3-Clause */
#include "replica_rig.h"

/* Lines, a snapshot, groups of all sizes. */
static void
make_conversation(struct buf *out, uint64_t groups)
{
    buf_append_slice(out, slice_lit("\n+PING\r\n+FULLRESYNC " HISTORY
                                    " 9000 77 " KEY_TEXT " 12\r\n"
                                    "$3\r\nabc+PING\r\n$9\r\n123456789"
                                    "$0\r\n"));
    for (uint64_t i = 0; i < groups; i++) {
        make_group(out, 78 + i, (size_t)(i * 37 % 300));
        if (i % 3 == 0) {
            buf_append_slice(out, slice_lit("+PING\r\n"));
        }
    }
}

static void
hear_in_two(struct rig *rig, struct slice all, size_t split)
{
    hear_bytes(rig, (struct slice){ all.data, split });
    if (rig->ends > 0 && !replica_is_connected(rig->replica)) {
        load(rig);
    }
    hear_bytes(rig, (struct slice){ all.data + split, all.len - split });
    if (rig->ends > 0 && !replica_is_connected(rig->replica)) {
        load(rig);
    }
}

TEST(it_does_not_matter_how_the_bytes_are_split)
{
    struct buf all = { 0 };

    make_conversation(&all, 6);
    for (size_t split = 1; split < all.len; split++) {
        struct rig *rig = rig_new();

        shake_hands(rig);
        hear_in_two(rig, buf_slice(&all), split);
        assert_true(replica_is_connected(rig->replica));
        assert_int_equal(6, rig->applied);
        assert_int_equal(12, rig->loaded.len);
        assert_memory_equal("abc123456789", rig->loaded.data, 12);
        rig_free(rig);
    }
    buf_free(&all);
}

TEST(byte_by_byte_is_as_good)
{
    struct buf all = { 0 };
    struct rig *rig = rig_new();

    make_conversation(&all, 20);
    shake_hands(rig);
    for (size_t i = 0; i < all.len; i++) {
        hear_bytes(rig, (struct slice){ all.data + i, 1 });
        if (rig->ends > 0 && !replica_is_connected(rig->replica)) {
            load(rig);
        }
    }
    assert_int_equal(20, rig->applied);
    buf_free(&all);
    rig_free(rig);
}

/* Flips each bit of a group and of its surroundings: no other group is ever
 * applied, and a group that is not applied is asked for again. */
TEST(a_flipped_bit_never_gets_in)
{
    struct buf all = { 0 };
    size_t first;

    make_group(&all, 42, 40);
    first = all.len;
    buf_append_slice(&all, slice_lit("+PING\r\n"));
    make_group(&all, 43, 0);
    for (size_t bit = 0; bit < 8 * all.len; bit++) {
        struct rig *rig = rig_new();
        size_t at = bit / 8;

        connect_partial(rig);
        all.data[at] = (char)(all.data[at] ^ 1 << bit % 8);
        hear_bytes(rig, buf_slice(&all));
        all.data[at] = (char)(all.data[at] ^ 1 << bit % 8);
        /* The error was found, or the reader waits for more bytes. */
        assert_int_equal(at < first ? 0 : 1, rig->applied);
        if (replica_is_connected(rig->replica)) {
            tick(rig, TIMEOUT_MS);
        } else if (!rig->linked) {
            tick(rig, 10000);
        }
        assert_true(rig->linked);
        shake_hands(rig);
        expect_psync(rig);
        rig_free(rig);
    }
    buf_free(&all);
}

TEST(a_bad_place_is_tried_again_once)
{
    struct rig *rig = rig_new();

    connect_partial(rig);
    hear_group(rig, 42, 10);
    hear(rig, "what?");
    assert_false(replica_is_connected(rig->replica));
    assert_true(rig->linked); /* at once: it had been good */
    connect_partial(rig);
    hear_group(rig, 43, 10); /* beyond it */
    hear(rig, "what?");
    follow(rig); /* another one may send better */
    connect_partial(rig);
    hear(rig, "what?");
    tick(rig, 5000);
    connect_partial(rig);
    hear(rig, "what?");
    assert_false(rig->linked);
    expect_full_psync(rig);
    rig_free(rig);
}

TEST(a_group_out_of_order_leads_to_a_full_synchronization)
{
    for (uint64_t sequence = 41; sequence <= 43; sequence += 2) {
        struct rig *rig = rig_new();

        connect_partial(rig);
        hear_group(rig, sequence, 10);
        assert_int_equal(0, rig->applied);
        assert_non_null(strstr(reason_of(rig), "follows our group 41"));
        expect_full_psync(rig);
        rig_free(rig);
    }
}

TEST(a_group_that_does_not_fit_leads_to_a_full_synchronization)
{
    struct rig *rig = rig_new();

    connect_partial(rig);
    rig->next = REPLICA_REFUSED;
    hear_group(rig, 42, 10);
    assert_string_equal("group 42 does not fit our data: no such key",
                        reason_of(rig));
    expect_full_psync(rig);
    rig_free(rig);
}

TEST(a_group_may_be_as_large_as_allowed_and_no_larger)
{
    struct rig *rig = rig_new();
    struct buf group = { 0 };
    size_t over;

    make_group(&group, 42, 0);
    over = group.len - GROUP_SEAL_BYTES + 2; /* with two more digits */
    connect_partial(rig);
    hear_group(rig, 42, 1000 - over);
    assert_int_equal(1, rig->applied);
    hear_group(rig, 43, 1001 - over);
    assert_int_equal(1, rig->applied);
    assert_false(replica_is_connected(rig->replica));
    assert_non_null(strstr(reason_of(rig), "larger"));
    buf_free(&group);
    rig_free(rig);
}

TEST(what_is_promised_takes_no_memory)
{
    struct rig *rig = rig_new();
    uint64_t before;

    rig->options.group_max = (size_t)1 << 40;
    replica_set_options(rig->replica, &rig->options);
    connect_partial(rig);
    before = mem_used();
    hear(rig, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$1000000000000\r\n");
    for (int i = 0; i < 100; i++) {
        hear(rig, "some of it");
    }
    assert_true(mem_used() - before < 4096);
    assert_true(rig->linked);
    rig_free(rig);
}

TEST(an_acknowledgement_covers_the_groups_before_the_question)
{
    struct rig *rig = rig_new();
    struct buf bytes = { 0 };

    connect_partial(rig);
    make_group(&bytes, 42, 10);
    buf_append_slice(&bytes, slice_lit("+GETACK\r\n"));
    hear_bytes(rig, buf_slice(&bytes));
    expect_ack(rig, rig->place.position);
    /* Several GETACKs in one read get one acknowledgement. */
    buf_reset(&bytes, 0);
    for (int i = 0; i < 100; i++) {
        buf_append_slice(&bytes, slice_lit("+GETACK\r\n"));
    }
    hear_bytes(rig, buf_slice(&bytes));
    expect_ack(rig, rig->place.position);
    buf_free(&bytes);
    rig_free(rig);
}

TEST(holdings_are_given_to_the_owner_where_they_stand)
{
    struct rig *rig = rig_new();
    struct buf bytes = { 0 };

    connect_partial(rig);
    make_group(&bytes, 42, 10);
    buf_append_slice(&bytes, slice_lit("+HOLDINGS 3\r\none+HOLD"));
    hear_bytes(rig, buf_slice(&bytes));
    assert_memory_equal(rig->held.data, "one", 3);
    assert_int_equal(rig->applied, 1);
    rig->refuses_holdings = true; /* a text that cannot be read */
    hear(rig, "INGS 3\r\ntwo");
    assert_int_equal(rig->closes, 1);
    assert_string_equal(reason_of(rig),
                        "the primary's output cannot be read: unexpected or "
                        "damaged holdings");
    buf_free(&bytes);
    rig_free(rig);
}

TEST(no_allocation_that_fails_does_harm)
{
    struct buf all = { 0 };
    bool fired = true;

    make_conversation(&all, 10);
    for (unsigned nth = 1; fired; nth++) {
        struct rig *rig = rig_new();
        size_t split = all.len / 2;

        buf_reserve(&rig->sent, 4096);
        buf_reserve(&rig->loaded, 4096);
        rig->loaded.len = 0;
        follow(rig);
        replica_opened(rig->replica, rig->number, rig->now_ms);
        (void)said(rig);
        buf_reserve(&rig->sent, 4096);
        hear(rig, "+BLOOMERY 1 " PRIMARY_ID " -\r\n+OK\r\n");
        mem_fail_at(nth);
        for (size_t i = 0; i < all.len && rig->linked; i += split) {
            size_t len = all.len - i < split ? all.len - i : split;
            size_t used;

            replica_bytes(rig->replica, rig->number,
                          (struct slice){ all.data + i, len }, &used,
                          rig->now_ms);
            if (rig->ends > 0 && !replica_is_connected(rig->replica)) {
                load(rig);
            }
        }
        fired = mem_fail_clear();
        assert_true(fired || rig->applied == 10);
        rig_free(rig);
    }
    buf_free(&all);
}

/* Any line at any stage. */
TEST(noise_is_survived)
{
    static const char *const words[] = {
        "+",
        "-",
        "$",
        "*",
        "#XX:",
        "\r\n",
        "\r",
        "\n",
        "0",
        "1",
        "9",
        " ",
        "+OK\r\n",
        "+PING\r\n",
        "+GETACK\r\n",
        "$0\r\n",
        "$3\r\nabc",
        "+BLOOMERY 1 " PRIMARY_ID " -\r\n",
        "-ERR\r\n",
        "+CONTINUE " HISTORY " " KEY_TEXT "\r\n",
        "+FULLRESYNC " HISTORY " 9000 77 " KEY_TEXT " 5\r\n",
        "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n",
        "*1\r\n$2\r\nab\r\n",
    };
    uint64_t seed = test_seed();
    struct rig *rig = rig_new();

    follow(rig);
    for (unsigned i = 0; i < 200000 * test_rounds(); i++) {
        char text[512];
        size_t len = 0;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
        for (uint64_t r = seed; r >> 59 > 0 && len < 300; r *= 13) {
            const char *word =
                words[(r >> 40) % (sizeof(words) / sizeof(words[0]))];

            memcpy(text + len, word, strlen(word));
            len += strlen(word);
        }
        if (!rig->linked) {
            tick(rig, 10000);
        }
        replica_opened(rig->replica, rig->number, rig->now_ms);
        if (rig->paused) {
            replica_go_on(rig->replica, rig->now_ms);
            load(rig);
            rig->place.position++;
            continue;
        }
        if (rig->linked && len > 0) {
            hear_bytes(rig, (struct slice){ text, len });
        }
        tick(rig, 10);
        buf_reset(&rig->sent, 4096);
    }
    rig_free(rig);
}
