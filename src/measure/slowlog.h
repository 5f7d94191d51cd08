/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The slow log: the latest slow commands, each with its time, its client and
 * the beginning of its arguments. All loops share it, under a leaf lock.
 */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

/* An entry keeps so many arguments and so many bytes of each. A note says how
 * much was left out. */
enum { SLOWLOG_ARGS_MAX = 32, SLOWLOG_ARG_BYTES_MAX = 128 };

/* The limit of all entries together; the oldest are dropped first. */
#define SLOWLOG_BYTES_MAX ((size_t)16 << 20)

struct slowlog;

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* Sets the maximal number of entries, and drops the oldest beyond it. */
void slowlog_set_length(struct slowlog *log, uint64_t length);

struct slowlog_entry {
    uint64_t id;
    uint64_t time_s; /* wall clock, when the command ended */
    uint64_t took_us;
    const struct slice *argv;
    size_t argc;
    struct slice addr, name; /* address and name of the client */
};

/* Adds a copy of `from` under the next id. If argc is above SLOWLOG_ARGS_MAX,
 * argv need only hold so many. Adds nothing without memory, or if the maximal
 * number is 0. */
void slowlog_add(struct slowlog *log, const struct slowlog_entry *from);

/* Calls `entry` for at most `count` entries, the newest first, and returns
 * their number. before_id: only entries with a lower id, so that a long log can
 * be shown in pieces. `entry` runs under the lock and must not call the log. */
struct slowlog_visitor {
    void (*entry)(void *ctx, const struct slowlog_entry *entry);
    void *ctx;
    uint64_t before_id; /* 0: begin with the newest */
};
uint64_t slowlog_visit(struct slowlog *log, uint64_t count,
                       const struct slowlog_visitor *visitor);

size_t slowlog_length(struct slowlog *log);
size_t slowlog_bytes(struct slowlog *log); /* of memory */
void slowlog_reset(struct slowlog *log);   /* the next id stays */
