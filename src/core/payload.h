/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The payload of DUMP and RESTORE in Redis and Valkey, for filters of the
 * modules RedisBloom and valkey-bloom:
 *
 *   1  type: 7, a module's value
 *   9  module id (core/rdb.h: a length), its low 10 bits a version
 *   -  fields (core/redisbloom.c, core/valkeybloom.c), and their end
 *   2  RDB version, little-endian: 10, of valkey-bloom 11
 *   8  CRC-64 of everything before (core/crc64.h), little-endian
 *
 * The bytes may be hostile. The functions are pure; any thread may call them.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/filling.h"

/* Returns whether the bytes can only be a payload of one of the modules, not
 * one of ours. */
bool payload_is_foreign(const void *data, size_t len);

/* Returns whether the last 8 bytes are the CRC of the bytes before them. */
bool payload_sum_holds(const void *data, size_t len);

/* Returns the type of an intact payload that is no filter: "string", "hash", or
 * the name of a module's type. NULL if it is not intact, or its RDB version or
 * type is not known here. */
enum { PAYLOAD_TYPE_MAX = 16 };
const char *payload_other_type(const void *data, size_t len,
                               char ret_name[PAYLOAD_TYPE_MAX]);

/* Makes a filter from a payload of either module. The RDB version may be any,
 * since the value does not depend on it. On failure *ret_bloom is untouched.
 * Fails with BLOOM_CORRUPT (also for another module's value), BLOOM_VERSION,
 * BLOOM_MAX_LAYERS, BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status payload_load(const void *data, size_t len,
                               const struct bloom_env *env,
                               struct bloom **ret_bloom);

/* Does the same, but neither looks at the checksum nor sets any bit:
 * *ret_filling then fills in the bits from the payload. */
enum bloom_status payload_begin(const void *data, size_t len,
                                const struct bloom_env *env,
                                struct filling *ret_filling,
                                struct bloom **ret_bloom);

/* Loads a payload of either module, with incarnation 0, or one of ours. DUMP
 * never returns an incomplete filter, so such a payload is BLOOM_CORRUPT. */
enum bloom_status payload_load_any(const void *data, size_t len,
                                   const struct bloom_env *env,
                                   uint64_t *ret_incarnation,
                                   struct bloom **ret_bloom);

/* Makes an incomplete filter from the header that begins a BF.SCANDUMP. This is
 * RedisBloom's own header for a filter of kind redisbloom, else the head of our
 * stored form (core/codec_head.h). Fails as payload_load() does. */
enum bloom_status payload_read_header(const void *data, size_t len,
                                      const struct bloom_env *env,
                                      struct bloom **ret_bloom);

/* Returns at least the length of the header of a complete filter. */
size_t payload_header_bytes(const struct bloom *bloom);

/* Writes the header and returns its length. */
size_t payload_put_header(const struct bloom *bloom, void *ret_bytes);

/* Returns the length of the payload of a complete filter of a foreign kind. */
uint64_t payload_bytes(const struct bloom *bloom);

/* Writes exactly payload_bytes() bytes. */
void payload_put(const struct bloom *bloom, void *ret_bytes);

/* Do the same for a complete filter of any kind. A kind that is not foreign has
 * a payload in our own form, and only this form keeps the incarnation. */
uint64_t payload_bytes_any(const struct bloom *bloom);
void payload_put_any(const struct bloom *bloom, uint64_t incarnation,
                     void *ret_bytes);
