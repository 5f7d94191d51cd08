/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of many items without a socket: those that ask work in pieces and
 * answer once, those that add are one step and one effect.
 */
#include "../engine/pieces_help.h"

enum { ITEMS = 40000, LAYERS = 300, PIECES_MIN = 3 };

/* So many layers that asking for all items takes many pieces, on any machine.
 */
static void
make_slow(struct rig *rig)
{
    (void)call(rig,
               "BF.INSERT slow CAPACITY 1 EXPANSION 1 ERROR 0.01 TIGHTENING "
               "0.999 ITEMS",
               0, LAYERS);
    assert_memory_equal("*300\r\n:1\r\n", rig->out.data, 10);
}

TEST(adding_many_items_is_one_step_and_one_effect)
{
    struct rig *rig = rig_new();
    unsigned added;

    /* The filter's pages are cleared first, in pieces. */
    (void)call(rig, "BF.INSERT k CAPACITY 100000 ITEMS", 0, ITEMS / 2);
    (void)ones(rig, ITEMS / 2);
    effects_take(rig);
    assert_int_equal(1, rig->effects.count);
    effects_clear(rig);
    assert_int_equal(1, call(rig, "BF.MADD k", 0, ITEMS));
    added = ones(rig, ITEMS);
    assert_true(added <= ITEMS / 2 && added > ITEMS / 3);
    effects_take(rig);
    assert_int_equal(1, rig->effects.count);
    assert_memory_equal("0: BF.MADD k i", rig->effects.text.data, 14);
    for (size_t i = 0; i < rig->effects.text.len; i++) {
        added -= rig->effects.text.data[i] == 'i'; /* only the new ones */
    }
    assert_int_equal(0, added);
    rig_free(rig);
}

TEST(asking_for_many_items_works_in_pieces_and_replies_once)
{
    struct rig *rig = rig_new();

    make_slow(rig);
    assert_true(call(rig, "BF.MEXISTS slow", 0, ITEMS) >= PIECES_MIN);
    assert_true(ones(rig, ITEMS) >= LAYERS);
    assert_memory_equal("*40000\r\n:1\r\n:1\r\n", rig->out.data, 16);
    assert_true(call(rig, "BF.COUNTNEW slow", 0, ITEMS) >= PIECES_MIN);
    assert_int_equal(':', rig->out.data[0]);
    (void)call(rig, "BF.MEXISTS none", 0, ITEMS);
    assert_int_equal(0, ones(rig, ITEMS));
    assert_int_equal(1, call(rig, "BF.MEXISTS slow", 0, 100));
    assert_int_equal(100, ones(rig, 100));
    rig_free(rig);
}

/* The filter goes behind the first piece: from there on nothing is found, and
 * items that were seen before still count once. */
TEST(each_piece_takes_the_key_as_it_is)
{
    struct rig *rig = rig_new();
    struct command_text command;
    unsigned yes;

    for (int repeat = 0; repeat < 2; repeat++) {
        make_slow(rig);
        put(&command, repeat == 0 ? "BF.MEXISTS slow" : "BF.COUNTNEW slow", 0,
            ITEMS);
        rig->out.len = 0;
        assert_int_equal(0, dispatch_batch(rig->worker, &rig->session,
                                           &command.batch, 0, UINT64_MAX,
                                           &rig->out));
        assert_non_null(rig->session.again);
        remove_key(rig, "slow");
        (void)run(rig, &command);
        if (repeat == 0) {
            yes = ones(rig, ITEMS);
            assert_true(yes >= 1 && yes < ITEMS / 2);
        }
        drop(&command);
    }
    buf_append(&rig->out, "", 1);
    assert_true(strtoul(rig->out.data + 1, NULL, 10) < ITEMS);
    (void)call(rig, "BF.COUNTNEW none", 0, ITEMS);
    buf_append(&rig->out, "", 1);
    assert_int_equal(ITEMS, strtoul(rig->out.data + 1, NULL, 10));
    rig_free(rig);
}

TEST(a_transaction_does_not_pause)
{
    struct rig *rig = rig_new();

    rig->service.limits.multi_bytes_max = 64 << 20;
    make_slow(rig);
    (void)call(rig, "MULTI", 0, 0);
    (void)call(rig, "BF.MEXISTS slow", 0, ITEMS);
    (void)call(rig, "BF.COUNTNEW slow", 0, ITEMS);
    (void)call(rig, "BF.MADD k", 0, ITEMS);
    effects_clear(rig);
    assert_int_equal(1, call(rig, "EXEC", 0, 0));
    effects_take(rig);
    assert_int_equal(1, rig->effects.count);
    rig_free(rig);
}

TEST(more_items_than_the_option_says_are_refused_but_not_when_repeated)
{
    static const char *const heads[] = { "BF.MADD k", "BF.INSERT k ITEMS",
                                         "BF.MEXISTS k", "BF.COUNTNEW k" };
    struct rig *rig = rig_new();

    rig->conf.bf_max_items = 1000;
    for (size_t i = 0; i < 4; i++) {
        (void)call(rig, heads[i], 0, 1001);
        assert_memory_equal("-ERR too many items in one command", rig->out.data,
                            34);
        assert_int_equal(i > 0, number(rig, "EXISTS k"));
        (void)call(rig, heads[i], 0, 1000);
        assert_int_not_equal('-', rig->out.data[0]);
    }
    rig->session.obey = true;
    (void)call(rig, "BF.MADD k", 0, ITEMS);
    (void)ones(rig, ITEMS);
    rig_free(rig);
}

/* What it worked before is none of the next command's time. */
TEST(a_command_that_is_refused_between_two_pieces_leaves_nothing)
{
    struct rig *rig = rig_new();
    struct command_text command;

    make_slow(rig);
    put(&command, "BF.MEXISTS slow", 0, ITEMS);
    rig->out.len = 0;
    assert_int_equal(0,
                     dispatch_batch(rig->worker, &rig->session, &command.batch,
                                    0, UINT64_MAX, &rig->out));
    assert_non_null(rig->session.again);
    assert_true(rig->session.worked_ns > 0);
    rig->conf.bf_max_items = 1;
    assert_int_equal(1,
                     dispatch_batch(rig->worker, &rig->session, &command.batch,
                                    0, UINT64_MAX, &rig->out));
    assert_memory_equal("-ERR too many items", rig->out.data, 19);
    assert_null(rig->session.again);
    assert_int_equal(0, rig->session.worked_ns);
    drop(&command);
    rig_free(rig);
}

TEST(an_item_that_does_not_fit_ends_the_array)
{
    static const unsigned capacities[] = { 10, 20000, ITEMS - 1000 };

    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new();
        char head[64];
        unsigned answers;
        char *end;

        (void)snprintf(head, sizeof(head),
                       "BF.INSERT k CAPACITY %u NONSCALING ITEMS",
                       capacities[i]);
        (void)call(rig, head, 0, ITEMS);
        answers = (unsigned)strtoul(rig->out.data + 1, &end, 10) - 1;
        assert_true(answers >= capacities[i] && answers < ITEMS);
        assert_memory_equal("\r\n:1\r\n", end, 6);
        assert_int_equal('-', end[2 + 4 * answers]);
        assert_int_equal(capacities[i], number(rig, "BF.CARD k"));
        rig_free(rig);
    }
}

TEST(without_memory_it_is_an_error_and_nothing_leaks)
{
    static const char *const heads[] = { "BF.MADD slow", "BF.MEXISTS slow",
                                         "BF.COUNTNEW slow" };

    for (size_t i = 0; i < 3; i++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct rig *rig = rig_new();
            struct command_text command;

            make_slow(rig);
            put(&command, heads[i], 0, i == 0 ? 500 : ITEMS / 4);
            mem_fail_at(nth);
            (void)run(rig, &command);
            fired = mem_fail_clear();
            assert_true(fired || rig->out.data[0] != '-');
            drop(&command);
            rig_free(rig);
        }
    }
}

TEST(a_keyed_filter_needs_a_secret)
{
    static const char refusal[] =
        "-ERR this server has no secret for keyed filters (hash-secret-file)";
    struct rig *rig = rig_new();

    (void)call(rig, "BF.INSERT keyed HASH keyed ITEMS", 0, 1);
    assert_memory_equal(refusal, rig->out.data, sizeof(refusal) - 1);
    rig_free(rig);
}
