/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the tests of this layer: names, filters, a keyspace, and random
 * numbers that the printed seed repeats.
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

/* Returns the state of a test_random() sequence, another one for each salt. */
uint64_t random_of(uint64_t salt);

/* A key whose name lives with it. */
struct test_key {
    struct key key;
    char name[NAME_MAX_BYTES];
};

const struct key *test_key_set(struct test_key *key, uint32_t db,
                               uint64_t number);

uint64_t number_of(const struct entry *entry);

struct bloom_env test_env(void);

/* Returns NULL if memory was refused. */
struct bloom *test_bloom(uint64_t capacity);

/* Returns the address of the lines, which identifies a filter that is moved. */
const void *test_lines(const struct bloom *bloom);

void test_bloom_free(struct bloom *bloom);

struct keyspace *test_keyspace(unsigned threads);

struct entry *test_put_sized(struct keyspace *ks, const struct key *key,
                             uint64_t capacity);

struct entry *test_put(struct keyspace *ks, const struct key *key);

uint64_t test_count(const struct keyspace *ks, uint32_t db);

uint64_t test_expires(const struct keyspace *ks, uint32_t db);

void test_reclaim_all(struct keyspace *ks, uint64_t now_ms);
