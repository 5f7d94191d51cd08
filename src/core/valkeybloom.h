/* SPDX-License-Identifier: BSD-3-Clause
 *
 * valkey-bloom's stored forms: the payload of its BF.LOAD, and the value in RDB
 * files and DUMP payloads. Both become a head of our own stored form
 * (core/codec.h), so that they are checked and made like any filter.
 * valkeybloom.c draws them. Hostile bytes; pure, any thread.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stddef.h>
#include <stdint.h>

#include "core/filling.h"
#include "core/rdb.h"

/* The id of the module's values in RDB files; the low 10 bits are a version. */
#define VALKEYBLOOM_MODULE_ID      0x6E5A2899F96DAC00U
#define VALKEYBLOOM_MODULE_VERSION 1U

/* Makes a filter from the payload of a BF.LOAD. On failure *ret_bloom is
 * untouched. Fails with BLOOM_CORRUPT, BLOOM_VERSION, BLOOM_MAX_LAYERS,
 * BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status valkeybloom_load(const void *data, size_t len,
                                   const struct bloom_env *env,
                                   struct bloom **ret_bloom);

/* Does the same, but leaves all bits zero: *ret_filling then fills them in from
 * the payload. */
enum bloom_status valkeybloom_begin_load(const void *data, size_t len,
                                         const struct bloom_env *env,
                                         struct filling *ret_filling,
                                         struct bloom **ret_bloom);

/* Appends the payload of a BF.LOAD of a filter of kind valkeybloom. */
void valkeybloom_put_load(const struct bloom *bloom, struct rdb_out *out);

/* Makes a filter from the fields of a module's value and the mark at their end.
 * VERSION is the version in the module id. All bits are zero: *ret_filling then
 * fills them in, after the caller has set ret_filling->stored. Fails as
 * valkeybloom_load() does. */
enum bloom_status valkeybloom_read_value(struct rdb_in *in, unsigned version,
                                         const struct bloom_env *env,
                                         struct filling *ret_filling,
                                         struct bloom **ret_bloom);

/* Appends the fields, and the mark at their end. */
void valkeybloom_put_value(const struct bloom *bloom, struct rdb_out *out);
