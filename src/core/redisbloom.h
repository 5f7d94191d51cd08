/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RedisBloom's stored forms: the header that begins a BF.SCANDUMP, and the
 * value in RDB files and DUMP payloads. Both become a head of our own stored
 * form (core/codec.h), so that they are checked and made like any filter.
 * redisbloom.c draws them. Hostile bytes; pure, any thread.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stddef.h>
#include <stdint.h>

#include "core/filling.h"
#include "core/rdb.h"

/* The id of the module's values in RDB files; the low 10 bits are a version. */
#define REDISBLOOM_MODULE_ID      0x3016E5A289BEF800U
#define REDISBLOOM_MODULE_VERSION 4U

enum {
    REDISBLOOM_LINK_BYTES = 53, /* of a layer in the header */
    REDISBLOOM_HEADER_BYTES_MAX = 20 + REDISBLOOM_LINK_BYTES * BLOOM_LAYERS_MAX
};

/* Makes an incomplete filter from the header of a BF.SCANDUMP, in the form of
 * any version of RedisBloom. On failure *ret_bloom is untouched. Fails with
 * BLOOM_CORRUPT, BLOOM_MAX_LAYERS, BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status redisbloom_read_header(const void *data, size_t len,
                                         const struct bloom_env *env,
                                         struct bloom **ret_bloom);

/* Writes the header of a filter of kind redisbloom, in the present version of
 * RedisBloom. Returns its length, at most REDISBLOOM_HEADER_BYTES_MAX. */
size_t redisbloom_put_header(const struct bloom *bloom, uint8_t *ret_bytes);

/* Makes a filter from the fields of a module's value and the mark at their end.
 * VERSION is the version in the module id. All bits are zero: *ret_filling then
 * fills them in, after the caller has set ret_filling->stored. Fails as
 * redisbloom_read_header() does, and with BLOOM_VERSION. */
enum bloom_status redisbloom_read_value(struct rdb_in *in, unsigned version,
                                        const struct bloom_env *env,
                                        struct filling *ret_filling,
                                        struct bloom **ret_bloom);

/* Appends the fields, and the mark at their end. */
void redisbloom_put_value(const struct bloom *bloom, struct rdb_out *out);
