/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transactions of one session while another session writes: which commands are
 * queued, refused and executed, which changes WATCH notices, and that nothing
 * of a transaction is left behind.
 */
#include "engine/txn.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/execute.h"
#include "rig.h"

#include <time.h>

#define ABORTED                                                                \
    "-EXECABORT Transaction discarded because of previous errors.\r\n"

/* Executes commands, separated by semicolons, as another client. */
static void
other_does(struct rig *rig, const char *commands)
{
    struct session other;

    session_init(&other, true);
    batch_begin(rig);
    while (*commands != '\0') {
        size_t len = strcspn(commands, ";");
        char line[256];

        (void)snprintf(line, sizeof(line), "%.*s", (int)len, commands);
        batch_text(rig, line);
        commands += len;
        commands += strspn(commands, "; ");
    }
    rig->out.len = 0;
    assert_int_equal(rig->batch.count,
                     dispatch_batch(rig->worker, &other, &rig->batch, 0,
                                    UINT64_MAX, &rig->out));
    txn_end(&other);
    session_fini(&other);
}

/* ---- queueing and running ------------------------------------------------ */

TEST(queued_commands_run_at_exec_in_order)
{
    struct rig *rig = rig_new();

    run_and_expect(
        rig, "MULTI; BF.ADD k a; bf.exists k a; DEL k; BF.EXISTS k a; PING",
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    assert_int_equal(5, rig->session.multi_count);
    other_does(rig, "DBSIZE");
    expect_replies(rig, ":0\r\n"); /* nothing has happened yet */
    run_and_expect(rig, "EXEC", "*5\r\n:1\r\n:1\r\n:1\r\n:0\r\n+PONG\r\n");
    assert_int_equal(-1, rig->session.multi_count);
    assert_null(rig->session.txn);
    run_and_expect(rig, "MULTI; EXEC", "+OK\r\n*0\r\n");
    rig_free(rig);
}

/* The buffer with the arguments is overwritten before EXEC. */
/* Which is more than is looked up ahead at a time. */
TEST(a_long_queue_on_many_keys_runs_in_order)
{
    enum { QUEUED = 150 };
    struct rig *rig = rig_new();
    struct buf expected = { 0 };
    char line[64];

    run_text(rig, "MULTI", true);
    buf_printf(&expected, "*%d\r\n", QUEUED + 2);
    for (int i = 0; i < QUEUED; i++) {
        if (i == QUEUED / 2) {
            run_text(rig, "SELECT 1", true);
            buf_printf(&expected, "+OK\r\n");
        }
        (void)snprintf(line, sizeof(line), "BF.ADD k%d x", i % 100);
        run_text(rig, line, true);
        buf_printf(&expected, ":1\r\n");
    }
    run_text(rig, "DBSIZE", true);
    buf_printf(&expected, ":%d\r\n", QUEUED / 2);
    buf_append(&expected, "", 1);
    run_text(rig, "EXEC", true);
    expect_replies(rig, expected.data);
    buf_free(&expected);
    rig_free(rig);
}

TEST(queued_commands_own_their_arguments)
{
    struct rig *rig = rig_new();

    run_text(rig, "MULTI", true);
    run_text(rig, "BF.MADD key one two", true);
    run_text(rig, "BF.ADD xxxxxxxxxxxxxxx y", true);
    batch_begin(rig);
    batch_command(rig);
    batch_word(rig, slice_lit("BF.ADD"));
    batch_word(rig, slice_lit("")); /* an empty argument is kept */
    batch_word(rig, slice_lit("a\0b"));
    batch_run(rig);
    memset(rig->words.data, '#', rig->words.capacity);
    run_and_expect(rig, "EXEC", "*3\r\n*2\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
    run_and_expect(rig, "BF.MEXISTS key one two; EXISTS xxxxxxxxxxxxxxx",
                   "*2\r\n:1\r\n:1\r\n:1\r\n");
    rig_free(rig);
}

TEST(exec_goes_on_after_a_command_that_fails)
{
    struct rig *rig = rig_new();

    run_and_expect(rig, "MULTI; BF.ADD k a; BF.INFO missing; BF.ADD k b; EXEC",
                   "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
                   "*3\r\n:1\r\n-ERR not found\r\n:1\r\n");
    rig_free(rig);
}

TEST(a_refused_command_ends_the_transaction_at_exec)
{
    static const char *const bad[] = { "nope", "BF.ADD k", "client nope" };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        run_text(rig, "MULTI; BF.ADD k a", true);
        run_text(rig, bad[i], true);
        assert_int_equal('-', rig->out.data[0]);
        run_and_expect(rig, "BF.ADD k b; EXEC; DBSIZE",
                       "+QUEUED\r\n" ABORTED ":0\r\n");
    }
    run_and_expect(rig, "EXEC; DISCARD",
                   "-ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n");
    rig_free(rig);
}

/* As in Redis, these commands get an error and the transaction goes on. */
TEST(nested_multi_and_watch_are_errors_that_do_no_harm)
{
    struct rig *rig = rig_new();

    run_and_expect(rig, "MULTI; BF.ADD k a; MULTI; WATCH k; EXEC",
                   "+OK\r\n+QUEUED\r\n-ERR MULTI calls can not be nested\r\n"
                   "-ERR WATCH inside MULTI is not allowed\r\n*1\r\n:1\r\n");
    rig_free(rig);
}

TEST(discard_forgets_the_queue_and_the_watches)
{
    struct rig *rig = rig_new();

    run_and_expect(rig, "WATCH k; MULTI; BF.ADD k a; DISCARD; DBSIZE",
                   "+OK\r\n+OK\r\n+QUEUED\r\n+OK\r\n:0\r\n");
    assert_int_equal(0, rig->session.watch_count);
    other_does(rig, "BF.ADD k x");
    run_and_expect(rig, "MULTI; BF.ADD k a; EXEC",
                   "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    rig_free(rig);
}

TEST(reset_and_quit_are_not_queued)
{
    struct rig *rig = rig_new();

    run_and_expect(rig, "WATCH k; MULTI; BF.ADD k a; RESET; DBSIZE; EXEC",
                   "+OK\r\n+OK\r\n+QUEUED\r\n+RESET\r\n:0\r\n-ERR EXEC without "
                   "MULTI\r\n");
    assert_null(rig->session.txn);
    run_and_expect(rig, "MULTI; QUIT", "+OK\r\n+OK\r\n");
    assert_true(rig->session.closing);
    rig_free(rig);
}

TEST(select_in_a_transaction_applies_to_the_commands_after_it)
{
    struct rig *rig = rig_new();

    run_and_expect(rig, "MULTI; BF.ADD k a; SELECT 3; BF.ADD k b; DBSIZE; EXEC",
                   "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
                   "*4\r\n:1\r\n+OK\r\n:1\r\n:1\r\n");
    assert_int_equal(3, rig->session.db);
    run_and_expect(rig, "BF.EXISTS k a; BF.EXISTS k b; SELECT 0; BF.EXISTS k a",
                   ":0\r\n:1\r\n+OK\r\n:1\r\n");
    rig_free(rig);
}

/* With two threads, so that stripes are locked. A transaction with a walk or a
 * flush raises the gate: if it locked stripes instead, the walk would wait for
 * them for ever. */
TEST(transactions_with_walks_or_flushes_raise_the_gate)
{
    struct rig *rig = rig_new_threads(2);

    run_text(rig, "BF.ADD k a", true);
    run_and_expect(rig, "MULTI; BF.ADD k b; KEYS k*; DBSIZE; RANDOMKEY; EXEC",
                   "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
                   "*4\r\n:1\r\n*1\r\n$1\r\nk\r\n:1\r\n$1\r\nk\r\n");
    run_and_expect(
        rig, "WATCH k; MULTI; BF.ADD k c; FLUSHALL; BF.ADD k d; DBSIZE; EXEC",
        "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
        "*4\r\n:1\r\n+OK\r\n:1\r\n:1\r\n");
    rig_free(rig);
}

TEST(effects_of_a_transaction_stand_together)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a", true);
    effects_clear(rig);
    run_text(rig, "MULTI; BF.ADD k b; BF.EXISTS k b; DEL missing; DEL k; EXEC",
             true);
    effects_take(rig);
    assert_true(slice_equal(slice_lit("begin\n0: BF.ADD k b\n0: DEL k\nend"),
                            buf_slice(&rig->effects.text)));
    rig_free(rig);
}

/* ---- WATCH ----------------------------------------------------------------
 */

struct watch_case {
    const char *before, *watch, *between;
    bool holds;
};

static const struct watch_case watches[] = {
    { "BF.ADD k a", "WATCH k", "BF.EXISTS k a; BF.CARD k; EXISTS k", true },
    { "BF.ADD k a", "WATCH k", "BF.ADD other a; DEL other", true },
    { "BF.ADD k a", "WATCH k", "BF.ADD k b", false },
    { "BF.ADD k a", "WATCH k", "BF.MADD k b c", false },
    { "BF.ADD k a", "WATCH k", "DEL k", false },
    { "BF.ADD k a", "WATCH k", "DEL k; BF.ADD k a", false },
    { "BF.ADD k a", "WATCH k", "EXPIRE k 1000", false },
    { "BF.ADD k a; EXPIRE k 1000", "WATCH k", "PERSIST k", false },
    { "BF.ADD k a", "WATCH k", "FLUSHDB", false },
    { "BF.ADD k a", "WATCH k", "FLUSHALL", false },
    { "BF.ADD k a", "WATCH k", "SELECT 1; FLUSHDB", true },
    { "BF.ADD k a", "WATCH k", "SELECT 1; BF.ADD k b", true },
    { "", "WATCH k", "PING", true },
    { "", "WATCH k", "BF.ADD k a", false },
    { "", "WATCH k", "BF.ADD k a; DEL k", false },
    { "", "WATCH k", "FLUSHALL", true },
    { "", "WATCH a b k c", "BF.ADD c x", false },
    { "", "WATCH k k; WATCH k; UNWATCH", "BF.ADD k a", true },
    { "", "WATCH k; UNWATCH; WATCH j", "BF.ADD k a", true },
    { "", "SELECT 2; WATCH k; SELECT 0", "BF.ADD k a", true },
    { "", "SELECT 2; WATCH k; SELECT 0", "SELECT 2; BF.ADD k a", false },
    { "BF.ADD k a", "WATCH k", "SWAPDB 0 1; SWAPDB 1 0", false },
    { "BF.ADD k a", "WATCH k", "SWAPDB 0 0", true },
    { "BF.ADD k a", "WATCH k", "SWAPDB 2 1", true },
    { "BF.ADD k a", "WATCH k", "RENAME k q; RENAME q k", false },
    { "BF.ADD k a; BF.ADD q a", "WATCH k", "RENAME q k", false },
    { "BF.ADD k a; BF.ADD q a", "WATCH k", "RENAMENX q k", true },
    { "BF.ADD k a", "WATCH k", "RENAME k k", true },
    { "BF.ADD k a", "WATCH k", "MOVE k 1; SELECT 1; MOVE k 0", false },
    { "BF.ADD k a", "WATCH k", "COPY k q", true },
    { "BF.ADD q a", "WATCH k", "COPY q k", false },
    { "", "WATCH k", "BF.ADD k a; DEL k", false },
    { "", "WATCH k", "BF.ADD k a; FLUSHALL", false },
    { "", "WATCH k", "BF.ADD k a; RENAME k q", false },
    { "", "WATCH k", "BF.ADD k a; PEXPIREAT k 1", false },
    { "BF.ADD q a", "WATCH k", "DEL q", true },
};

TEST(exec_runs_only_if_the_watched_keys_did_not_change)
{
    for (size_t i = 0; i < sizeof(watches) / sizeof(watches[0]); i++) {
        const struct watch_case *c = &watches[i];
        struct rig *rig = rig_new();

        run_text(rig, c->before, true);
        run_text(rig, c->watch, true);
        other_does(rig, c->between);
        run_text(rig, "MULTI; PING; EXEC", true);
        if (!slice_equal(c->holds ? slice_lit("+OK\r\n+QUEUED\r\n*1\r\n+PONG"
                                              "\r\n")
                                  : slice_lit("+OK\r\n+QUEUED\r\n*-1\r\n"),
                         buf_slice(&rig->out))) {
            fail_msg("[%s], [%s], [%s]: [%.*s]", c->before, c->watch,
                     c->between, (int)rig->out.len, rig->out.data);
        }
        assert_int_equal(0, rig->session.watch_count);
        /* EXEC has ended the watch in both cases. */
        other_does(rig, "FLUSHALL; BF.ADD k z; BF.ADD j z");
        run_and_expect(rig, "MULTI; PING; EXEC",
                       "+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
        rig_free(rig);
    }
}

TEST(own_writes_break_a_watch_before_multi_and_not_inside)
{
    struct rig *rig = rig_new();

    run_and_expect(rig, "WATCH k; BF.ADD k a; MULTI; PING; EXEC",
                   "+OK\r\n:1\r\n+OK\r\n+QUEUED\r\n*-1\r\n");
    run_and_expect(rig, "WATCH k; MULTI; BF.ADD k b; BF.ADD k c; EXEC",
                   "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n");
    rig_free(rig);
}

/* Waits until the key has expired, at most 5 s. */
TEST(a_key_that_expired_meanwhile_has_changed)
{
    struct rig *rig = rig_new();
    int tries = 0;

    run_text(rig, "BF.ADD k a; PEXPIRE k 30; WATCH k", true);
    do {
        struct timespec pause = { 0, 1000000 };

        (void)nanosleep(&pause, NULL);
        other_does(rig, "EXISTS k");
        assert_true(++tries < 5000);
    } while (rig->out.data[1] == '1');
    run_and_expect(rig, "MULTI; PING; EXEC", "+OK\r\n+QUEUED\r\n*-1\r\n");
    /* A key that expired before WATCH is watched as a missing key. */
    run_and_expect(rig, "WATCH k; MULTI; PING; EXEC",
                   "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
    rig_free(rig);
}

/* ---- limits, memory, figures ----------------------------------------------
 */

TEST(the_queue_is_bounded)
{
    struct rig *rig = rig_new();

    rig->service.limits.multi_commands_max = 2;
    run_and_expect(
        rig, "MULTI; PING; PING; PING; PING; EXEC",
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n-ERR transaction limit reached "
        "(multi-max-commands, multi-max-bytes)"
        "\r\n-ERR transaction limit reached (multi-max-commands, "
        "multi-max-bytes)\r\n" ABORTED);
    run_and_expect(rig, "WATCH a b; WATCH c; UNWATCH; WATCH c",
                   "+OK\r\n-ERR transaction limit reached (multi-max-commands, "
                   "multi-max-bytes)\r\n+OK\r\n"
                   "+OK\r\n");
    rig->service.limits.multi_commands_max = 1000;
    rig->service.limits.multi_bytes_max = 1300;
    batch_begin(rig);
    batch_text(rig, "MULTI");
    batch_command(rig);
    batch_word(rig, slice_lit("ECHO"));
    memset(rig->words.data + 500000, 'x', 1000);
    batch_word(rig, (struct slice){ rig->words.data + 500000, 900 });
    batch_text(rig,
               "ECHO hello-hello-hello-hello-hello-hello-hello-hello-hello");
    batch_text(rig, "EXEC");
    batch_run(rig);
    expect_replies(rig, "+OK\r\n+QUEUED\r\n-ERR transaction limit reached "
                        "(multi-max-commands, multi-max-bytes)\r\n" ABORTED);
    rig_free(rig);
}

#define LIMIT_REACHED                                                          \
    "-ERR transaction limit reached (multi-max-commands, multi-max-bytes)\r\n"

TEST(the_memory_of_the_queue_counts)
{
    enum { MANY = 1000 };
    struct rig *rig = rig_new();
    uint64_t before;
    uint64_t counted;
    uint64_t taken = UINT64_MAX;

    /* Twice: memory that something else takes for the first time is not of the
     * queue. */
    for (int round = 0; round < 2; round++) {
        run_text(rig, "DISCARD; MULTI", true);
        before = mem_used();
        for (int i = 0; i < MANY; i++) {
            run_text(rig, "PING", true);
        }
        taken = mem_used() - before < taken ? mem_used() - before : taken;
    }
    counted = rig->session.multi_bytes;
    assert_in_range(counted, taken / 2, taken * 5 / 4);
    assert_true(counted > MANY * 32); /* a copy of PING, and its slice */
    rig->service.limits.multi_bytes_max = counted + 31;
    run_text(rig, "PING", true); /* 4 + 16 are rounded up to 32 */
    expect_replies(rig, LIMIT_REACHED);
    rig->service.limits.multi_bytes_max = counted + 32;
    run_text(rig, "DISCARD", true);
    assert_int_equal(0, rig->session.multi_bytes);
    rig_free(rig);
}

/* A key that is named twice is watched twice: to avoid that, WATCH would
 * compare each key with all keys watched so far. */
TEST(the_memory_of_watches_is_counted_and_freed)
{
    struct rig *rig = rig_new();
    uint64_t one;

    run_text(rig, "WATCH k", true);
    one = rig->session.multi_bytes;
    assert_true(one > 1);
    run_text(rig, "WATCH k j", true);
    assert_int_equal(3, rig->session.watch_count);
    assert_int_equal(3 * one, rig->session.multi_bytes);
    run_text(rig, "WATCH longer", true);
    assert_int_equal(4 * one + 5, rig->session.multi_bytes);
    run_text(rig, "UNWATCH", true);
    assert_int_equal(0, rig->session.multi_bytes);
    assert_int_equal(0, rig->session.watch_count);
    run_text(rig, "WATCH k; MULTI; PING", true);
    assert_true(rig->session.multi_bytes > one + 4);
    run_text(rig, "DISCARD", true);
    assert_int_equal(0, rig->session.multi_bytes);
    rig_free(rig);
}

TEST(watches_and_the_queue_share_one_limit)
{
    struct rig *rig = rig_new();
    uint64_t one;

    run_text(rig, "WATCH k", true);
    one = rig->session.multi_bytes;
    rig->service.limits.multi_bytes_max = 3 * one;
    run_and_expect(rig, "WATCH a b; WATCH c", "+OK\r\n" LIMIT_REACHED);
    assert_int_equal(3, rig->session.watch_count);
    run_and_expect(rig, "MULTI; PING; EXEC", "+OK\r\n" LIMIT_REACHED ABORTED);
    assert_int_equal(0, rig->session.multi_bytes);
    run_and_expect(rig, "WATCH a; WATCH b; UNWATCH; WATCH a b c; WATCH d",
                   "+OK\r\n+OK\r\n+OK\r\n+OK\r\n" LIMIT_REACHED);
    /* The keys that were watched before the refused WATCH stay watched. */
    other_does(rig, "BF.ADD c x");
    rig->service.limits.multi_bytes_max = 1000;
    run_and_expect(rig, "MULTI; PING; EXEC", "+OK\r\n+QUEUED\r\n*-1\r\n");
    rig_free(rig);
}

TEST(a_reply_above_the_limit_is_one_element_of_exec)
{
    struct rig *rig = rig_new();
    char line[400] = "ECHO ";

    memset(line + 5, 'x', 300);
    run_text(rig, "MULTI; BF.ADD k a", true);
    run_text(rig, line, true);
    run_text(rig, line, true);
    run_text(rig, "BF.ADD k a; PING", true);
    buf_free(&rig->out);
    rig->out.limit = 420; /* enough for one ECHO and the short replies */
    run_text(rig, "EXEC", true);
    assert_memory_equal("*5\r\n:1\r\n$300\r\nx", rig->out.data, 15);
    rig->out.len -= 14 + 302;
    memmove(rig->out.data, rig->out.data + 14 + 302, rig->out.len);
    expect_replies(rig, "-ERR the reply would exceed the hard limit of "
                        "client-output-buffer-limit\r\n:0\r\n+PONG\r\n");
    run_text(rig, "PING", true);
    expect_replies(rig, "+PONG\r\n");
    assert_null(rig->session.txn);
    rig_free(rig);
}

/* Executes EXEC as if it had begun `ago_ms` ago: sets the worker's clock back.
 */
static void
exec_begun(struct rig *rig, uint64_t ago_ms)
{
    struct reply reply = { &rig->out, 2 };
    struct slice exec = slice_lit("EXEC");
    struct request req = { .worker = rig->worker,
                           .service = &rig->service,
                           .keyspace = rig->service.keyspace };
    struct run run;

    rig->out.len = 0;
    rig->worker->reply = &reply;
    rig->worker->session = &rig->session;
    rig->worker->now_ns = clock_mono_ns() - ago_ms * 1000000;
    run = run_of(command_find(exec), 1, &exec, 1);
    execute_prepare(&req, &run, 0);
    assert_int_equal(OK, execute_locked(&req));
}

#define WALKED                                                                 \
    "-ERR this transaction has searched the keyspace for too long: use KEYS "  \
    "and SCAN outside of MULTI\r\n"

TEST(no_walk_begins_after_earlier_walks_took_too_long)
{
    struct rig *rig = rig_new_threads(2);
    uint64_t errors;

    run_text(rig, "BF.ADD k a", true);
    errors = stats_sum_error(rig->service.stats, ERR_EXEC_WALK);
    run_text(rig, "MULTI; DBSIZE; KEYS *; PING; RANDOMKEY; SCAN 0; BF.ADD k b",
             true);
    exec_begun(rig, 101);
    /* The first walk runs, since the clock is read only after each walk. */
    expect_replies(rig,
                   "*6\r\n:1\r\n" WALKED "+PONG\r\n" WALKED WALKED ":1\r\n");
    assert_int_equal(errors + 3,
                     stats_sum_error(rig->service.stats, ERR_EXEC_WALK));
    assert_null(rig->session.txn);
    run_and_expect(rig, "MULTI; KEYS *; EXEC",
                   "+OK\r\n+QUEUED\r\n*1\r\n*1\r\n$1\r\nk\r\n");
    rig_free(rig);
}

TEST(figures_of_transactions_come_and_go)
{
    struct rig *rig = rig_new();
    int64_t multi = metric_sum(METRIC_MULTI_CLIENTS);
    int64_t watching = metric_sum(METRIC_WATCHING_CLIENTS);

    run_text(rig, "WATCH a b; WATCH c; MULTI; PING", true);
    assert_int_equal(multi + 1, metric_sum(METRIC_MULTI_CLIENTS));
    assert_int_equal(watching + 1, metric_sum(METRIC_WATCHING_CLIENTS));
    assert_int_equal(3, rig->session.watch_count);
    assert_int_equal(1, rig->session.multi_count);
    assert_true(rig->session.multi_bytes > 4);
    run_text(rig, "EXEC", true);
    assert_int_equal(multi, metric_sum(METRIC_MULTI_CLIENTS));
    assert_int_equal(watching, metric_sum(METRIC_WATCHING_CLIENTS));
    assert_int_equal(0, rig->session.multi_bytes);
    run_text(rig, "WATCH a; UNWATCH; UNWATCH; WATCH b; MULTI; nope; EXEC",
             true);
    assert_int_equal(multi, metric_sum(METRIC_MULTI_CLIENTS));
    assert_int_equal(watching, metric_sum(METRIC_WATCHING_CLIENTS));
    run_text(rig, "WATCH a; MULTI; PING", true);
    rig_free(rig); /* a session that ends in a transaction */
    assert_int_equal(multi, metric_sum(METRIC_MULTI_CLIENTS));
    assert_int_equal(watching, metric_sum(METRIC_WATCHING_CLIENTS));
}

TEST(commands_that_need_memory_are_refused_when_queued_and_at_exec)
{
    static const char refused[] = "-OOM command not allowed when used memory > "
                                  "'maxmemory'.\r\n";
    struct rig *rig = rig_new();
    char expected[512];

    set_option(rig, "maxmemory", "1");
    (void)snprintf(expected, sizeof(expected), "+OK\r\n%s" ABORTED, refused);
    run_and_expect(rig, "MULTI; BF.ADD k a; EXEC", expected);
    run_and_expect(rig, "MULTI; BF.EXISTS k a; EXEC", expected);
    set_option(rig, "maxmemory", "0");
    run_text(rig, "MULTI; BF.ADD k a", true);
    set_option(rig, "maxmemory", "1");
    run_and_expect(
        rig, "EXEC",
        "-EXECABORT Transaction discarded because of: OOM command not "
        "allowed when used memory > 'maxmemory'.\r\n");
    assert_null(rig->session.txn);
    run_and_expect(rig, "DBSIZE", ":0\r\n");
    rig_free(rig);
}

TEST(a_wrong_exec_ends_the_transaction)
{
    struct rig *rig = rig_new();

    run_and_expect(
        rig, "MULTI; BF.ADD k a; EXEC now; EXEC",
        "+OK\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: "
        "wrong number of arguments for 'exec' command\r\n"
        "-ERR EXEC without MULTI\r\n");
    rig_free(rig);
}

TEST(without_memory_nothing_is_queued_and_nothing_runs)
{
    bool fired = true;
    unsigned nth = 1;

    for (; fired; nth++) {
        uint64_t used = mem_used();
        struct rig *rig = rig_new();

        assert_non_null(buf_reserve(&rig->out, 65536));
        rig->service.journal = NULL; /* it would allocate, too */
        batch_begin(rig);
        batch_text(rig, "WATCH a b");
        batch_text(rig, "MULTI");
        for (int i = 0; i < 20; i++) {
            batch_text(rig, "DEL x");
        }
        batch_text(rig, "EXEC");
        batch_text(rig, "PING");
        mem_fail_at(nth);
        batch_run(rig);
        fired = mem_fail_clear();
        assert_memory_equal("+PONG\r\n", rig->out.data + rig->out.len - 7, 7);
        if (fired != (memmem(rig->out.data, rig->out.len, "-OOM", 4) != NULL)) {
            fail_msg("allocation %u: [%.*s]", nth, (int)rig->out.len,
                     rig->out.data);
        }
        assert_true(rig->session.txn == NULL || !txn_is_open(&rig->session));
        rig_free(rig);
        assert_int_equal(used, mem_used());
        assert_true(nth < 200);
    }
    assert_true(nth > 20);
}
