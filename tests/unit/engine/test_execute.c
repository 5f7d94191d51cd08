/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Error replies and what is counted.
 */
#include "engine/execute.h"

#include "base/metrics.h"
#include "dispatch_help.h"
#include "rig.h"

#define OVER                                                                   \
    "-ERR the reply would exceed the hard limit of "                           \
    "client-output-buffer-limit\r\n"

static struct stats_sum
sum_of(struct rig *rig, enum command_id id)
{
    return stats_sum_command(rig->service.stats, id);
}

TEST(errors_have_the_texts_of_redis)
{
    struct rig *rig = rig_new();

    run_text(rig, "nope a b", true);
    expect_replies(rig,
                   "-ERR unknown command 'nope', with args beginning with: "
                   "'a' 'b' \r\n");
    run_text(rig, "client nope", true);
    expect_replies(rig, "-ERR unknown subcommand 'nope'. Try CLIENT HELP.\r\n");
    run_text(rig, "bf.add k", true);
    expect_replies(rig,
                   "-ERR wrong number of arguments for 'BF.ADD' command\r\n");
    run_text(rig, "Client Id x", true);
    expect_replies(
        rig, "-ERR wrong number of arguments for 'client|id' command\r\n");
    rig_free(rig);
}

TEST(client_bytes_cannot_end_the_line_of_an_error)
{
    struct rig *rig = rig_new();

    batch_begin(rig);
    batch_command(rig);
    batch_word(rig, slice_lit("a\r\n+OK"));
    batch_word(rig, slice_lit("b\nc"));
    batch_run(rig);
    expect_replies(rig,
                   "-ERR unknown command 'a  +OK', with args beginning with: "
                   "'b c' \r\n");
    rig_free(rig);
}

/* What a handler wrote before it found no room is dropped, and the replies
 * before it stay. */
TEST(a_reply_without_room_becomes_an_error)
{
    struct rig *rig = rig_new();
    char line[400] = "ECHO ";

    memset(line + 5, 'x', 300);
    for (int fails = 1; fails >= 0; fails--) {
        buf_free(&rig->out);
        assert_non_null(buf_reserve(&rig->out, 100));
        batch_begin(rig);
        batch_text(rig, "PING");
        batch_text(rig, line); /* its header fits, the rest does not */
        batch_text(rig, "PING");
        mem_fail_at(fails == 1 ? 1 : 0);
        assert_int_equal(3,
                         dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                        0, UINT64_MAX, &rig->out));
        assert_int_equal(fails == 1, mem_fail_clear());
        assert_false(rig->out.failed);
        if (fails == 1) {
            expect_replies(
                rig, "+PONG\r\n-OOM not enough memory for this request\r\n"
                     "+PONG\r\n");
        } else {
            assert_int_equal(7 + 6 + 302 + 7, rig->out.len);
        }
    }
    rig_free(rig);
}

TEST(calls_failures_and_refusals_are_counted)
{
    struct rig *rig = rig_new();
    int64_t commands = metric_sum(METRIC_COMMANDS);
    int64_t errors = metric_sum(METRIC_ERROR_REPLIES);

    run_text(rig,
             "BF.ADD k a; BF.ADD k b; BF.EXISTS k a; bf.add other c; PING; "
             "BF.ADD k; nope; BF.INFO missing; BF.CARD k; BF.EXISTS k a",
             true);
    assert_int_equal(3, sum_of(rig, CMD_ID_BF_ADD).calls);
    assert_int_equal(1, sum_of(rig, CMD_ID_BF_ADD).rejected);
    assert_int_equal(0, sum_of(rig, CMD_ID_BF_ADD).failed);
    assert_int_equal(2, sum_of(rig, CMD_ID_BF_EXISTS).calls);
    assert_int_equal(1, sum_of(rig, CMD_ID_PING).calls);
    assert_int_equal(1, sum_of(rig, CMD_ID_BF_INFO).calls);
    assert_int_equal(1, sum_of(rig, CMD_ID_BF_INFO).failed);
    assert_true(sum_of(rig, CMD_ID_BF_ADD).ns > 0);
    assert_int_equal(1, stats_sum_error(rig->service.stats, ERR_ARITY));
    assert_int_equal(1,
                     stats_sum_error(rig->service.stats, ERR_UNKNOWN_COMMAND));
    assert_int_equal(1, stats_sum_error(rig->service.stats, ERR_BF_NOT_FOUND));
    assert_int_equal(8, metric_sum(METRIC_COMMANDS) - commands);
    assert_int_equal(3, metric_sum(METRIC_ERROR_REPLIES) - errors);
    assert_int_equal(CMD_ID_BF_EXISTS + 1, rig->session.last_command);
    rig_free(rig);
}

TEST(commands_of_a_transaction_are_counted_when_they_run)
{
    struct rig *rig = rig_new();

    run_text(rig, "MULTI; BF.ADD k a; BF.ADD k b", true);
    assert_int_equal(0, sum_of(rig, CMD_ID_BF_ADD).calls);
    run_text(rig, "EXEC", true);
    assert_int_equal(2, sum_of(rig, CMD_ID_BF_ADD).calls);
    assert_int_equal(1, sum_of(rig, CMD_ID_EXEC).calls);
    assert_int_equal(1, sum_of(rig, CMD_ID_MULTI).calls);
    rig_free(rig);
}

TEST(a_reply_above_the_limit_becomes_an_error)
{
    struct rig *rig = rig_new();
    char line[1100] = "ECHO ";

    memset(line + 5, 'x', 1000);
    rig->out.limit = 1500; /* of the replies that wait together */
    batch_begin(rig);
    batch_text(rig, "PING");
    batch_text(rig, line);
    batch_text(rig, line);
    batch_text(rig, "DBSIZE");
    batch_run(rig);
    assert_int_equal(7 + 1009 + sizeof(OVER) - 1 + 4, rig->out.len);
    assert_memory_equal("+PONG\r\n$1000\r\nx", rig->out.data, 15);
    assert_memory_equal("x\r\n" OVER ":0\r\n", rig->out.data + 7 + 1006,
                        3 + sizeof(OVER) - 1 + 4);
    assert_false(rig->out.over);
    assert_int_equal(1500, rig->out.limit);
    assert_int_equal(1, stats_sum_error(rig->service.stats, ERR_REPLY_LIMIT));
    /* What was sent makes room again. */
    batch_run(rig);
    assert_int_equal(7 + 1009 + sizeof(OVER) - 1 + 4, rig->out.len);
    /* The error has its place even if that exceeds the limit. */
    buf_free(&rig->out);
    rig->out.limit = 20;
    batch_begin(rig);
    batch_text(rig, "PING");
    batch_text(rig, line);
    batch_run(rig);
    expect_replies(rig, "+PONG\r\n" OVER);
    rig_free(rig);
}
