/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the tests of the filter: an allocator that counts its bytes and
 * fails when a test asks for it, and functions that make, fill and compare
 * filters.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/bloom.h"
#include "core/plan.h"

struct fault_heap {
    uint64_t calls;    /* allocations asked for */
    uint64_t fail_at;  /* the call that fails, from 1; 0: none */
    uint64_t out;      /* bytes not yet freed */
    uint64_t most_ask; /* largest single allocation asked for */
};

struct bloom_env fault_env(struct fault_heap *heap);

struct bloom_params params_of(uint64_t capacity, double error_rate,
                              uint32_t expansion);

/* Makes them the parameters of a filter of this kind. */
void set_kind(struct bloom_params *params, uint32_t kind);

struct bloom_hash hash_id(const struct bloom *bloom, uint64_t id);

struct bloom *make(const struct bloom_params *params,
                   const struct bloom_env *env);

/* Adds ids until COUNT of them were new; returns the next unused id. */
uint64_t fill(struct bloom *bloom, const struct bloom_env *env, uint64_t id,
              uint64_t count);

struct snapshot {
    struct bloom_info info;
    uint64_t hash;
};

/* Everything that can be observed, in a few words. */
struct snapshot snapshot_of(const struct bloom *bloom);

/* The least limit under which it may be stored and copied. */
uint64_t least_limit(const struct bloom *bloom);

void assert_same(struct snapshot before, struct snapshot after);
