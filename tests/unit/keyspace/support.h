/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of this layer share: names, filters, a keyspace, and a
 * sequence of random numbers that the printed seed repeats.
 */
#pragma once

#include "../test.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "keyspace/keyspace.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/make.h"
#include "keyspace/memory.h"
#include "keyspace/reclaim.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 24 };

/* xorshift64*; never 0. */
struct sequence {
    uint64_t state;
};

struct sequence sequence_of(uint64_t salt);

uint64_t sequence_below(struct sequence *sequence, uint64_t bound);

/* A key whose name lives with it. */
struct test_key {
    struct key key;
    char name[NAME_MAX_BYTES];
};

const struct key *test_key_set(struct test_key *key, uint32_t db,
                               uint64_t number);

uint64_t number_of(const struct entry *entry);

struct bloom_env test_env(void);

/* NULL if memory was refused. */
struct bloom *test_bloom(uint64_t capacity);

/* By which a filter is known, wherever it is moved to. */
const void *test_lines(const struct bloom *bloom);

void test_bloom_free(struct bloom *bloom);

struct keyspace *test_keyspace(unsigned threads);

struct entry *test_put_sized(struct keyspace *ks, const struct key *key,
                             uint64_t capacity);

struct entry *test_put(struct keyspace *ks, const struct key *key);

uint64_t test_count(const struct keyspace *ks, uint32_t db);

uint64_t test_expires(const struct keyspace *ks, uint32_t db);

void test_reclaim_all(struct keyspace *ks, uint64_t now_ms);
