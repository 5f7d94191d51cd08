/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LATENCY: events that took long (measure/latency), and histograms of command
 * times (measure/stats).
 */
#include "measure/latency.h"

#include "access/handlers.h"
#include "base/clock.h"
#include "command/cmd_command.h"
#include "engine/dialect.h"
#include "engine/request.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- events -------------------------------------------------------------- */

enum err
cmd_latency_latest(struct request *req)
{
    size_t place = reply_begin(req->reply), count = 0;
    struct latency_series series;

    for (unsigned i = 0; i < LATENCY_EVENTS; i++) {
        const struct latency_sample *last;

        latency_read(req->service->latency, (enum latency_event)i, &series);
        if (series.count == 0) {
            continue;
        }
        last = &series.sample[series.count - 1];
        reply_array(req->reply, 4);
        reply_bulk_text(req->reply, latency_event_name((enum latency_event)i));
        reply_int(req->reply, (int64_t)last->time_s);
        reply_int(req->reply, (int64_t)last->took_ms);
        reply_int(req->reply, (int64_t)series.worst_ms);
        count++;
    }
    reply_array_end(req->reply, place, count);
    return OK;
}

/* Reads the samples of a named event; none for an unknown name. */
static void
read_named(struct request *req, struct slice name,
           struct latency_series *ret_series)
{
    enum latency_event event;

    ret_series->count = 0;
    if (latency_event_find(name, &event)) {
        latency_read(req->service->latency, event, ret_series);
    }
}

enum err
cmd_latency_history(struct request *req)
{
    struct latency_series series;

    read_named(req, args_bytes(&req->args), &series);
    reply_array(req->reply, series.count);
    for (size_t i = 0; i < series.count; i++) {
        reply_array(req->reply, 2);
        reply_int(req->reply, (int64_t)series.sample[i].time_s);
        reply_int(req->reply, (int64_t)series.sample[i].took_ms);
    }
    return OK;
}

enum err
cmd_latency_reset(struct request *req)
{
    bool all = args_left(&req->args) == 0;
    int64_t count = 0;
    enum latency_event event;

    for (unsigned i = 0; all && i < LATENCY_EVENTS; i++) {
        count += latency_reset(req->service->latency, (enum latency_event)i);
    }
    while (args_left(&req->args) > 0) {
        if (latency_event_find(args_bytes(&req->args), &event)) {
            count += latency_reset(req->service->latency, event);
        }
    }
    reply_int(req->reply, count);
    return OK;
}

/* ---- GRAPH --------------------------------------------------------------- */

enum { GRAPH_COLUMNS = 80, GRAPH_ROWS = 4, AGE_MAX = 8 };

/* Writes an age: "17s", "5m", "3h" or "2d". */
static void
format_age(uint64_t seconds, char *ret_text)
{
    static const struct {
        uint64_t seconds;
        char unit;
    } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    size_t i = 0;

    while (i < 3 && seconds < units[i].seconds) {
        i++;
    }
    (void)snprintf(ret_text, AGE_MAX, "%" PRIu64 "%c",
                   seconds / units[i].seconds % 100000, units[i].unit);
}

/* Returns how many rows of a column are filled: none for the lowest value, all
 * for the highest. */
static unsigned
height(uint64_t value, uint64_t low, uint64_t high)
{
    return high == low ? GRAPH_ROWS
                       : (unsigned)((double)(value - low) * GRAPH_ROWS /
                                        (double)(high - low) +
                                    0.5);
}

static void
draw_row(const struct latency_sample *samples, size_t count, unsigned row,
         const struct latency_sample *bounds, struct buf *text)
{
    for (size_t i = 0; i < count; i++) {
        unsigned top =
            height(samples[i].took_ms, bounds[0].took_ms, bounds[1].took_ms);
        char mark = ' ';

        if (top == row) {
            mark = row == 0 ? '_' : '#';
        } else if (top > row && row > 0) {
            mark = '|';
        }
        buf_append(text, &mark, 1);
    }
    buf_append(text, "\n", 1);
}

/* Draws the age of each sample, written downwards. */
static void
draw_ages(const struct latency_sample *samples, size_t count, uint64_t now_s,
          struct buf *text)
{
    bool more = true;

    for (size_t line = 0; more && line < AGE_MAX; line++) {
        size_t begin = text->len;

        more = false;
        for (size_t i = 0; i < count; i++) {
            uint64_t time_s = samples[i].time_s;
            char age[AGE_MAX];

            format_age(now_s > time_s ? now_s - time_s : 0, age);
            more = more || line < strlen(age);
            buf_append(text, line < strlen(age) ? &age[line] : " ", 1);
        }
        if (more) {
            buf_append(text, "\n", 1);
        } else {
            text->len = begin;
        }
    }
}

static void
draw(const char *name, const struct latency_series *series, struct buf *text)
{
    size_t count =
        series->count < GRAPH_COLUMNS ? series->count : (size_t)GRAPH_COLUMNS;
    const struct latency_sample *samples =
        series->sample + series->count - count;
    struct latency_sample bounds[2] = { samples[0], samples[0] };
    char line[GRAPH_COLUMNS];

    for (size_t i = 1; i < count; i++) {
        if (samples[i].took_ms < bounds[0].took_ms) {
            bounds[0] = samples[i];
        }
        if (samples[i].took_ms > bounds[1].took_ms) {
            bounds[1] = samples[i];
        }
    }
    buf_printf(text,
               "%s - high %" PRIu64 " ms, low %" PRIu64
               " ms (all time high %" PRIu64 " ms)\n",
               name, bounds[1].took_ms, bounds[0].took_ms, series->worst_ms);
    memset(line, '-', sizeof(line));
    buf_append(text, line, sizeof(line));
    buf_append(text, "\n", 1);
    for (unsigned row = GRAPH_ROWS + 1; row-- > 0;) {
        draw_row(samples, count, row, bounds, text);
    }
    buf_append(text, "\n", 1);
    draw_ages(samples, count, clock_wall_ms() / 1000, text);
}

enum err
cmd_latency_graph(struct request *req)
{
    struct slice name = args_bytes(&req->args);
    struct latency_series series;
    struct buf text = { 0 };
    enum latency_event event;

    read_named(req, name, &series);
    if (series.count == 0) {
        return request_fail(req, ERR_CUSTOM,
                            "No samples available for event '%.*s'",
                            slice_shown(name), name.data);
    }
    CHECK(latency_event_find(name, &event));
    draw(latency_event_name(event), &series, &text);
    reply_text(req->reply, &text);
    return OK;
}

/* ---- DOCTOR -------------------------------------------------------------- */

enum err
cmd_latency_doctor(struct request *req)
{
    int64_t threshold_ms = req->service->conf->latency_monitor_threshold;
    uint64_t now_s = clock_wall_ms() / 1000;
    struct latency_series series;
    struct buf text = { 0 };

    for (unsigned i = 0; i < LATENCY_EVENTS; i++) {
        char age[AGE_MAX];
        uint64_t last_s;

        latency_read(req->service->latency, (enum latency_event)i, &series);
        if (series.count == 0) {
            continue;
        }
        last_s = series.sample[series.count - 1].time_s;
        format_age(now_s > last_s ? now_s - last_s : 0, age);
        buf_printf(&text,
                   "%s%s took too long in %zu second%s, at worst %" PRIu64
                   " ms, most recently %s ago with %" PRIu64 " ms",
                   text.len > 0 ? "; " : "",
                   latency_event_name((enum latency_event)i), series.count,
                   series.count == 1 ? "" : "s", series.worst_ms, age,
                   series.sample[series.count - 1].took_ms);
    }
    if (text.len > 0) {
        buf_printf(&text, ".\n");
    } else if (threshold_ms > 0) {
        buf_printf(&text,
                   "Nothing took %" PRId64 " ms or longer (the value of "
                   "latency-monitor-threshold) since the monitor was switched "
                   "on or reset.\n",
                   threshold_ms);
    } else {
        buf_printf(&text, "The latency monitor is switched off and has "
                          "recorded nothing: set latency-monitor-threshold to "
                          "a number of milliseconds.\n");
    }
    reply_text(req->reply, &text);
    return OK;
}

/* ---- HISTOGRAM ----------------------------------------------------------- */

enum { FIRST_BITS = 10 /* 1 us */ };

/* Replies with how many calls took at most 1031 ns, 2063 ns, and so on
 * (stats.h), in whole microseconds. A count equal to the one before is left
 * out. */
static void
show_histogram(struct request *req, unsigned id,
               const struct stats_histogram *histogram)
{
    uint64_t below[STATS_NS_BITS + 1] = { 0 };
    size_t steps = 0;

    for (unsigned bits = FIRST_BITS; bits <= STATS_NS_BITS; bits++) {
        below[bits] = stats_count_below(histogram, bits);
        steps += below[bits] > below[bits - 1];
    }
    reply_bulk_text(req->reply,
                    dialect_command_name(req->service, command_at(id)));
    reply_map(req->reply, 2);
    reply_named_int(req->reply, "calls", histogram->count);
    reply_bulk_text(req->reply, "histogram_usec");
    reply_map(req->reply, steps);
    for (unsigned bits = FIRST_BITS; bits <= STATS_NS_BITS; bits++) {
        if (below[bits] > below[bits - 1]) {
            reply_int(req->reply, (int64_t)(stats_step_ns(bits) / 1000));
            reply_int(req->reply, (int64_t)below[bits]);
        }
    }
}

/* Shows the histograms of the rows that have times. Returns their count. */
static size_t
show_rows(struct request *req, unsigned first, unsigned count)
{
    struct stats_histogram histogram;
    size_t shown = 0;

    for (unsigned id = first; id < first + count; id++) {
        if (stats_sum_spread(req->service->stats, id, &histogram)) {
            show_histogram(req, id, &histogram);
            shown++;
        }
    }
    return shown;
}

/* A container's name stands for its subcommands too. */
enum err
cmd_latency_histogram(struct request *req)
{
    bool all = args_left(&req->args) == 0;
    size_t place = reply_begin(req->reply);
    size_t count = all ? show_rows(req, 0, CMD_ID_COUNT) : 0;

    while (args_left(&req->args) > 0) {
        const struct command *command =
            cmd_command_find(args_bytes(&req->args));

        if (command != NULL) {
            count += show_rows(req, command_id(command),
                               1 + cmd_command_count_subs(command));
        }
    }
    reply_map_end(req->reply, place, count);
    return OK;
}
