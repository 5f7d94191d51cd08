/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Batches against the same commands one by one: whatever runs they fall into,
 * the replies and what is stored are the same. Then refusals, statistics,
 * and handlers that pause.
 */
#include "engine/dispatch.h"

#include "base/metrics.h"
#include "dispatch_help.h"
#include "rig.h"

/* ---- batches against one by one ------------------------------------------ */

enum { ITEMS = 300, BATCHES = 150 };

struct script {
    char line[BATCH_COMMANDS_MAX][LINE_MAX_BYTES];
    bool queues[BATCH_COMMANDS_MAX]; /* MULTI would take it */
    unsigned count;
};

/* In a form, @ stands for a key and # for a random item. */
static void
fill_form(const char *form, const char *key, uint64_t *random, char *ret_line)
{
    struct buf line = { 0 };

    for (; *form != '\0'; form++) {
        if (*form == '@') {
            buf_printf(&line, "%s", key);
        } else if (*form == '#') {
            buf_printf(&line, "i%u", below(random, ITEMS));
        } else {
            buf_append(&line, form, 1);
        }
    }
    assert_true(line.len < LINE_MAX_BYTES);
    memcpy(ret_line, line.data, line.len);
    ret_line[line.len] = '\0';
    buf_free(&line);
}

static void
random_line(uint64_t *random, char *ret_line, bool *ret_queues)
{
    static const char *const rare[] = {
        "DEL @",
        "SELECT 0",
        "SELECT 1",
        "PING",
        "BF.INFO @",
        "DBSIZE",
        "BF.INFO @ Bad",
        "EXISTS @",
        "EXPIRE @ 1000",
        "PERSIST @",
        "BF.RESERVE @ 0.01 5",
        "BF.INSERT @ CAPACITY 3 NONSCALING ITEMS # #",
        "GET @", /* from here on MULTI would refuse it */
        "BF.ADD @",
        "BF.EXISTS @ a b",
        "client nope",
    };
    unsigned choice = below(random, 100);
    const char *form = "BF.ADD @ #";

    *ret_queues = true;
    if (choice >= 92) {
        unsigned which = below(random, sizeof(rare) / sizeof(rare[0]));

        form = rare[which];
        *ret_queues = which < 12;
    } else if (choice >= 88) {
        form = "BF.MADD @ # #";
    } else if (choice >= 84) {
        form = "BF.MEXISTS @ # #";
    } else if (choice >= 82) {
        form = "BF.CARD @";
    } else if (choice >= 75) {
        form = choice % 2 == 0 ? "bf.add @ #" : "bf.exists @ #";
    } else if (choice >= 40) {
        form = "BF.EXISTS @ #";
    }
    fill_form(form, names[below(random, KEYS)], random, ret_line);
}

/* The line ends with another item, if it ends with one. */
static void
new_item(char *line, uint64_t *random)
{
    char *last = strrchr(line, ' ');

    if (last != NULL && last[1] == 'i') {
        (void)snprintf(last, 8, " i%u", below(random, ITEMS));
    }
}

static void
random_script(uint64_t *random, struct script *script)
{
    script->count = 1 + below(random, BATCH_COMMANDS_MAX);
    for (unsigned i = 0; i < script->count; i++) {
        random_line(random, script->line[i], &script->queues[i]);
        /* Stretches of equal names are what pipelines look like. */
        if (i > 0 && below(random, 4) != 0) {
            memcpy(script->line[i], script->line[i - 1], LINE_MAX_BYTES);
            script->queues[i] = script->queues[i - 1];
            new_item(script->line[i], random);
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

/* ---- errors and refusals ------------------------------------------------- */

TEST(without_a_password_only_some_commands_are_served)
{
    struct rig *rig = rig_new();

    set_option(rig, "requirepass", "secret");
    rig->session.authenticated = false;
    run_text(rig, "BF.ADD k a; BF.EXISTS k a; PING; nope; BF.ADD k; QUIT",
             true);
    expect_replies(rig,
                   "-NOAUTH Authentication required.\r\n"
                   "-NOAUTH Authentication required.\r\n"
                   "-NOAUTH Authentication required.\r\n"
                   "-ERR unknown command 'nope', with args beginning with: \r\n"
                   "-ERR wrong number of arguments for 'BF.ADD' command\r\n"
                   "+OK\r\n");
    rig->session.closing = false;
    /* What follows AUTH in the same batch is served. */
    run_text(rig, "AUTH wrong; DBSIZE; AUTH secret; BF.ADD k a; DBSIZE", true);
    expect_replies(rig,
                   "-WRONGPASS invalid username-password pair or user is "
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
                                       0, UINT64_MAX, &rig->out));
    expect_replies(rig, "+PONG\r\n+OK\r\n");
    assert_true(rig->session.closing);
    rig->session.closing = false;
    run_text(rig, "DBSIZE", true);
    expect_replies(rig, ":0\r\n");
    rig_free(rig);
}

/* The session may be freed before the worker is used again, by a timer. */
TEST(a_worker_forgets_the_session_of_its_batch)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a; PING", true);
    assert_null(rig->worker->session);
    batch_begin(rig);
    batch_text(rig, "QUIT");
    (void)dispatch_batch(rig->worker, &rig->session, &rig->batch, 0, UINT64_MAX,
                         &rig->out);
    assert_null(rig->worker->session);
    rig_free(rig);
}

TEST(hello_changes_the_replies_behind_it)
{
    struct rig *rig = rig_new();

    run_text(rig, "CLIENT GETNAME; HELLO 3; CLIENT GETNAME", true);
    assert_memory_equal("$-1\r\n%", rig->out.data, 6);
    assert_memory_equal("\r\n_\r\n", rig->out.data + rig->out.len - 5, 5);
    run_text(rig, "CLIENT GETNAME; RESET; CLIENT GETNAME", true);
    expect_replies(rig, "_\r\n+RESET\r\n$-1\r\n");
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
    effects_clear(rig);
    run_text(rig,
             "BF.EXISTS k a; BF.ADD k b; BF.ADD k c; BF.EXISTS k b; "
             "BF.MADD k b; BF.RESERVE r 0.1 10; BF.INSERT k ITEMS b; "
             "BF.CARD k; EXPIRE k 1000; PERSIST k; DEL k; DBSIZE",
             true);
    (void)snprintf(expected, sizeof(expected),
                   ":1\r\n%s%s:0\r\n%s%s%s:1\r\n:1\r\n:1\r\n:1\r\n:0\r\n", oom,
                   oom, oom, oom, oom);
    expect_replies(rig, expected);
    effects_take(rig);
    assert_int_equal(3, rig->effects.count);
    set_option(rig, "maxmemory", "0");
    run_text(rig, "BF.ADD k b", true);
    expect_replies(rig, ":1\r\n");
    rig_free(rig);
}

/* ---- CLIENT REPLY -------------------------------------------------------- */

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
    check_replies("CLIENT REPLY SKIP; CLIENT REPLY ON; PING",
                  "+OK\r\n+PONG\r\n");
    check_replies("CLIENT REPLY OFF; MULTI; BF.ADD k a; EXEC; CLIENT REPLY ON; "
                  "BF.CARD k",
                  "+OK\r\n:1\r\n");
    check_replies("CLIENT REPLY OFF; RESET; PING", "+RESET\r\n+PONG\r\n");
}

/* ---- statistics ---------------------------------------------------------- */

static struct stats_sum
sum_of(struct rig *rig, enum command_id id)
{
    return stats_sum_command(rig->service.stats, id);
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

/* ---- time, and replies without room ---------------------------------------
 */

/* However late it is: a call executes something, or a command that takes long
 * to parse would never be reached. Time is looked at behind each window. */
TEST(a_batch_whose_time_is_over_does_one_window_a_call)
{
    static const uint64_t ends[] = { 0, 1, UINT64_MAX };
    static const uint32_t stops[] = { 1, 3, 4, 5, 9 };
    struct rig *rig = rig_new();

    /* Without locks, no window ends because it has held them for long. */
    rig->worker->alone = true;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        uint32_t done = 0;

        run_text(rig, "FLUSHALL", true);
        batch_begin(rig);
        batch_text(rig,
                   "BF.ADD k a"); /* makes the filter: a window of its own */
        batch_text(rig, "BF.ADD k b");
        batch_text(rig, "BF.EXISTS k a");
        batch_text(rig, "PING");
        batch_text(rig, "nope");
        batch_text(rig, "BF.MADD k a c");
        batch_text(rig, "BF.EXISTS k c");
        batch_text(rig, "BF.EXISTS k x");
        batch_text(rig, "BF.CARD k");
        rig->out.len = 0;
        for (size_t call = 0; done < rig->batch.count; call++) {
            uint32_t stop = ends[i] == UINT64_MAX ? 9 : stops[call];

            done = dispatch_batch(rig->worker, &rig->session, &rig->batch, done,
                                  ends[i], &rig->out);
            assert_int_equal(stop, done);
        }
        expect_replies(
            rig, ":1\r\n:1\r\n:1\r\n+PONG\r\n-ERR unknown command 'nope', "
                 "with args beginning with: \r\n*2\r\n:0\r\n:1\r\n:1\r\n"
                 ":0\r\n:3\r\n");
    }
    rig_free(rig);
}

/* KEYS stops while it collects. The rest of the batch goes on. */
TEST(a_walk_above_the_limit_stops_and_says_what_to_do)
{
    struct rig *rig = rig_new();

    run_text(rig,
             "BF.ADD aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x; "
             "BF.ADD bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb x; "
             "BF.ADD cccccccccccccccccccccccccccccccccccccccc x",
             true);
    rig->out.limit = 120;
    run_text(rig, "KEYS [ab]*; PING", false);
    run_text(rig, "KEYS [ab]*", true);
    assert_memory_equal("*2\r\n$40\r\n", rig->out.data, 9);
    buf_free(&rig->out);
    run_text(rig, "KEYS *", true);
    expect_replies(rig, "-ERR the reply would exceed the hard limit of "
                        "client-output-buffer-limit; use SCAN\r\n");
    assert_null(rig->session.again);
    rig->out.limit = 0;
    run_text(rig, "KEYS *", true);
    assert_memory_equal("*3\r\n$40\r\n", rig->out.data, 9);
    rig_free(rig);
}

/* ---- pauses and much to send --------------------------------------------- */

enum { LONG_NAMES = 600, LONG_NAME = 10000 };

/* Names on which a pattern with stars takes its time: a walk over them has to
 * step aside. Half of them match "*[y]*". */
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
    batch_text(rig, "KEYS *[y]*");
    batch_text(rig, "PING");
    rig->out.len = 0;
    while (done < rig->batch.count) {
        done = dispatch_batch(rig->worker, &rig->session, &rig->batch, done,
                              UINT64_MAX, &rig->out);
        if (rig->session.again != NULL) {
            pauses++;
            assert_int_equal(1, done);
            expect_replies(rig, "+PONG\r\n");
        } else {
            assert_true(done >= 2);
        }
        if (done == 2) {
            /* So much of a reply is to be sent first. */
            assert_true(rig->out.len > 64 * 1024);
            assert_memory_equal("+PONG\r\n*300\r\n$10000\r\n", rig->out.data,
                                21);
            rig->out.len = 0;
        }
    }
    assert_true(pauses > 0);
    expect_replies(rig, "+PONG\r\n");
    assert_int_equal(1, sum_of(rig, CMD_ID_KEYS).calls);
    /* In a transaction nothing pauses. */
    batch_begin(rig);
    batch_text(rig, "MULTI");
    batch_text(rig, "KEYS *[bc]*");
    batch_text(rig, "EXEC");
    batch_run(rig);
    expect_replies(rig, "+OK\r\n+QUEUED\r\n*1\r\n*0\r\n");
    rig_free(rig);
}

TEST(a_session_may_end_while_its_handler_is_paused)
{
    struct rig *rig = rig_new();

    make_long_names(rig);
    batch_begin(rig);
    batch_text(rig, "KEYS *[bc]*");
    assert_int_equal(0, dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       0, UINT64_MAX, &rig->out));
    assert_non_null(rig->session.again);
    rig_free(rig);
}
