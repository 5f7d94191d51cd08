/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEL, UNLINK, EXISTS and TOUCH of many names: some names at a time.
 */
#include "../engine/pieces_help.h"

enum { NAMES = 4500, PIECES = 5 };

static void
make_keys(struct rig *rig)
{
    char head[64];

    for (unsigned i = 0; i < NAMES; i += 2) {
        (void)snprintf(head, sizeof(head), "BF.RESERVE i%u 0.01 10", i);
        (void)call(rig, head, 0, 0);
    }
    effects_clear(rig);
}

static void
expect_number(const struct rig *rig, unsigned number)
{
    char text[24];
    int len = snprintf(text, sizeof(text), ":%u\r\n", number);

    assert_true(
        slice_equal(buf_slice(&rig->out), (struct slice){ text, (size_t)len }));
}

TEST(many_names_are_counted_a_piece_at_a_time)
{
    static const char *const words[] = { "EXISTS", "TOUCH", "UNLINK" };
    struct rig *rig = rig_new();

    make_keys(rig);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(PIECES, call(rig, words[i], 0, NAMES));
        expect_number(rig, NAMES / 2);
        assert_int_equal(1, call(rig, words[i], NAMES, 1000));
        expect_number(rig, 0);
    }
    effects_take(rig);
    assert_int_equal(PIECES, rig->effects.count); /* one for each piece */
    assert_memory_equal("0: UNLINK i0 i1 ", rig->effects.text.data, 16);
    assert_non_null(strstr(rig->effects.text.data, "\n0: UNLINK i1000 i1001 "));
    assert_int_equal(0, number(rig, "DBSIZE"));
    make_keys(rig);
    assert_int_equal(PIECES, call(rig, "DEL", 0, NAMES));
    expect_number(rig, NAMES / 2);
    rig_free(rig);
}

TEST(replay_and_transactions_run_in_one_piece)
{
    struct rig *rig = rig_new();

    make_keys(rig);
    (void)call(rig, "MULTI", 0, 0);
    (void)call(rig, "DEL", 0, NAMES);
    assert_int_equal(1, call(rig, "EXEC", 0, 0));
    assert_memory_equal("*1\r\n:2250\r\n", rig->out.data, 11);
    effects_take(rig);
    assert_int_equal(1, rig->effects.count);
    make_keys(rig);
    rig->session.obey = true;
    assert_int_equal(1, call(rig, "DEL", 0, NAMES));
    expect_number(rig, NAMES / 2);
    rig_free(rig);
}

TEST(a_refusal_between_two_pieces_is_the_reply)
{
    struct rig *rig = rig_new();
    struct command_text command;

    make_keys(rig);
    put(&command, "DEL", 0, NAMES);
    rig->out.len = 0;
    assert_int_equal(0,
                     dispatch_batch(rig->worker, &rig->session, &command.batch,
                                    0, UINT64_MAX, &rig->out));
    assert_int_equal(0, rig->out.len);
    rig->service.role.replica = true;
    assert_int_equal(1,
                     dispatch_batch(rig->worker, &rig->session, &command.batch,
                                    0, UINT64_MAX, &rig->out));
    assert_memory_equal("-READONLY", rig->out.data, 9);
    assert_null(rig->session.again);
    rig->service.role.replica = false;
    assert_int_equal(NAMES / 2 - 500, number(rig, "DBSIZE"));
    drop(&command);
    rig_free(rig);
}

TEST(without_memory_for_the_pieces_nothing_is_deleted)
{
    for (unsigned nth = 1; nth <= 2; nth++) {
        struct rig *rig = rig_new();
        struct command_text command;

        make_keys(rig);
        put(&command, "DEL", 0, NAMES);
        mem_fail_at(nth);
        assert_int_equal(1, run(rig, &command));
        assert_true(mem_fail_clear());
        assert_int_equal('-', rig->out.data[0]);
        assert_int_equal(NAMES / 2, number(rig, "DBSIZE"));
        drop(&command);
        rig_free(rig);
    }
}
