/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A snapshot file as a row of sections: opens it by its header, reads it
 * section by section, and searches for what is intact behind damage.
 * snapshot_read.c reads what the sections hold; snapshot_format.h draws the
 * file and its sections. A struct section_file has one owner, on one thread. A
 * size in the file is believed only if the file has that many bytes.
 *
 * A source stands for a file that comes as a stream: then offsets must follow
 * one another, there is no search, and sizes are believed as far as the bytes
 * have come.
 */
#pragma once

#include "snapshot/snapshot_format.h"
#include "snapshot/snapshot_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SECTION_SCAN_BYTES = 64 << 10,
    RECORD_BYTES_MIN =
        RECORD_HEAD_BYTES_2 + CODEC_FIXED_BYTES + CODEC_LAYER_BYTES
};

/* The owner sets fd or source, and error; all other fields begin with zeros. */
struct section_file {
    int fd;
    const struct snapshot_source *source; /* NULL: a file */
    struct snapshot_error *error;         /* the last error */
    uint64_t bytes;        /* length; of a source UINT64_MAX until it ends */
    uint64_t ahead;        /* how far reading ahead was requested */
    uint64_t source_bytes; /* bytes read from the source */
    /* from the header: */
    uint64_t key, keys_announced;
    uint32_t databases;
    uint16_t version; /* if the header is damaged, the newest version, whose
                         rules also read older files */
    /* records read so far, for errors; the owner counts */
    uint64_t records;
    /* the payload that was read last, or memory from section_reserve */
    uint8_t *buffer;
    size_t buffer_bytes;
};

struct section {
    uint64_t offset, bytes, next; /* bytes: the length of the payload */
    uint64_t ordinal, seed;       /* seed: of the payload's hash */
    uint16_t type;                /* enum section_type */
};

/* Set *file->error and return its status. */
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

/* Reads and checks the header. Sets bytes, key, keys_announced and databases
 * even if the header is damaged, since a salvage may use them. */
enum snapshot_status section_open(struct section_file *file,
                                  uint8_t *ret_header);
void
section_close(struct section_file *file); /* frees the buffer; leaves fd open */

/* Reads bytes. Fails with SNAPSHOT_IO if a file is too short, and with
 * SNAPSHOT_DAMAGED if a source ends too early. */
enum snapshot_status section_read_bytes(struct section_file *file, void *to,
                                        size_t len, uint64_t offset);

/* Reads the head of a section at offset; the section must have the number
 * `ordinal`. On success the file is long enough for payload and hash, and the
 * payload's size is valid for its type. */
enum snapshot_status section_read_head(struct section_file *file,
                                       uint64_t offset, uint64_t ordinal,
                                       struct section *ret_section);

/* Reads the end section, which must be the last bytes of the file, and its
 * payload into file->buffer. Not for a source. */
enum snapshot_status section_read_end(struct section_file *file,
                                      struct section *ret_section);

/* section_begin_stamp() fills in the stamp of B, where the writing began
 * (snapshot_format.h), from an intact header. section_end_stamp() turns it into
 * the stamp of E, where the writing ended, by the end section, whose payload is
 * in file->buffer. */
void section_begin_stamp(const uint8_t *header,
                         struct snapshot_stamp *ret_stamp);
enum snapshot_status section_end_stamp(struct section_file *file,
                                       const struct section *section,
                                       struct snapshot_stamp *stamp);

/* Reads the whole payload into file->buffer, and checks its hash. */
enum snapshot_status section_read_payload(struct section_file *file,
                                          const struct section *section);

/* Checks that the file ends at offset; waits for the end of a source. */
enum snapshot_status section_expect_end(struct section_file *file,
                                        uint64_t offset);

/* Makes file->buffer at least `bytes` long; its old contents are lost. False:
 * there is no memory. */
bool section_reserve(struct section_file *file, size_t bytes);

/* Finds the first intact section at `at` or behind it that has the number
 * `ordinal` or a higher one, and does not have lines, which are useless without
 * the section that begins their filter. False if there is none. Uses the
 * buffer, which must have SECTION_SCAN_BYTES + PIECE_BYTES. */
bool section_find(struct section_file *file, uint64_t at, uint64_t ordinal,
                  struct section *ret_section);
