/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Increments of a journal in memory, for tests: a first line, then groups of
 * BF.ADD commands with whatever items a test wants.
 */
#pragma once

#include "base/buf.h"
#include "persist/group.h"

#define LOG_RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define LOG_KEY    0x1122334455667788U
#define LOG_MS     1790000000000U

void log_first_line(struct buf *log, uint64_t key);

void log_select(struct buf *log);

void log_add(struct buf *log, struct slice item);

/* Closes what was appended since `begin`. */
void log_seal(struct buf *log, uint64_t key, size_t begin, uint64_t sequence,
              uint64_t durable);

/* A group of so many adds of items item-<sequence>-<i>. */
void log_group(struct buf *log, uint64_t key, uint64_t sequence,
               uint64_t durable, unsigned adds);
