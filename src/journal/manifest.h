/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal directory's table of contents: a short text with a checksum,
 * replaced as a whole by rename. The files that it names are the journal; all
 * other files in the directory are rubbish, except those of journal/kept.h.
 * manifest.c draws the text. Functions marked "I/O" do I/O, the others are
 * pure.
 *
 * A journal that is being built or removed has files, no manifest, and the
 * mark: an empty file. The mark is on the disk before the first other file is,
 * and before the manifest is removed. Files without a manifest and without the
 * mark are a journal that has lost its manifest.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define MANIFEST_NAME      "manifest"
#define MANIFEST_MARK_NAME "unfinished"

enum {
    MANIFEST_VERSION = 1,
    MANIFEST_INCREMENTS_MAX = 1024,
    MANIFEST_BYTES_MAX = 128 * 1024
};

/* An increment: file incr-<number>. A closed one was synced in full before the
 * manifest was written, and exactly so many bytes of it count; anything behind
 * them does not belong to the journal. */
struct manifest_increment {
    uint64_t number;
    bool closed;
    uint64_t bytes; /* if closed: bytes of the file, with its first line */
};

struct manifest {
    uint64_t generation;         /* rises with each new manifest */
    uint64_t base_number;        /* file base-<number> */
    uint64_t position, sequence; /* of the log, at the end of the base */
    struct manifest_increment increments[MANIFEST_INCREMENTS_MAX];
    uint32_t count; /* of increments, in order of age and number, with the
                       closed ones first; 0 is fine */
};

enum { MANIFEST_FILE_NAME_MAX = 32 };
void manifest_base_name(uint64_t number, char *ret_name);
void manifest_increment_name(uint64_t number, char *ret_name);

enum manifest_status {
    MANIFEST_OK,
    MANIFEST_MISSING,    /* no manifest and no files */
    MANIFEST_UNFINISHED, /* no manifest, but the mark: the files may be
                            incomplete */
    MANIFEST_DAMAGED,    /* the manifest is damaged or lost */
    MANIFEST_NEWER,
    MANIFEST_IO
};

/* Writes the text and returns its length, at most MANIFEST_BYTES_MAX. A valid
 * manifest, whose numbers are below the limits of journal/group.h, can be
 * parsed back to the same manifest. */
size_t manifest_format(const struct manifest *manifest, char *ret_text);

/* Reads the text, strictly: any text that manifest_format would not have
 * written is damage. */
enum manifest_status manifest_parse(struct slice text,
                                    struct manifest *ret_manifest,
                                    char *ret_reason, size_t reason_size);

/* Reads the manifest of the directory. *ret_reason says what is wrong. Returns
 * MANIFEST_IO also if memory is short. I/O. */
enum manifest_status manifest_load(int dir_fd, struct manifest *ret_manifest,
                                   char *ret_reason, size_t reason_size);

/* Stores the manifest: temporary name, sync, rename, sync of the directory;
 * then the mark is removed. After a failure the directory has the old manifest
 * or the new one, intact. Returns 0 or errno: EINVAL, with nothing touched, if
 * manifest_parse would not accept the new one. I/O. */
MUST_CHECK int manifest_store(int dir_fd, const struct manifest *manifest);

/* Makes the mark. It is on the disk when this returns 0; else errno. I/O. */
MUST_CHECK int manifest_mark(int dir_fd);

/* Returns whether a file of this name is a base or an increment. */
bool manifest_is_file_name(const char *name);
