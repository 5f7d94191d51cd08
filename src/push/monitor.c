/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The line is the same as in Redis, except that a very long one is shortened,
 * so that a large command does not fill the inboxes.
 */
#include "push/monitor.h"

#include "base/err.h"
#include "base/mem.h"

enum {
    WORD_BYTES_MAX = 16 * 1024,
    LINE_BYTES_MAX = 128 * 1024,
};

struct monitor_loop {
    _Alignas(64) struct receiver *first; /* the loop's alone */
    _Atomic uint64_t count;              /* read by all loops */
};

struct monitor {
    unsigned loops;
    struct monitor_loop *loop;
};

struct monitor *
monitor_new(unsigned loops)
{
    struct monitor *monitor = mem_zalloc(sizeof(*monitor));

    monitor->loops = loops;
    monitor->loop = mem_lines(loops * sizeof(struct monitor_loop));
    return monitor;
}

void
monitor_free(struct monitor *monitor)
{
    if (monitor != NULL) {
        mem_free_lines(monitor->loop,
                       monitor->loops * sizeof(struct monitor_loop));
        mem_free(monitor);
    }
}

void
monitor_join(struct monitor *monitor, struct receiver *receiver)
{
    struct monitor_loop *loop = &monitor->loop[receiver->loop];

    CHECK(receiver->loop < monitor->loops);
    CHECK(!atomic_load(&receiver->monitors));
    receiver->next_monitor = loop->first;
    receiver->monitor_at = &loop->first;
    if (loop->first != NULL) {
        loop->first->monitor_at = &receiver->next_monitor;
    }
    loop->first = receiver;
    atomic_store(&receiver->monitors, true);
    (void)atomic_fetch_add(&loop->count, 1);
}

void
monitor_leave(struct monitor *monitor, struct receiver *receiver)
{
    struct monitor_loop *loop = &monitor->loop[receiver->loop];

    CHECK(atomic_load(&receiver->monitors));
    *receiver->monitor_at = receiver->next_monitor;
    if (receiver->next_monitor != NULL) {
        receiver->next_monitor->monitor_at = receiver->monitor_at;
    }
    atomic_store(&receiver->monitors, false);
    (void)atomic_fetch_sub(&loop->count, 1);
}

void
monitor_deliver(struct monitor *monitor, unsigned loop,
                const struct notice *notice)
{
    struct buf bytes = { 0 };

    buf_append_slice(&bytes, notice->payload);
    for (struct receiver *receiver = monitor->loop[loop].first;
         receiver != NULL; receiver = receiver->next_monitor) {
        receiver_push(receiver, &bytes, notice->hold_until);
    }
    buf_free(&bytes);
}

void
monitor_cut(struct monitor *monitor, unsigned loop)
{
    for (struct receiver *receiver = monitor->loop[loop].first;
         receiver != NULL; receiver = receiver->next_monitor) {
        receiver_cut(receiver);
    }
}

/* ---- the line ------------------------------------------------------------ */

static void
append_word(struct buf *line, struct slice word)
{
    size_t shown = word.len < WORD_BYTES_MAX ? word.len : WORD_BYTES_MAX;

    buf_append(line, " \"", 2);
    buf_append_escaped(line, (struct slice){ word.data, shown });
    if (shown < word.len) {
        buf_printf(line, "... (%zu more bytes)", word.len - shown);
    }
    buf_append(line, "\"", 1);
}

static void
append_line(struct buf *line, const struct monitor_line *what)
{
    size_t i = 0;

    buf_printf(line, "+%llu.%06llu [%u %s]",
               (unsigned long long)(what->wall_us / 1000000),
               (unsigned long long)(what->wall_us % 1000000), what->db,
               what->address);
    for (; i < what->argc && line->len < LINE_BYTES_MAX; i++) {
        append_word(line, what->argv[i]);
    }
    if (i < what->argc) {
        buf_printf(line, " \"... (%zu more arguments)\"", what->argc - i);
    }
    buf_append(line, "\r\n", 2);
}

void
monitor_feed(struct monitor *monitor, const struct monitor_line *what,
             struct notice_list *list)
{
    struct notice *notice = NULL;
    struct buf line = { 0 };

    append_line(&line, what);
    if (!line.failed) {
        notice = notice_new(NOTICE_MONITOR, 0, (struct slice){ NULL, 0 },
                            buf_slice(&line));
    }
    for (unsigned i = 0; i < monitor->loops; i++) {
        if (atomic_load(&monitor->loop[i].count) > 0) {
            notice_list_add(list, notice, i, 0);
        }
    }
    notice_unref(notice);
    buf_free(&line);
}
