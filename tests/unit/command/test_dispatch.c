/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Batches against the same commands one by one: whatever runs they fall into,
 * the replies and what is stored are the same. Then refusals and statistics,
 * handlers that pause, and each allocation failing in turn: one reply a
 * command, an -OOM at worst, and accounts that still agree.
 */
#include "command/dispatch.h"

#include "base/hash.h"
#include "base/metrics.h"
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>

static uint64_t
next_random(uint64_t *random)
{
    uint64_t x = *random += 0x9e3779b97f4a7c15;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static unsigned
below(uint64_t *random, unsigned n)
{
    return (unsigned)(next_random(random) % n);
}

static void
expect(struct rig *rig, const char *text)
{
    if (!slice_equal(slice_of(text), buf_slice(&rig->out))) {
        fail_msg("got [%.*s] and not [%s]", (int)rig->out.len,
                 rig->out.len > 0 ? rig->out.data : "", text);
    }
}

/* ---- names in chosen stripes
 * -----------------------------------------------*/

enum { KEYS = 6, NAME_MAX_BYTES = 16 };

static char names[KEYS][NAME_MAX_BYTES];

/* Three names in one stripe, two in another, and one in a third, so that runs
 * hold several keys and break between others. */
static void
choose_names(void)
{
    unsigned stripe[KEYS] = { 0 };
    int found = 0;

    for (unsigned i = 0; found < KEYS; i++) {
        char name[NAME_MAX_BYTES];
        int len = snprintf(name, sizeof(name), "k%u", i);
        unsigned s =
            keyspace_stripe_of(hash_name((struct slice){ name, (size_t)len }));
        bool fits = found == 0 || (found < 3 && s == stripe[0]) ||
                    (found == 3 && s != stripe[0]) ||
                    (found == 4 && s == stripe[3]) ||
                    (found == 5 && s != stripe[0] && s != stripe[3]);

        if (fits) {
            memcpy(names[found], name, sizeof(name));
            stripe[found++] = s;
        }
    }
}

/* ---- batches against one by one
 * --------------------------------------------*/

enum { LINE_MAX_BYTES = 128, ITEMS = 300, BATCHES = 150 };

struct script {
    char line[BATCH_COMMANDS_MAX][LINE_MAX_BYTES];
    bool queues[BATCH_COMMANDS_MAX]; /* MULTI would take it */
    unsigned count;
};

static void
random_line(uint64_t *random, char *ret_line, bool *ret_queues)
{
    const char *key = names[below(random, KEYS)];
    unsigned a = below(random, ITEMS);
    unsigned b = below(random, ITEMS);
    unsigned choice = below(random, 100);
    const char *format = "BF.ADD %s i%u";

    *ret_queues = true;
    if (choice >= 92) {
        static const char *const rare[] = {
            "DEL %s",
            "SELECT 0",
            "SELECT 1",
            "PING",
            "BF.INFO %s",
            "DBSIZE",
            "BF.INFO %s Bad",
            "EXISTS %s",
            "EXPIRE %s 1000",
            "PERSIST %s",
            "GET %s",
            "BF.ADD %s",
            "BF.EXISTS %s a b",
            "client nope",
            "BF.RESERVE %s 0.01 5 NONSCALING",
        };
        unsigned which = below(random, sizeof(rare) / sizeof(rare[0]));

        format = rare[which];
        *ret_queues = which < 10 || which > 13;
    } else if (choice >= 88) {
        format = "BF.MADD %s i%u i%u";
    } else if (choice >= 84) {
        format = "BF.MEXISTS %s i%u i%u";
    } else if (choice >= 82) {
        format = "BF.CARD %s";
    } else if (choice >= 75) {
        format = choice % 2 == 0 ? "bf.add %s i%u" : "bf.exists %s i%u";
    } else if (choice >= 40) {
        format = "BF.EXISTS %s i%u";
    }
    /* The formats take at most these three, from the table above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
    (void)snprintf(ret_line, LINE_MAX_BYTES, format, key, a, b);
#pragma GCC diagnostic pop
}

static void
random_script(uint64_t *random, struct script *script)
{
    script->count = 1 + below(random, BATCH_COMMANDS_MAX);
    for (unsigned i = 0; i < script->count; i++) {
        random_line(random, script->line[i], &script->queues[i]);
        /* Stretches of equal names are what pipelines look like. */
        if (i > 0 && below(random, 3) == 0) {
            memcpy(script->line[i], script->line[i - 1], LINE_MAX_BYTES);
            script->queues[i] = script->queues[i - 1];
        }
    }
}

static void
run_together(struct rig *rig, const struct script *script)
{
    batch_begin(rig);
    for (unsigned i = 0; i < script->count; i++) {
        batch_text(rig, script->line[i]);
    }
    batch_run(rig);
}

static void
run_line(struct rig *rig, const char *line)
{
    batch_begin(rig);
    batch_text(rig, line);
    batch_run(rig);
}

/* In a transaction of its own, if it may be in one: the handlers run without
 * the preparation that runs give them. The reply is cut out of EXEC's. */
static void
run_queued(struct rig *rig, const char *line, bool queues)
{
    static const char around[] = "+OK\r\n+QUEUED\r\n*1\r\n";

    if (!queues) {
        run_line(rig, line);
        return;
    }
    batch_begin(rig);
    batch_text(rig, "MULTI");
    batch_text(rig, line);
    batch_text(rig, "EXEC");
    batch_run(rig);
    assert_true(rig->out.len > strlen(around));
    assert_memory_equal(around, rig->out.data, strlen(around));
    buf_consume(&rig->out, strlen(around));
}

/* All that can be asked about all keys, as text. */
static void
describe(struct rig *rig, struct buf *ret_text)
{
    char items[ITEMS * 6] = "";
    size_t len = 0;

    for (unsigned i = 0; i < ITEMS; i++) {
        len += (size_t)snprintf(items + len, sizeof(items) - len, " i%u", i);
    }
    for (uint32_t db = 0; db < 2; db++) {
        rig->session.db = db;
        for (int k = 0; k < KEYS; k++) {
            char line[sizeof(items) + 64];

            batch_begin(rig);
            (void)snprintf(line, sizeof(line), "BF.MEXISTS %s%s", names[k],
                           items);
            batch_text(rig, line);
            (void)snprintf(line, sizeof(line), "BF.INFO %s", names[k]);
            batch_text(rig, line);
            batch_run(rig);
            buf_append_slice(ret_text, buf_slice(&rig->out));
        }
    }
    assert_false(ret_text->failed);
}

static void
expect_same(struct rig *a, struct rig *b)
{
    struct buf of_a = { 0 };
    struct buf of_b = { 0 };
    uint32_t db_a = a->session.db;
    uint32_t db_b = b->session.db;

    describe(a, &of_a);
    describe(b, &of_b);
    if (!slice_equal(buf_slice(&of_a), buf_slice(&of_b))) {
        fail_msg("stored differently:\n%.*s\nand\n%.*s", (int)of_a.len,
                 of_a.data, (int)of_b.len, of_b.data);
    }
    a->session.db = db_a;
    b->session.db = db_b;
    buf_free(&of_a);
    buf_free(&of_b);
}

static void
expect_reply(const struct script *script, unsigned at, struct slice all,
             size_t *ret_place, struct slice one, const char *how)
{
    struct slice rest = { all.data + *ret_place, all.len - *ret_place };

    if (rest.len < one.len || memcmp(rest.data, one.data, one.len) != 0) {
        fail_msg("command %u of %u, [%s], %s: [%.*s], in a batch: [%.*s]", at,
                 script->count, script->line[at], how, (int)one.len, one.data,
                 (int)(rest.len < 200 ? rest.len : 200), rest.data);
    }
}

TEST(batches_reply_and_store_as_commands_one_by_one_do)
{
    uint64_t random = test_seed();
    struct rig *together = rig_new();
    struct rig *single = rig_new();
    struct rig *queued = rig_new();
    struct rig *all[] = { together, single, queued };
    static struct script script;

    choose_names();
    for (int i = 0; i < 3; i++) {
        set_option(all[i], "bf.bloom-capacity", "20");
    }
    for (unsigned round = 0; round < BATCHES * test_rounds(); round++) {
        size_t place = 0;

        random_script(&random, &script);
        run_together(together, &script);
        for (unsigned i = 0; i < script.count; i++) {
            run_line(single, script.line[i]);
            run_queued(queued, script.line[i], script.queues[i]);
            expect_reply(&script, i, buf_slice(&together->out), &place,
                         buf_slice(&single->out), "one by one");
            expect_reply(&script, i, buf_slice(&together->out), &place,
                         buf_slice(&queued->out), "in EXEC");
            place += single->out.len;
        }
        assert_int_equal(together->out.len, place);
        if (round % 25 == 0) {
            expect_same(together, single);
            expect_same(together, queued);
        }
    }
    expect_same(together, single);
    expect_same(together, queued);
    for (int i = 0; i < 3; i++) {
        rig_free(all[i]);
    }
}

/* What is created in a run is there for the rest of it. */
TEST(a_run_sees_what_it_did_itself)
{
    struct rig *rig = rig_new();
    char text[200];

    choose_names();
    (void)snprintf(text, sizeof(text),
                   "BF.ADD %s a; BF.ADD %s a; BF.ADD %s a; BF.ADD %s a; "
                   "BF.ADD %s b; BF.EXISTS %s a; BF.EXISTS %s b; "
                   "BF.EXISTS %s c",
                   names[0], names[1], names[0], names[1], names[0], names[0],
                   names[0], names[1]);
    run_text(rig, text, true);
    expect(rig, ":1\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n");
    rig_free(rig);
}

TEST(a_long_pipeline_of_one_kind_is_done_in_order)
{
    struct rig *rig = rig_new();

    batch_begin(rig);
    for (int i = 0; i < BATCH_COMMANDS_MAX; i++) {
        batch_text(rig, i % 2 == 0 ? "BF.ADD k x" : "BF.ADD k y");
    }
    batch_run(rig);
    assert_int_equal(BATCH_COMMANDS_MAX * 4, rig->out.len);
    assert_memory_equal(":1\r\n:1\r\n:0\r\n", rig->out.data, 12);
    for (size_t at = 8; at < rig->out.len; at += 4) {
        assert_memory_equal(":0\r\n", rig->out.data + at, 4);
    }
    rig_free(rig);
}

/* ---- errors and refusals
 * ---------------------------------------------------*/

TEST(errors_have_the_texts_of_redis)
{
    struct rig *rig = rig_new();

    run_text(rig, "nope a b", true);
    expect(rig, "-ERR unknown command 'nope', with args beginning with: "
                "'a' 'b' \r\n");
    run_text(rig, "client nope", true);
    expect(rig, "-ERR unknown subcommand 'nope'. Try CLIENT HELP.\r\n");
    run_text(rig, "bf.add k", true);
    expect(rig, "-ERR wrong number of arguments for 'BF.ADD' command\r\n");
    run_text(rig, "Client Id x", true);
    expect(rig, "-ERR wrong number of arguments for 'client|id' command\r\n");
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
    expect(rig, "-ERR unknown command 'a  +OK', with args beginning with: "
                "'b c' \r\n");
    rig_free(rig);
}

TEST(a_failing_handler_leaves_its_error_alone)
{
    struct rig *rig = rig_new();

    set_option(rig, "bf.bloom-memory-usage-limit", "1000");
    run_text(rig, "PING; BF.INSERT k CAPACITY 50 EXPANSION 100 ITEMS a; PING",
             true);
    expect(rig, "+PONG\r\n*1\r\n:1\r\n+PONG\r\n");
    batch_begin(rig);
    batch_text(rig, "PING");
    batch_command(rig);
    batch_word(rig, slice_lit("BF.MADD"));
    batch_word(rig, slice_lit("k"));
    for (int i = 0; i < 100; i++) { /* the second layer would not fit */
        char item[16];
        int len = snprintf(item, sizeof(item), "item%d", i);

        batch_word(rig, (struct slice){ item, (size_t)len });
    }
    batch_text(rig, "PING");
    batch_run(rig);
    expect(rig, "+PONG\r\n-ERR operation exceeds bloom object memory limit\r\n"
                "+PONG\r\n");
    run_text(rig, "BF.CARD k", true);
    expect(rig, ":50\r\n"); /* what was added before it failed stays */
    rig_free(rig);
}

TEST(without_a_password_only_some_commands_are_served)
{
    struct rig *rig = rig_new();

    set_option(rig, "requirepass", "secret");
    rig->session.authenticated = false;
    run_text(rig, "BF.ADD k a; BF.EXISTS k a; PING; nope; BF.ADD k; QUIT",
             true);
    expect(rig, "-NOAUTH Authentication required.\r\n"
                "-NOAUTH Authentication required.\r\n"
                "-NOAUTH Authentication required.\r\n"
                "-ERR unknown command 'nope', with args beginning with: \r\n"
                "-ERR wrong number of arguments for 'BF.ADD' command\r\n"
                "+OK\r\n");
    rig->session.closing = false;
    /* What follows AUTH in the same batch is served. */
    run_text(rig, "AUTH wrong; DBSIZE; AUTH secret; BF.ADD k a; DBSIZE", true);
    expect(rig, "-WRONGPASS invalid username-password pair or user is "
                "disabled.\r\n-NOAUTH Authentication required.\r\n+OK\r\n"
                ":1\r\n:1\r\n");
    rig_free(rig);
}

TEST(quit_ends_the_batch)
{
    struct rig *rig = rig_new();

    batch_begin(rig);
    batch_text(rig, "PING");
    batch_text(rig, "QUIT");
    batch_text(rig, "BF.ADD k a");
    assert_int_equal(2, dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       0, &rig->out));
    expect(rig, "+PONG\r\n+OK\r\n");
    assert_true(rig->session.closing);
    rig->session.closing = false;
    run_text(rig, "DBSIZE", true);
    expect(rig, ":0\r\n");
    rig_free(rig);
}

TEST(hello_changes_the_replies_behind_it)
{
    struct rig *rig = rig_new();

    run_text(rig, "CLIENT GETNAME; HELLO 3; CLIENT GETNAME", true);
    assert_memory_equal("$-1\r\n%", rig->out.data, 6);
    assert_memory_equal("\r\n_\r\n", rig->out.data + rig->out.len - 5, 5);
    run_text(rig, "CLIENT GETNAME; RESET; CLIENT GETNAME", true);
    expect(rig, "_\r\n+RESET\r\n$-1\r\n");
    rig_free(rig);
}

TEST(above_maxmemory_only_what_takes_memory_is_refused)
{
    static const char oom[] =
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    struct rig *rig = rig_new();
    char expected[1024];

    run_text(rig, "BF.ADD k a", true);
    set_option(rig, "maxmemory", "1");
    effects_clear(&rig->effects);
    run_text(rig,
             "BF.EXISTS k a; BF.ADD k b; BF.ADD k c; BF.EXISTS k b; "
             "BF.MADD k b; BF.RESERVE r 0.1 10; BF.INSERT k ITEMS b; "
             "BF.CARD k; EXPIRE k 1000; PERSIST k; DEL k; DBSIZE",
             true);
    (void)snprintf(expected, sizeof(expected),
                   ":1\r\n%s%s:0\r\n%s%s%s:1\r\n:1\r\n:1\r\n:1\r\n:0\r\n", oom,
                   oom, oom, oom, oom);
    expect(rig, expected);
    assert_int_equal(3, rig->effects.count);
    set_option(rig, "maxmemory", "0");
    run_text(rig, "BF.ADD k b", true);
    expect(rig, ":1\r\n");
    rig_free(rig);
}

/* ---- CLIENT REPLY
 * ----------------------------------------------------------*/

static void
check_replies(const char *commands, const char *replies)
{
    for (int together = 0; together < 2; together++) {
        struct rig *rig = rig_new();
        struct buf all = { 0 };
        char line[256];

        if (together == 1) {
            run_text(rig, commands, true);
            buf_append_slice(&all, buf_slice(&rig->out));
        }
        for (const char *at = commands; together == 0 && *at != '\0';) {
            size_t len = strcspn(at, ";");

            (void)snprintf(line, sizeof(line), "%.*s", (int)len, at);
            run_line(rig, line);
            buf_append_slice(&all, buf_slice(&rig->out));
            at += len;
            at += strspn(at, "; ");
        }
        if (!slice_equal(buf_slice(&all), slice_of(replies))) {
            fail_msg("[%s] replied [%.*s]", commands, (int)all.len,
                     all.len > 0 ? all.data : "");
        }
        buf_free(&all);
        rig_free(rig);
    }
}

TEST(client_reply_drops_what_it_says)
{
    check_replies("CLIENT REPLY OFF; PING; nope; BF.ADD k a; CLIENT REPLY ON; "
                  "BF.EXISTS k a",
                  "+OK\r\n:1\r\n");
    check_replies("CLIENT REPLY SKIP; BF.ADD k a; BF.ADD k a; BF.CARD k",
                  ":0\r\n:1\r\n");
    check_replies("CLIENT REPLY SKIP; nope; PING", "+PONG\r\n");
    check_replies("CLIENT REPLY SKIP; CLIENT REPLY SKIP; PING; PING",
                  "+PONG\r\n");
    check_replies("CLIENT REPLY OFF; CLIENT REPLY SKIP; PING; CLIENT REPLY ON",
                  "+OK\r\n");
    check_replies("CLIENT REPLY ON; PING", "+OK\r\n+PONG\r\n");
    check_replies("CLIENT REPLY OFF; MULTI; BF.ADD k a; EXEC; CLIENT REPLY ON; "
                  "BF.CARD k",
                  "+OK\r\n:1\r\n");
    check_replies("CLIENT REPLY OFF; RESET; PING", "+RESET\r\n+PONG\r\n");
}

/* ---- statistics
 * ------------------------------------------------------------*/

static struct stats_sum
sum_of(struct rig *rig, enum command_id id)
{
    return stats_sum_command(rig->service.stats, id);
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

TEST(hits_and_misses_are_counted_once_a_read)
{
    struct rig *rig = rig_new();
    int64_t hits = metric_sum(METRIC_KEYSPACE_HITS);
    int64_t misses = metric_sum(METRIC_KEYSPACE_MISSES);

    run_text(rig,
             "BF.ADD k a; BF.EXISTS k a; BF.EXISTS k b; BF.EXISTS x a; "
             "BF.EXISTS x b; BF.CARD k; BF.CARD x; "
             "MULTI; BF.EXISTS k a; BF.EXISTS x a; EXEC",
             true);
    assert_int_equal(4, metric_sum(METRIC_KEYSPACE_HITS) - hits);
    assert_int_equal(4, metric_sum(METRIC_KEYSPACE_MISSES) - misses);
    rig_free(rig);
}

/* ---- pauses and much to send
 * -----------------------------------------------*/

enum { LONG_NAMES = 600, LONG_NAME = 10000 };

/* Names on which a pattern with stars takes its time: a walk over them has to
 * step aside. Half of them match "*a*y". */
static void
make_long_names(struct rig *rig)
{
    char name[LONG_NAME];

    memset(name, 'a', sizeof(name));
    for (unsigned i = 0; i < LONG_NAMES; i++) {
        (void)snprintf(name, 16, "%u", i);
        name[strlen(name)] = 'a';
        name[sizeof(name) - 1] = i % 2 == 0 ? 'y' : 'z';
        batch_begin(rig);
        batch_command(rig);
        batch_word(rig, slice_lit("BF.ADD"));
        batch_word(rig, (struct slice){ name, sizeof(name) });
        batch_word(rig, slice_lit("item"));
        batch_run(rig);
    }
}

TEST(a_handler_that_pauses_is_called_again_and_replies_once)
{
    struct rig *rig = rig_new();
    unsigned pauses = 0;
    uint32_t done = 0;

    make_long_names(rig);
    batch_begin(rig);
    batch_text(rig, "PING");
    batch_text(rig, "KEYS *a*y");
    batch_text(rig, "PING");
    rig->out.len = 0;
    while (done < rig->batch.count) {
        done = dispatch_batch(rig->worker, &rig->session, &rig->batch, done,
                              &rig->out);
        if (rig->session.again != NULL) {
            pauses++;
            assert_int_equal(1, done);
            expect(rig, "+PONG\r\n");
        } else {
            assert_true(done >= 2);
        }
        if (done == 2) {
            /* So much of a reply is to be sent first. */
            assert_true(rig->out.len > 64 * 1024);
            assert_memory_equal("+PONG\r\n*300\r\n$10000\r\n", rig->out.data,
                                22);
            rig->out.len = 0;
        }
    }
    assert_true(pauses > 0);
    expect(rig, "+PONG\r\n");
    assert_int_equal(1, sum_of(rig, CMD_ID_KEYS).calls);
    /* In a transaction nothing pauses. */
    batch_begin(rig);
    batch_text(rig, "MULTI");
    batch_text(rig, "KEYS *a*x");
    batch_text(rig, "EXEC");
    batch_run(rig);
    expect(rig, "+OK\r\n+QUEUED\r\n*1\r\n*0\r\n");
    rig_free(rig);
}

TEST(a_session_may_end_while_its_handler_is_paused)
{
    struct rig *rig = rig_new();

    make_long_names(rig);
    batch_begin(rig);
    batch_text(rig, "KEYS *a*x");
    assert_int_equal(0, dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       0, &rig->out));
    assert_non_null(rig->session.again);
    rig_free(rig);
}

/* ---- memory that is not to be had
 * ------------------------------------------*/

/* Bytes of the reply at the front; fails if there is none. */
static size_t
reply_bytes(struct slice text)
{
    const char *end = memchr(text.data, '\r', text.len);
    size_t len;
    long count;

    assert_non_null(end);
    len = (size_t)(end - text.data) + 2;
    count = strtol(text.data + 1, NULL, 10);
    switch (text.data[0]) {
    case '+':
    case '-':
    case ':':
    case ',':
    case '_':
    case '#':
        return len;
    case '$':
    case '=':
        return count < 0 ? len : len + (size_t)count + 2;
    case '%':
        count *= 2;
        break;
    case '*':
    case '~':
        break;
    default:
        fail_msg("no reply begins with '%c'", text.data[0]);
    }
    for (long i = 0; i < count; i++) {
        assert_true(len < text.len);
        len += reply_bytes((struct slice){ text.data + len, text.len - len });
    }
    assert_true(len <= text.len);
    return len;
}

static unsigned
count_replies(struct slice text)
{
    unsigned count = 0;

    while (text.len > 0) {
        size_t n = reply_bytes(text);

        text.data += n;
        text.len -= n;
        count++;
    }
    return count;
}

static const char *const hungry[] = {
    "BF.ADD k0 a",
    "BF.ADD k0 b",
    "BF.EXISTS k0 a",
    "BF.MADD k1 a b c d e f g h i j",
    "BF.INSERT k2 CAPACITY 3 EXPANSION 1 ITEMS a b c d e f g",
    "BF.RESERVE k3 0.0001 1000",
    "BF.RESERVE k4 0.01 3000000", /* a mapping of its own */
    "BF.MADD k2 h i j k l m",
    "EXPIRE k0 1000",
    "EXPIRE k1 1000 NX",
    "PEXPIREAT k2 33000000000000",
    "WATCH k0 k1 missing",
    "MULTI",
    "BF.ADD k5 a",
    "DEL k1 k9",
    "KEYS *",
    "EXPIRE k5 77",
    "SCAN 0",
    "EXEC",
    "DEL k3",
    "BF.ADD k3 a",
    "BF.INFO k2",
    "KEYS k*",
    "SCAN 0 COUNT 1000",
    "RANDOMKEY",
    "CLIENT SETNAME me",
    "HELLO",
    "CONFIG GET *",
    "MEMORY USAGE k0",
    "COMMAND INFO get bf.add",
    "UNLINK k4",
    "BF.ADD k4 a",
};
enum { HUNGRY = sizeof(hungry) / sizeof(hungry[0]) };

static uint64_t
ask_number(struct rig *rig, const char *format, const char *key)
{
    char line[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(line, sizeof(line), format, key);
#pragma GCC diagnostic pop
    run_line(rig, line);
    if (rig->out.data[0] == '-') { /* missing */
        return 0;
    }
    assert_int_equal(':', rig->out.data[0]);
    return strtoull(rig->out.data + 1, NULL, 10);
}

static const enum metric account[] = { METRIC_BF_OBJECTS, METRIC_BF_ITEMS,
                                       METRIC_BF_MEMORY, METRIC_BF_FILTERS,
                                       METRIC_BF_CAPACITY };
enum { ACCOUNTS = sizeof(account) / sizeof(account[0]) };

static void
read_accounts(int64_t *ret_sum)
{
    for (int i = 0; i < ACCOUNTS; i++) {
        ret_sum[i] = metric_sum(account[i]);
    }
}

/* The gauges rose by what the keys add up to. */
static void
expect_accounts(struct rig *rig, const int64_t *before)
{
    static const char *const figure[ACCOUNTS] = { "EXISTS %s", "BF.CARD %s",
                                                  "BF.INFO %s SIZE",
                                                  "BF.INFO %s FILTERS",
                                                  "BF.INFO %s CAPACITY" };
    uint64_t expected[ACCOUNTS] = { 0 };
    int64_t now[ACCOUNTS];

    for (unsigned k = 0; k < 10; k++) {
        char key[8];

        (void)snprintf(key, sizeof(key), "k%u", k);
        for (int i = 0; i < ACCOUNTS; i++) {
            expected[i] += ask_number(rig, figure[i], key);
        }
    }
    read_accounts(now);
    for (int i = 0; i < ACCOUNTS; i++) {
        assert_int_equal(expected[i], now[i] - before[i]);
    }
    assert_int_equal(expected[0], ask_number(rig, "DBSIZE", ""));
}

static uint32_t
take_u32(struct slice *raw)
{
    uint32_t value;

    assert_true(raw->len >= sizeof(value));
    memcpy(&value, raw->data, sizeof(value));
    raw->data += sizeof(value);
    raw->len -= sizeof(value);
    return value;
}

/* What was applied has left its effect, whatever the client was told: the
 * effects, repeated elsewhere, give the same filters. */
static void
expect_effects_repeat(struct rig *rig)
{
    struct rig *to = rig_new();
    struct slice raw = buf_slice(&rig->effects.raw);

    to->session.obey = true;
    while (raw.len > 0) {
        uint32_t argc;

        to->session.db = take_u32(&raw);
        argc = take_u32(&raw);
        batch_begin(to);
        batch_command(to);
        while (argc-- > 0) {
            uint32_t len = take_u32(&raw);

            batch_word(to, (struct slice){ raw.data, len });
            raw.data += len;
            raw.len -= len;
        }
        batch_run(to);
    }
    for (unsigned k = 0; k < 10; k++) {
        char line[128];

        for (int i = 0; i < 2; i++) {
            (void)snprintf(line, sizeof(line),
                           i == 0 ? "BF.INFO k%u"
                                  : "BF.MEXISTS k%u a b c d e f g h i j k l m",
                           k);
            run_line(rig, line);
            run_line(to, line);
            if (!slice_equal(buf_slice(&rig->out), buf_slice(&to->out))) {
                fail_msg("[%s] is [%.*s], and of the effects [%.*s]", line,
                         (int)rig->out.len, rig->out.data, (int)to->out.len,
                         to->out.data);
            }
        }
        (void)snprintf(line, sizeof(line), "PEXPIRETIME k%u", k);
        run_line(rig, line);
        run_line(to, line);
        assert_true(slice_equal(buf_slice(&rig->out), buf_slice(&to->out)));
    }
    rig_free(to);
}

/* Runs the hungry batch with the nth allocation failing. False when it was
 * not reached any more. */
static bool
run_hungry(unsigned nth, size_t out_bytes)
{
    struct rig *rig = rig_new();
    int64_t before[ACCOUNTS];
    uint32_t done = 0;
    bool fired;

    read_accounts(before);
    assert_non_null(buf_reserve(&rig->effects.text, 65536));
    assert_non_null(buf_reserve(&rig->effects.raw, 65536));
    batch_begin(rig);
    for (int i = 0; i < HUNGRY; i++) {
        batch_text(rig, hungry[i]);
    }
    if (out_bytes > 0) {
        assert_non_null(buf_reserve(&rig->out, out_bytes));
    }
    mem_fail_at(nth);
    while (done < HUNGRY && !rig->out.failed) {
        uint32_t next = dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       done, &rig->out);

        assert_true(next > done || rig->session.again != NULL);
        done = next;
    }
    fired = mem_fail_clear();
    if (!rig->out.failed) {
        assert_int_equal(HUNGRY, count_replies(buf_slice(&rig->out)));
    } else {
        rig->out.failed = false; /* the connection would be cut here */
    }
    assert_int_equal(
        fired,
        rig->out.len == 0 ||
            memmem(rig->out.data, rig->out.len, "-OOM", 4) != NULL ||
            memmem(rig->out.data, rig->out.len, "-EXECABORT", 10) != NULL);
    txn_end(&rig->session);
    expect_effects_repeat(rig);
    expect_accounts(rig, before);
    rig_free(rig);
    return fired;
}

TEST(each_allocation_may_fail_and_only_its_command_suffers)
{
    for (int small = 0; small < 2; small++) {
        uint64_t used = mem_used();
        unsigned nth = 1;

        while (run_hungry(nth, small ? 0 : 1 << 18)) {
            assert_int_equal(used, mem_used());
            nth++;
            assert_true(nth < 5000);
        }
        assert_true(nth > HUNGRY);
    }
}

/* ---- threads
 * ---------------------------------------------------------------*/

enum { THREADS = 3, THREAD_BATCHES = 250, THREAD_COMMANDS = 40 };

struct adder {
    struct rig *rig;
    struct worker *worker;
    struct session session;
    struct batch batch;
    struct buf words, out;
    unsigned index;
    uint64_t random;
    uint64_t added[KEYS];
};

/* rig.h's batches belong to the rig's own worker; these to one thread. */
static void
adder_command(struct adder *adder, const char *line)
{
    struct batch *batch = &adder->batch;

    batch->command[batch->count++] =
        (struct batch_command){ .first = (uint32_t)batch->argv_count };
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        const char *at = adder->words.data + adder->words.len;

        buf_append(&adder->words, line, len);
        batch->argv[batch->argv_count++] = (struct slice){ at, len };
        batch->command[batch->count - 1].argc++;
        line += len;
        line += *line == ' ';
    }
}

static void
adder_run(struct adder *adder)
{
    uint32_t done = 0;

    adder->out.len = 0;
    while (done < adder->batch.count) {
        done = dispatch_batch(adder->worker, &adder->session, &adder->batch,
                              done, &adder->out);
        if (adder->out.len >= 64 * 1024) {
            adder->out.len = 0;
        }
    }
    adder->batch.count = 0;
    adder->batch.argv_count = 0;
    adder->words.len = 0;
}

/* Adds in pipelines, and counts what was new by the replies. */
static void
add_some(struct adder *adder)
{
    unsigned key[THREAD_COMMANDS];
    size_t at = 0;

    for (int i = 0; i < THREAD_COMMANDS; i++) {
        char line[LINE_MAX_BYTES];

        key[i] = below(&adder->random, KEYS);
        (void)snprintf(line, sizeof(line), "BF.ADD %s i%u", names[key[i]],
                       below(&adder->random, 20000));
        adder_command(adder, line);
    }
    adder_run(adder);
    assert_int_equal(THREAD_COMMANDS * 4, adder->out.len);
    for (int i = 0; i < THREAD_COMMANDS; i++, at += 4) {
        adder->added[key[i]] += adder->out.data[at + 1] == '1';
    }
}

static void
do_others(struct adder *adder)
{
    static const char *const others[] = {
        "MULTI",
        "BF.EXISTS k i1",
        "KEYS *",
        "DBSIZE",
        "BF.CARD k",
        "EXEC",
        "WATCH k other",
        "MULTI",
        "BF.EXISTS k i2",
        "EXPIRE k 1000",
        "EXEC",
        "SCAN 0 COUNT 100",
        "RANDOMKEY",
        "PERSIST k",
        "INFO",
        "KEYS *",
        "CONFIG SET maxmemory 0",
        "BF.MADD k a b",
        "SELECT 1",
        "BF.ADD tmp a",
        "DEL tmp k",
        "FLUSHDB",
        "SELECT 0",
        "CONFIG GET max*",
        "DEL other",
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        adder_command(adder, others[i]);
        if (below(&adder->random, 4) == 0) {
            adder_run(adder);
        }
    }
    adder_run(adder);
}

static void *
add_and_others(void *arg)
{
    struct adder *adder = arg;

    for (int i = 0; i < THREAD_BATCHES; i++) {
        add_some(adder);
        if (i % 8 == 0) {
            do_others(adder);
        }
    }
    metric_thread_exit();
    return NULL;
}

static void
conf_changed(void *ctx)
{
    struct rig *rig = ctx;

    service_limit_filters(&rig->service);
}

TEST(threads_on_few_keys_agree_on_what_was_new)
{
    struct rig *rig = rig_new_threads(THREADS);
    struct adder *adder = mem_zalloc(THREADS * sizeof(*adder));
    pthread_t thread[THREADS];

    choose_names();
    rig->service.sink = NULL;
    rig->service.conf_changed = conf_changed;
    rig->service.ctx = rig;
    rig->service.registry = NULL;
    for (unsigned i = 0; i < THREADS; i++) {
        adder[i].rig = rig;
        adder[i].index = i;
        adder[i].worker = worker_new(&rig->service, i);
        adder[i].random = test_seed() + i;
        session_init(&adder[i].session, true);
        assert_true(batch_reserve(&adder[i].batch, 1000));
        assert_non_null(buf_reserve(&adder[i].words, 65536));
        assert_int_equal(
            0, pthread_create(&thread[i], NULL, add_and_others, &adder[i]));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_join(thread[i], NULL));
    }
    for (int k = 0; k < KEYS; k++) {
        uint64_t added = 0;

        for (unsigned i = 0; i < THREADS; i++) {
            added += adder[i].added[k];
        }
        assert_int_equal(added, ask_number(rig, "BF.CARD %s", names[k]));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        txn_end(&adder[i].session);
        session_fini(&adder[i].session);
        worker_free(adder[i].worker);
        batch_fini(&adder[i].batch);
        buf_free(&adder[i].words);
        buf_free(&adder[i].out);
    }
    mem_free(adder);
    rig_free(rig);
}
