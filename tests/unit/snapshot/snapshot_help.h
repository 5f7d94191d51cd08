/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Helpers for tests of snapshots: keyspaces of known or random filters,
 * snapshots in memory, and ways to load and to compare them.
 */
#pragma once

#include "../keyspace/support.h"
#include "base/file.h"
#include "keyspace/scan.h"
#include "snapshot/snapshot_format.h"
#include "snapshot/snapshot_read.h"
#include "snapshot/snapshot_whole.h"

#include <endian.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct bytes {
    uint8_t *data;
    size_t len;
};

int memory_file(struct bytes content);

struct bytes read_all(int fd);

struct snapshot_stamp test_stamp(void);

struct bytes snapshot_of_keyspace(const struct keyspace *ks);

/* ---- keyspaces ----------------------------------------------------------- */

struct filter_spec {
    const char *name;
    uint32_t db;
    uint64_t expires_at_ms, incarnation;
    struct bloom_params params;
    unsigned adds;
};

struct bloom *make_filter(const struct bloom_params *params, unsigned adds);

void put_filter(struct keyspace *ks, const struct key *key, struct bloom *bloom,
                uint64_t incarnation, uint64_t expires_at_ms);

struct key key_of(struct slice name, uint32_t db);

void put_spec(struct keyspace *ks, const struct filter_spec *spec);

/* The golden snapshot of version 1 holds these: never change them. Several
 * databases, times to live (one over), chains of layers, nonscaling,
 * an empty name, and one that goes the way of large filters. */
enum { MIXED = 8 };
extern const struct filter_spec mixed_specs[MIXED];

struct keyspace *first_specs(size_t count);

struct keyspace *mixed_keyspace(void);

/* ---- sections of a snapshot in memory ------------------------------------ */

size_t section_bytes(struct bytes content, size_t at);

void fill_random(uint64_t *random, uint8_t *to, size_t len);

/* ---- as a stream ----------------------------------------------------------
 */

/* The bytes of a file, one after the other. */
struct stream {
    int fd;
    uint64_t at;
    uint64_t fail_at; /* 0: never */
    int error;
};

struct snapshot_source stream_source(struct stream *stream);

/* ---- loading ------------------------------------------------------------- */

struct stretch {
    uint64_t from, to;
    struct snapshot_error error;
};

struct loading {
    struct keyspace *ks; /* NULL: filters are freed at once */
    struct bloom_env env;
    uint64_t shown;
    uint64_t stop_at; /* 0: never */
    struct stretch stretches[64];
    size_t stretch_count;
    struct snapshot_error error;
    struct snapshot_progress progress;
};

bool load_filter(void *ctx, const struct snapshot_record *record,
                 struct bloom *bloom);

enum snapshot_status load_fd(struct loading *loading, int fd, bool salvage);

enum snapshot_status load_bytes(struct loading *loading, struct bytes content,
                                bool salvage);

/* ---- comparing ----------------------------------------------------------- */

bool is_in_other(void *ctx, uint32_t db, const struct entry *entry,
                 uint64_t expires_at_ms);

uint64_t count_all(const struct keyspace *ks);

void assert_same_keyspaces(struct keyspace *a, struct keyspace *b);
