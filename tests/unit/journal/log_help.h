/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Increments of a journal in memory, for tests: a first line, then groups of
 * BF.ADD commands with whatever items a test wants.
 */
#pragma once

#include "base/buf.h"
#include "journal/group.h"

#include <inttypes.h>
#include <stdio.h>

#define LOG_RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define LOG_KEY    0x1122334455667788U
#define LOG_MS     1790000000000U

static inline void
log_first_line(struct buf *log, uint64_t key)
{
    struct group_file file = { .key = key, .created_ms = LOG_MS };

    memcpy(file.run_id, LOG_RUN_ID, sizeof(file.run_id));
    group_write_first_line(&file,
                           buf_reserve(log, (size_t)GROUP_FIRST_LINE_BYTES));
    log->len += GROUP_FIRST_LINE_BYTES;
}

static inline void
log_select(struct buf *log)
{
    buf_append_slice(log, slice_lit("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"));
}

static inline void
log_add(struct buf *log, struct slice item)
{
    buf_printf(log, "*3\r\n$6\r\nBF.ADD\r\n$4\r\nname\r\n$%zu\r\n", item.len);
    buf_append_slice(log, item);
    buf_append_slice(log, slice_lit("\r\n"));
}

/* Closes what was appended since `begin`. */
static inline void
log_seal(struct buf *log, uint64_t key, size_t begin, uint64_t sequence,
         uint64_t durable)
{
    struct group_hash *hash = group_hash_new();
    struct group_seal seal = { .sequence = sequence,
                               .unix_ms = LOG_MS + sequence,
                               .bytes = log->len - begin,
                               .durable_sequence = durable };

    group_hash_begin(hash, key);
    group_hash_add(hash, log->data + begin, log->len - begin);
    group_write_seal(hash, key, &seal,
                     buf_reserve(log, (size_t)GROUP_SEAL_BYTES));
    log->len += GROUP_SEAL_BYTES;
    group_hash_free(hash);
}

/* A group of so many adds of items item-<sequence>-<i>. */
static inline void
log_group(struct buf *log, uint64_t key, uint64_t sequence, uint64_t durable,
          unsigned adds)
{
    size_t begin = log->len;
    char item[48];

    log_select(log);
    for (unsigned i = 0; i < adds; i++) {
        (void)snprintf(item, sizeof(item), "item-%" PRIu64 "-%u", sequence, i);
        log_add(log, slice_of(item));
    }
    log_seal(log, key, begin, sequence, durable);
}
