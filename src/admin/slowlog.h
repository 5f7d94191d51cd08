/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The slow log: the last commands that took long, each with its time, its
 * client and the beginning of its arguments. Shared by all loops; a lock of
 * its own, a leaf, is held for as long as an entry is put in or shown.
 */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

/* What an entry keeps of the arguments; of what is longer, the last word says
 * how much there was. */
enum { SLOWLOG_ARGS_MAX = 32, SLOWLOG_ARG_BYTES_MAX = 128 };

/* All entries together stay below this; the oldest ones go first. */
#define SLOWLOG_BYTES_MAX ((size_t)16 << 20)

struct slowlog;

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* The most entries that are kept; the oldest ones beyond it go. */
void slowlog_set_length(struct slowlog *log, uint64_t length);

struct slowlog_entry {
    uint64_t id;
    uint64_t time_s; /* wall clock, at its end */
    uint64_t took_us;
    const struct slice *argv;
    size_t argc;
    struct slice addr, name; /* of the client */
};

/* Puts in a copy of `from` under the next id. argv has the first words, at
 * least SLOWLOG_ARGS_MAX of them if argc says that there are more. Without
 * memory, and with a length of 0, nothing is put in. */
void slowlog_add(struct slowlog *log, const struct slowlog_entry *from);

/* Shows the newest `count` entries, the newest first; or, with before_id, those
 * that are older than it, so that a long log can be shown in pieces. `total`,
 * if there is one, is called before with how many they could be at most. Under
 * the lock: neither calls the log. Returns how many were shown. */
struct slowlog_visitor {
    void (*total)(void *ctx, size_t entries);
    void (*entry)(void *ctx, const struct slowlog_entry *entry);
    void *ctx;
    uint64_t before_id; /* 0: from the newest on */
};
uint64_t slowlog_visit(struct slowlog *log, uint64_t count,
                       const struct slowlog_visitor *visitor);

size_t slowlog_length(struct slowlog *log);
size_t slowlog_bytes(struct slowlog *log); /* of memory */
void slowlog_reset(struct slowlog *log);   /* ids go on */
