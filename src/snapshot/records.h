/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The records of a snapshot, for snapshot_read.c alone. Several threads make
 * the filters of a section if the visitor wants that; the reader's thread shows
 * them, in their order. Meanwhile the next section is read.
 */
#pragma once

#include "core/bloom.h"
#include "snapshot/section.h"
#include "snapshot/snapshot_visitor.h"

#include <stdatomic.h>

struct crew;
struct maker;
struct record_item;

/* The front of a record: everything but the lines. */
struct record {
    struct snapshot_record shown;
    struct codec_head head;
    const uint8_t *lines; /* where lines would begin */
    size_t front_bytes;
};

/* What a thread needs for reading records. The owner sets file and begin. */
struct record_parser {
    struct section_file *file;          /* for its errors and databases */
    const struct snapshot_stamp *begin; /* the header's */
    uint64_t copied_last; /* the highest position of all records so far */
    struct codec_memo memo;
};

/* A section whose filters are being made. */
struct record_batch {
    struct section section;
    uint8_t *buffer; /* its payload */
    size_t buffer_bytes;
    struct record_item *items;
    size_t count;
    uint64_t first;         /* number of records before this section */
    _Atomic size_t claimed; /* items taken by threads */
    atomic_bool failed;
};

/* The reader sets the first three fields; all others begin with zeros. */
struct records {
    struct record_parser parser; /* the parser of the reader's thread */
    const struct bloom_env *env;
    const struct snapshot_visitor *visitor;
    struct crew *crew;
    struct maker *makers;           /* one for each thread; NULL at first */
    struct record_batch batches[2]; /* used in turn */
    unsigned turn;
    struct record_batch *making; /* being made; or NULL */
};

/* Checks the record at `at`, except its lines. The section has `left` more
 * bytes. old: the record is of version 1 or 2. */
enum snapshot_status records_parse(struct record_parser *parser,
                                   const uint8_t *at, size_t left, bool old,
                                   uint64_t offset, struct record *ret_record);

/* Makes an empty filter for a record, in the caller's struct. */
enum snapshot_status records_make(const struct record_parser *parser,
                                  const struct bloom_env *env,
                                  const struct record *record, uint64_t offset,
                                  struct bloom *bloom);

/* Shows a filter, which the visitor then owns, and counts it. */
enum snapshot_status records_show(const struct records *records,
                                  const struct snapshot_record *shown,
                                  uint64_t offset, struct bloom *bloom);

/* Takes a section of small filters, which is in the file's buffer, and shows
 * the filters of the section before it. A section is shown only if all of it is
 * valid. An error is about the first wrong record of both sections. With one
 * thread, or while damage is passed over, this section is shown, too. */
enum snapshot_status records_take(struct records *records,
                                  const struct section *section);

/* Shows the filters of the last section that was taken. */
enum snapshot_status records_settle(struct records *records);

/* Returns the highest position of a copy among the records that were shown. */
uint64_t records_copied_last(const struct records *records);

/* Frees everything, also filters that were not shown. */
void records_fini(struct records *records);
