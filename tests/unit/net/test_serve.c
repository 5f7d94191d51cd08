/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long one connection may have the loop for itself, told by the order in
 * which commands of several connections are executed; and who counts as idle
 * or as gone, with the time of the last byte set by hand.
 */
#include "net/serve.h"

#include "net/timeouts.h"
#include "rig.h"

/* ---- turns --------------------------------------------------------------- */

enum {
    JOBS = 5000,
    JOB_BYTES = 985, /* of a job on the wire, at least */
    JOB_WORD = 960,
    READ_JOBS = LOOP_READ_BYTES / JOB_BYTES
};

/* A peer that has the next bytes ready whenever its socket has room, and
 * another one that asks once, when the first is already being served. */
struct pump {
    struct fake *busy;
    struct peer *from, *quick;
    struct slice left;
    uint64_t done_before; /* jobs before the other's command */
    bool answered;
};

static void
pump_more(struct pump *pump)
{
    while (pump->left.len > 0) {
        ssize_t n = send(pump->from->fd, pump->left.data, pump->left.len,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0) {
            assert_int_equal(EAGAIN, errno);
            return;
        }
        pump->left.data += n;
        pump->left.len -= (size_t)n;
    }
}

static bool
take_job(struct fake *fake, const struct slice *argv, size_t argc)
{
    struct pump *pump = fake->rig->takes_ctx;
    uint64_t number = 0;

    if (fake != pump->busy) {
        assert_int_equal(1, argc);
        pump->done_before = pump->busy->executed;
        pump->answered = true;
        return false;
    }
    assert_int_equal(3, argc);
    assert_true(slice_to_u64(argv[1], &number));
    assert_int_equal(fake->executed, number); /* each once and in order */
    if (number == 1) {
        assert_int_equal(3, send(pump->quick->fd, "A\r\n", 3, MSG_NOSIGNAL));
    }
    pump_more(pump);
    return true;
}

static void
write_jobs(struct buf *ret_text)
{
    char word[JOB_WORD];

    memset(word, 'x', sizeof(word));
    for (int i = 0; i < JOBS; i++) {
        char number[16];
        int len = snprintf(number, sizeof(number), "%d", i);

        buf_printf(ret_text, "*3\r\n$3\r\nJOB\r\n$%d\r\n%s\r\n$%d\r\n", len,
                   number, JOB_WORD);
        buf_append(ret_text, word, sizeof(word));
        buf_append(ret_text, "\r\n", 2);
    }
    assert_false(ret_text->failed);
}

/* ---- the clock of commands ----------------------------------------------- */

static uint64_t seen_ns;

/* A long reply, or whether the clock was read since that was executed. */
static bool
take_time(struct fake *fake, const struct slice *argv, size_t argc)
{
    struct loop *loop = fake->conn.loop;

    if (slice_is_word(argv[0], "LONG")) {
        buf_append(&loop->reply, "+", 1);
        fake_fill(fake, &loop->reply, LOOP_FLUSH_BYTES);
        buf_append(&loop->reply, "\r\n", 2);
        loop->now_ns = 0; /* as it was when this one ended */
    } else {
        seen_ns = loop->now_ns;
        fake_echo(&loop->reply, argv, argc);
    }
    return true;
}

/* The system takes its time to send: that is no command's. */
TEST(sending_between_two_commands_is_not_timed_as_the_second)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    rig->takes = take_time;
    peer_send_text(rig, &peer, "*1\r\n$4\r\nLONG\r\n*1\r\n$3\r\nSEE\r\n");
    rig_until(rig, fake_of(rig->last)->executed == 2);
    assert_true(seen_ns > 0);
    peer_free(&peer);
    rig_free(rig);
}

/* libuv reads again, up to 32 times, as long as reads are full. Megabytes wait
 * here at all times, and the other peer's command is one read away. */
TEST(full_reads_let_others_go_first)
{
    struct rig *rig = rig_new();
    struct peer busy = peer_new(rig, false);
    struct fake *fake = fake_of(rig->last);
    struct peer quick = peer_new(rig, false);
    struct buf text = { 0 };
    struct pump pump = { .busy = fake, .from = &busy, .quick = &quick };
    int room = 1 << 20;

    (void)setsockopt(busy.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    write_jobs(&text);
    pump.left = buf_slice(&text);
    rig->takes_ctx = &pump;
    rig->takes = take_job;
    pump_more(&pump);
    rig_until(rig, pump.answered);
    /* The read in which it came, one more that was ready too, and the rest of
     * a command. */
    assert_in_range(pump.done_before, 1, 2 * READ_JOBS + 1);
    assert_true(fake->executed < JOBS);
    peer_expect(rig, &quick, "+A\r\n");
    rig_until(rig, (pump_more(&pump), fake->executed == JOBS));
    assert_int_equal(0, pump.left.len);
    rig_settle(rig);
    assert_int_equal(JOBS, fake->executed);
    assert_int_equal(0, fake->conn.input_bytes);
    assert_true(fake->conn.reading);
    buf_free(&text);
    peer_free(&busy);
    peer_free(&quick);
    rig_free(rig);
}

/* BUSY 2500 is longer than a turn: the turn ends behind each of them, with
 * commands before and behind it in the same read, and one in the reader. */
TEST(turns_that_end_anywhere_lose_and_swap_nothing)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf text = { 0 };
    struct buf replies = { 0 };

    for (int i = 0; i < 12; i++) {
        char line[64];

        (void)snprintf(line, sizeof(line),
                       i % 3 == 1 ? "BUSY 250%d" : "word %d", i % 10);
        write_command(&text, line);
        (void)snprintf(line, sizeof(line),
                       i % 3 == 1 ? "BUSY|250%d" : "word|%d", i % 10);
        buf_printf(&replies, "+%s\r\n", line);
    }
    buf_append(&replies, "", 1);
    for (size_t cut = 5; cut < text.len; cut += 37) {
        uint64_t executed = fake_of(rig->last)->executed;

        rig->one_by_one = cut % 2 == 0;
        peer_send(rig, &peer, (struct slice){ text.data, cut });
        rig_settle(rig);
        peer_send(rig, &peer,
                  (struct slice){ text.data + cut, text.len - cut });
        peer_expect(rig, &peer, replies.data);
        assert_int_equal(executed + 12, fake_of(rig->last)->executed);
        assert_int_equal(0, rig->last->input_bytes);
        assert_true(rig->last->reading);
    }
    buf_free(&text);
    buf_free(&replies);
    peer_free(&peer);
    rig_free(rig);
}

/* ---- idle or busy ---------------------------------------------------------
 */

enum { IDLE_S = 10, PATIENCE_S = 5 };

/* As if the last byte had come that long ago. */
static void
set_silence(struct rig *rig, uint64_t ms)
{
    uv_update_time(&rig->loop.uv);
    rig->last->active_ms = uv_now(&rig->loop.uv) - ms;
}

static size_t
unsent(const struct rig *rig)
{
    return uv_stream_get_write_queue_size(&rig->last->uv.stream);
}

/* The seconds' timer is not to interfere. */
static struct rig *
rig_without_timer(void)
{
    struct rig *rig = rig_new();

    assert_int_equal(0, uv_timer_stop(&rig->loop.second));
    rig->limits.idle_seconds = IDLE_S;
    rig->limits.output[OUTPUT_NORMAL].soft_seconds = PATIENCE_S;
    return rig;
}

TEST(a_client_that_goes_on_reading_its_reply_is_not_idle)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = peer_new(rig, true);

    peer_send_text(rig, &peer, "FILL 2000000\r\n");
    rig_until(rig, rig->last->output_bytes > 1000000);
    timeouts_check(rig->last);
    for (int i = 0; i < 5; i++) {
        size_t before = unsent(rig);

        set_silence(rig, 1000 * IDLE_S);
        rig_until(rig, (peer_take(&peer), unsent(rig) < before));
        timeouts_check(rig->last);
        assert_false(conn_is_closing(rig->last));
    }
    assert_true(unsent(rig) > 0);
    /* And then it stops to. */
    rig_settle(rig);
    timeouts_check(rig->last);
    set_silence(rig, 1000 * IDLE_S - 500);
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    set_silence(rig, 1000 * IDLE_S);
    timeouts_check(rig->last);
    assert_true(conn_is_closing(rig->last));
    rig_until(rig, rig->closed == 1);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_client_whose_command_is_paused_is_not_idle)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = peer_new(rig, false);

    peer_send_text(rig, &peer, "PAUSE 1000000\r\n");
    rig_until(rig, fake_of(rig->last)->calls > 2);
    set_silence(rig, 1000 * IDLE_S);
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    peer_free(&peer);
    rig_free(rig);
}

/* It is below every limit, and nothing would be read from it again. */
TEST(a_peer_that_leaves_its_last_reply_is_closed_in_the_end)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = peer_new(rig, true);
    int64_t cuts = metric_sum(METRIC_OUTPUT_LIMIT_CUTS);
    size_t before;

    rig->limits.idle_seconds = 0;
    peer_send_text(rig, &peer, "FILL 2000000\r\nBYE\r\n");
    rig_until(rig, rig->last->state == CONN_LEAVING);
    rig_settle(rig);
    set_silence(rig, 1000 * PATIENCE_S);
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last)); /* not for longer than that */
    /* Reading counts, as it does for others. */
    before = unsent(rig);
    set_silence(rig, 1000 * PATIENCE_S + 1);
    rig_until(rig, (peer_take(&peer), unsent(rig) < before));
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    rig_settle(rig);
    timeouts_check(rig->last);
    set_silence(rig, 1000 * PATIENCE_S + 1);
    timeouts_check(rig->last);
    assert_true(conn_is_closing(rig->last));
    assert_int_equal(cuts + 1, metric_sum(METRIC_OUTPUT_LIMIT_CUTS));
    rig_until(rig, rig->closed == 1);
    peer_free(&peer);
    rig_free(rig);
}

/* One that only does not read, and may still ask, is not meant by that. */
TEST(patience_with_last_replies_is_not_for_open_connections)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = peer_new(rig, true);

    rig->limits.idle_seconds = 0;
    peer_send_text(rig, &peer, "FILL 2000000\r\n");
    rig_until(rig, rig->last->output_bytes > 1000000);
    set_silence(rig, 1000 * 1000 * PATIENCE_S);
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    peer_free(&peer);
    rig_free(rig);
}
