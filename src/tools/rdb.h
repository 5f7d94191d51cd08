/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads an RDB file of Redis or Valkey, or the RDB of a replication stream, and
 * takes out the filters of RedisBloom and valkey-bloom. Everything else is
 * skipped and counted, so the reader must know where each value ends; a type
 * that it does not know is an error. Memory is bounded by the longest filter;
 * no declared length is believed before its bytes are there. One thread.
 */
#pragma once

#include "tools/rdb_input.h"

enum rdb_module { RDB_MODULE_REDISBLOOM, RDB_MODULE_VALKEYBLOOM };

/* A filter; valid during the call. */
struct rdb_filter {
    uint64_t db;
    struct slice key;
    uint64_t expires_at_ms; /* 0: never */
    enum rdb_module module;
    struct slice value; /* the type and the value, as in DUMP; empty: the value
                           or the key is longer than the limit */
    uint64_t offset;    /* where its type stands in the file */
};

struct rdb_visitor {
    bool (*filter)(void *ctx, const struct rdb_filter *filter);
    void *ctx;
    size_t value_bytes_max;
};

/* The kinds that the report counts separately. */
enum rdb_kind {
    RDB_STRINGS,
    RDB_LISTS,
    RDB_SETS,
    RDB_SORTED_SETS,
    RDB_HASHES,
    RDB_STREAMS,
    RDB_MODULE_VALUES, /* values of other modules */
    RDB_MODULE_DATA,   /* data of modules outside of keys */
    RDB_FUNCTIONS,
    RDB_KIND_COUNT
};

/* Returns a word for people: "sorted sets". */
const char *rdb_kind_name(enum rdb_kind kind);

enum { RDB_TEXT_MAX = 64 };
struct rdb_result {
    enum rdb_status status;
    uint64_t offset;       /* where it failed, or the end */
    char why[RDB_WHY_MAX]; /* one English clause, without the file's name */
    char product[RDB_TEXT_MAX]; /* "redis 7.0.15" */
    unsigned version;
    bool checked; /* the file has a checksum, which is right */
    uint64_t filters;
    uint64_t skipped[RDB_KIND_COUNT];
    struct slice rest; /* bytes behind the end, from the last call of `next` */
};

/* Reads an RDB. Returns whether that succeeded; always sets *ret_result. */
bool rdb_read(const struct rdb_source *source,
              const struct rdb_visitor *visitor, struct rdb_result *ret_result);

/* Returns whether the payload of a RESTORE is a filter of one of the modules.
 */
bool rdb_payload_is_filter(struct slice payload);

/* Writes the end of a DUMP's payload, behind its value: a version and the
 * CRC-64 of everything before. */
enum { RDB_FOOTER_BYTES = 10 };
void rdb_put_footer(struct slice value, enum rdb_module module,
                    uint8_t *ret_footer);
