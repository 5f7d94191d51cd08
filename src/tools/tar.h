/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The heads of POSIX tar archives, as far as backups need them: regular files
 * and directories, with a pax record for a long name or a size of 8 GiB and
 * more. Anything else is foreign. Pure.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TAR_BLOCK = 512,
    TAR_NAME_MAX = 511,
    TAR_RECORDS_MAX = 2 * TAR_BLOCK, /* bytes of pax records for one entry */
    TAR_HEAD_MAX = 2 * TAR_BLOCK + TAR_RECORDS_MAX
};

struct tar_entry {
    char name[TAR_NAME_MAX + 1]; /* a directory has no slash at its end */
    bool dir;
    uint64_t bytes;
};

/* Writes the head of an entry whose name is not too long; `seconds` is its time
 * since 1970. Returns the length, a multiple of TAR_BLOCK. */
size_t tar_put(const struct tar_entry *entry, uint64_t seconds,
               char ret_head[TAR_HEAD_MAX]);

/* Returns how many zeros must follow `bytes` bytes of contents. */
size_t tar_padding(uint64_t bytes);

enum tar_status {
    TAR_ENTRY,
    TAR_RECORDS, /* records of the next entry: ret_entry->bytes bytes of them
                    follow */
    TAR_ZEROS,   /* two of these blocks end an archive */
    TAR_FOREIGN
};
enum tar_status tar_get(const char block[TAR_BLOCK],
                        struct tar_entry *ret_entry);

/* Changes the entry as the records say. False: they are foreign. */
bool tar_get_records(struct slice records, struct tar_entry *entry);
