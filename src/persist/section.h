/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A snapshot file as a row of sections: opened by its header, read section by
 * section, searched for what is intact behind damage. What the sections hold
 * is for snapshot_read.c; snapshot.c draws both. Owned by one reader, one
 * thread. Sizes are believed when the file has the bytes.
 *
 * A source stands for a file that comes as a stream: then offsets have to
 * follow one another, there is no search, and sizes are believed as far as the
 * bytes have come.
 */
#pragma once

#include "persist/snapshot_format.h"
#include "persist/snapshot_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SECTION_SCAN_BYTES = 64 << 10,
    RECORD_BYTES_MIN = RECORD_HEAD_BYTES + CODEC_FIXED_BYTES + CODEC_LAYER_BYTES
};

/* fd or source, and error, are the owner's, the rest begins with zeros. */
struct section_file {
    int fd;
    const struct snapshot_source *source; /* NULL: a file */
    struct snapshot_error *error;         /* the last one */
    uint64_t bytes; /* of a source UINT64_MAX, until it has ended */
    uint64_t ahead; /* up to here the disk was asked */
    uint64_t taken; /* from the source */
    /* of the header */
    uint64_t key, keys_announced;
    uint32_t databases;
    uint16_t version; /* the newest if it is damaged: it reads the others too */
    /* records read so far: what errors tell; the owner counts */
    uint64_t records;
    /* of the last section_read_payload or section_reserve */
    uint8_t *buffer;
    size_t buffer_bytes;
};

struct section {
    uint64_t offset, bytes, next; /* bytes: of the payload */
    uint64_t ordinal, seed;       /* seed: of the payload's hash */
    uint16_t type;                /* enum section_type */
};

/* Each fills in *file->error and returns its status. */
enum snapshot_status section_fail(struct section_file *file,
                                  enum snapshot_status status, uint64_t offset,
                                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));
enum snapshot_status section_damaged(struct section_file *file, uint64_t offset,
                                     const char *what);
enum snapshot_status section_no_memory(struct section_file *file,
                                       uint64_t offset, uint64_t bytes);

enum snapshot_status section_bad_hash(struct section_file *file,
                                      uint64_t offset);

/* Reads and checks the header. bytes, key, keys_announced and databases are
 * taken even if it is damaged: one of them may help. */
enum snapshot_status section_open(struct section_file *file,
                                  uint8_t *ret_header);
void section_close(struct section_file *file); /* the buffer; not the fd */

/* The file has the bytes: short is SNAPSHOT_IO. A source may end:
 * SNAPSHOT_DAMAGED. */
enum snapshot_status section_read_bytes(struct section_file *file, void *to,
                                        size_t len, uint64_t offset);

/* The head at offset, which has to be that of section number `ordinal`.
 * Afterwards payload and hash are known to be in the file, and the payload's
 * size to be one that its type may have. */
enum snapshot_status section_read_head(struct section_file *file,
                                       uint64_t offset, uint64_t ordinal,
                                       struct section *ret_section);

/* The whole payload into file->buffer, and its hash holds. */
enum snapshot_status section_read_payload(struct section_file *file,
                                          const struct section *section);

/* Nothing is at offset or behind it; a source is waited for. */
enum snapshot_status section_expect_end(struct section_file *file,
                                        uint64_t offset);

/* Makes file->buffer so large; its old bytes are lost. */
bool section_reserve(struct section_file *file, size_t bytes);

/* The first intact section from `at` on, with a number from `ordinal` on, with
 * which something begins; false if there is none. Uses the buffer: it must
 * have SECTION_SCAN_BYTES + PIECE_BYTES. */
bool section_find(struct section_file *file, uint64_t at, uint64_t ordinal,
                  struct section *ret_section);
