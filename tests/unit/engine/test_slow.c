/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What took long reaches the slow log and the latency monitor, each by its own
 * threshold; a run tells of each of its commands, and what paused is whole.
 */
#include "engine/slow.h"

#include "base/clock.h"
#include "engine/execute.h"
#include "measure/slowlog.h"
#include "rig.h"

struct fixture {
    struct rig *rig;
    char text[4096]; /* "word word|word|", newest first */
    uint64_t took_us;
};

static struct fixture
fixture_new(void)
{
    struct fixture f = { .rig = rig_new() };

    f.rig->service.slowlog = slowlog_new();
    f.rig->service.latency = latency_new();
    slow_apply_conf(&f.rig->service);
    return f;
}

static void
fixture_free(struct fixture *f)
{
    slowlog_free(f->rig->service.slowlog);
    latency_free(f->rig->service.latency);
    rig_free(f->rig);
}

static void
set(struct fixture *f, const char *name, const char *value)
{
    set_option(f->rig, name, value);
    slow_apply_conf(&f->rig->service);
}

static void
append(struct fixture *f, struct slice word, char behind)
{
    size_t len = strlen(f->text);

    assert_true(len + word.len + 2 < sizeof(f->text));
    memcpy(f->text + len, word.data, word.len);
    f->text[len + word.len] = behind;
    f->text[len + word.len + 1] = '\0';
}

static void
note_entry(void *ctx, const struct slowlog_entry *entry)
{
    struct fixture *f = ctx;

    for (size_t i = 0; i < entry->argc; i++) {
        append(f, entry->argv[i], i + 1 < entry->argc ? ' ' : '|');
    }
    f->took_us = entry->took_us;
}

static const char *
logged(struct fixture *f)
{
    const struct slowlog_visitor visitor = { note_entry, f, 0 };

    f->text[0] = '\0';
    slowlog_visit(f->rig->service.slowlog, UINT64_MAX, &visitor);
    return f->text;
}

static size_t
events(const struct fixture *f, enum latency_event event)
{
    struct latency_series series;

    latency_read(f->rig->service.latency, event, &series);
    return series.count;
}

static struct request
request_of(struct fixture *f, enum command_id id, const struct slice *argv,
           size_t argc)
{
    return (struct request){ .command = &command_rows[id],
                             .session = &f->rig->session,
                             .worker = f->rig->worker,
                             .service = &f->rig->service,
                             .argv = argv,
                             .argc = argc };
}

/* A command ends as it does in execute_count. */
static void
end_after(const struct request *req, uint64_t took_ns)
{
    if (slow_is(req->service, took_ns)) {
        slow_note(req, took_ns);
    }
}

TEST(thresholds_are_kept_apart)
{
    struct fixture f = fixture_new();
    const struct slice argv[] = { slice_lit("KEYS"), slice_lit("*") };
    struct request req = request_of(&f, CMD_ID_KEYS, argv, 2);

    set(&f, "slowlog-log-slower-than", "2000");
    end_after(&req, 1999999);
    assert_string_equal(logged(&f), "");
    end_after(&req, 2000000);
    assert_string_equal(logged(&f), "KEYS *|");
    assert_int_equal(f.took_us, 2000);
    end_after(&req, UINT64_MAX - 1);
    assert_int_equal(events(&f, LATENCY_COMMAND), 0);

    set(&f, "slowlog-log-slower-than", "-1");
    slowlog_reset(f.rig->service.slowlog);
    end_after(&req, UINT64_MAX - 1);
    assert_string_equal(logged(&f), "");
    assert_int_equal(atomic_load(&f.rig->service.slow_ns), UINT64_MAX);

    set(&f, "latency-monitor-threshold", "3");
    end_after(&req, 2999999);
    assert_int_equal(events(&f, LATENCY_COMMAND), 0);
    end_after(&req, 3000000);
    assert_int_equal(events(&f, LATENCY_COMMAND), 1);
    assert_int_equal(events(&f, LATENCY_FAST_COMMAND), 0);
    assert_string_equal(logged(&f), "");
    slow_event(&f.rig->service, LATENCY_AOF_FSYNC, 2999999);
    assert_int_equal(events(&f, LATENCY_AOF_FSYNC), 0);
    slow_event(&f.rig->service, LATENCY_AOF_FSYNC, 3000000);
    assert_int_equal(events(&f, LATENCY_AOF_FSYNC), 1);
    fixture_free(&f);
}

TEST(thresholds_beyond_the_clock_are_never)
{
    struct fixture f = fixture_new();

    set(&f, "slowlog-log-slower-than", "9223372036854775807");
    set(&f, "latency-monitor-threshold", "9223372036854775807");
    assert_int_equal(atomic_load(&f.rig->service.slow_ns), UINT64_MAX);
    fixture_free(&f);
}

TEST(fast_commands_are_an_event_of_their_own_and_exec_is_not_logged)
{
    struct fixture f = fixture_new();
    const struct slice argv[] = { slice_lit("EXEC") };
    struct request req = request_of(&f, CMD_ID_PING, argv, 1);

    set(&f, "slowlog-log-slower-than", "0");
    set(&f, "latency-monitor-threshold", "1");
    end_after(&req, 1000000);
    assert_int_equal(events(&f, LATENCY_FAST_COMMAND), 1);
    assert_int_equal(events(&f, LATENCY_COMMAND), 0);
    slowlog_reset(f.rig->service.slowlog);
    req.command = &command_rows[CMD_ID_EXEC];
    end_after(&req, 1000000);
    assert_int_equal(events(&f, LATENCY_COMMAND), 1);
    assert_string_equal(logged(&f), "");
    fixture_free(&f);
}

TEST(a_run_logs_each_of_its_commands)
{
    struct fixture f = fixture_new();

    set(&f, "slowlog-log-slower-than", "0");
    run_text(f.rig, "BF.ADD k a; BF.ADD k b; BF.ADD k c", true);
    assert_string_equal(logged(&f), "BF.ADD k c|BF.ADD k b|BF.ADD k a|");
    slowlog_reset(f.rig->service.slowlog);
    run_text(f.rig, "MULTI; BF.ADD k d; PING; EXEC", false);
    assert_string_equal(logged(&f), "PING|BF.ADD k d|MULTI|");
    slowlog_reset(f.rig->service.slowlog);
    run_text(f.rig, "BF.ADD k; NOPE; AUTH x y; PING", true);
    assert_string_equal(logged(&f), "PING|AUTH (redacted) (redacted)|");
    fixture_free(&f);
}

TEST(a_command_in_parts_lasts_for_their_sum)
{
    struct fixture f = fixture_new();
    const struct slice argv[] = { slice_lit("KEYS"), slice_lit("*") };
    struct request req = request_of(&f, CMD_ID_KEYS, argv, 2);
    const struct run run = run_of(req.command, 1, argv, 2);
    struct worker *worker = f.rig->worker;
    struct stats_histogram histogram;

    set(&f, "slowlog-log-slower-than", "1000");
    /* Two parts of a millisecond or more each, and an end. */
    for (unsigned i = 0; i < 2; i++) {
        worker->now_ns = clock_mono_ns() - 1000000;
        execute_count_part(&req);
        assert_string_equal(logged(&f), "");
        assert_false(
            stats_sum_spread(f.rig->service.stats, CMD_ID_KEYS, &histogram));
    }
    worker->now_ns = clock_mono_ns();
    execute_count(&req, &run, 1);
    assert_string_equal(logged(&f), "KEYS *|");
    assert_true(f.took_us >= 2000);
    assert_true(
        stats_sum_spread(f.rig->service.stats, CMD_ID_KEYS, &histogram));
    assert_int_equal(histogram.count, 1);
    assert_true(stats_percentile_ns(&histogram, 50) >= 2000000);
    /* The next one begins at zero. */
    worker->now_ns = clock_mono_ns();
    execute_count(&req, &run, 1);
    assert_int_equal(f.rig->session.worked_ns, 0);
    fixture_free(&f);
}
