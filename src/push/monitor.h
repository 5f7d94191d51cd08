/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MONITOR: clients that receive every command. Each loop has a list of its own
 * receivers.
 */
#pragma once

#include "push/notice.h"
#include "push/receiver.h"

struct monitor;

struct monitor *monitor_new(unsigned loops);
void monitor_free(struct monitor *monitor);

/* Called only on the loop of the receivers. monitor_cut closes the connections
 * of a loop's receivers, after a notice was lost. */
void monitor_join(struct monitor *monitor, struct receiver *receiver);
void monitor_leave(struct monitor *monitor, struct receiver *receiver);
void monitor_deliver(struct monitor *monitor, unsigned loop,
                     const struct notice *notice);
void monitor_cut(struct monitor *monitor, unsigned loop);

/* A command for MONITOR. monitor_feed() writes it as the line
 *   1700000000.123456 [0 127.0.0.1:5000] "bf.add" "k" "x"
 * and posts the line to every loop with monitors. It shortens a long argument
 * to its first bytes and "... (n more bytes)", and a long line to its first
 * arguments and "... (n more arguments)". */
struct monitor_line {
    uint64_t wall_us;
    uint32_t db;
    const char *address;
    const struct slice *argv;
    size_t argc;
};
void monitor_feed(struct monitor *monitor, const struct monitor_line *what,
                  struct notice_list *list);
