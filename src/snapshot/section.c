/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frame of a snapshot file: header, section heads and hashes.
 */
#include "snapshot/section.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"
#include "journal/group.h"

enum {
    AHEAD_BYTES = 16 << 20, /* read ahead */
    BLOCK_BYTES = 4096      /* a bad place on a disk fails this much */
};

/* ---- errors and bytes ---------------------------------------------------- */

enum snapshot_status
section_fail(struct section_file *file, enum snapshot_status status,
             uint64_t offset, const char *format, ...)
{
    struct snapshot_error *error = file->error;
    va_list args;

    error->status = status;
    error->error = 0;
    error->offset = offset;
    error->record = file->records;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return status;
}

enum snapshot_status
section_damaged(struct section_file *file, uint64_t offset, const char *what)
{
    return section_fail(file, SNAPSHOT_DAMAGED, offset, "%s.", what);
}

enum snapshot_status
section_no_memory(struct section_file *file, uint64_t offset, uint64_t bytes)
{
    return section_fail(file, SNAPSHOT_NOMEM, offset,
                        "There is no memory for %llu bytes.",
                        (unsigned long long)bytes);
}

static enum snapshot_status
not_read(struct section_file *file, uint64_t offset, int error)
{
    enum snapshot_status status = section_fail(
        file, SNAPSHOT_IO, offset, "Reading failed: %s.", strerror(error));

    file->error->error = error;
    return status;
}

static enum snapshot_status
read_source(struct section_file *file, void *to, size_t len, size_t *ret_len)
{
    const struct snapshot_source *source = file->source;
    int error;

    *ret_len = 0;
    error = source->read(source->ctx, to, len, ret_len);
    file->source_bytes += *ret_len;
    if (error != 0) {
        return not_read(file, file->source_bytes, error);
    }
    if (*ret_len < len) {
        file->bytes = file->source_bytes;
    }
    return SNAPSHOT_OK;
}

static enum snapshot_status
read_next_bytes(struct section_file *file, void *to, size_t len,
                uint64_t offset)
{
    enum snapshot_status status;
    size_t got;

    CHECK(offset == file->source_bytes);
    status = read_source(file, to, len, &got);
    if (status == SNAPSHOT_OK && got < len) {
        return section_damaged(file, file->source_bytes,
                               "The stream ends before the snapshot does");
    }
    return status;
}

enum snapshot_status
section_read_bytes(struct section_file *file, void *to, size_t len,
                   uint64_t offset)
{
    size_t done;
    int error;

    if (file->source != NULL) {
        return read_next_bytes(file, to, len, offset);
    }
    if (offset + len > file->ahead && file->ahead < file->bytes) {
        uint64_t from = offset > file->ahead ? offset : file->ahead;

        file_will_read(file->fd, from, len + AHEAD_BYTES);
        file->ahead = from + AHEAD_BYTES / 2;
    }
    error = file_read_at(file->fd, to, len, offset, &done);
    return error == 0 ? SNAPSHOT_OK : not_read(file, offset + done, error);
}

enum snapshot_status
section_expect_end(struct section_file *file, uint64_t offset)
{
    enum snapshot_status status = SNAPSHOT_OK;
    uint8_t byte;
    size_t got;

    if (file->source != NULL) {
        CHECK(offset == file->source_bytes);
        status = read_source(file, &byte, 1, &got);
    }
    if (status == SNAPSHOT_OK && offset != file->bytes) {
        return section_damaged(file, offset,
                               "Something follows the end of the snapshot");
    }
    return status;
}

bool
section_reserve(struct section_file *file, size_t bytes)
{
    if (bytes > file->buffer_bytes) {
        mem_free(file->buffer);
        file->buffer_bytes = 0;
        file->buffer = mem_try_alloc(bytes);
        file->buffer_bytes = file->buffer != NULL ? bytes : 0;
    }
    return file->buffer != NULL;
}

/* ---- header -------------------------------------------------------------- */

/* Returns whether this is a name of graphic characters, with nothing but zeros
 * behind it. */
static bool
is_history(const uint8_t *at)
{
    size_t len = strnlen((const char *)at, SNAPSHOT_HISTORY_BYTES);

    for (size_t i = 0; i < SNAPSHOT_HISTORY_BYTES; i++) {
        if (i < len ? at[i] <= ' ' || at[i] > '~' : at[i] != 0) {
            return false;
        }
    }
    return true;
}

static enum snapshot_status
check_header(struct section_file *file, const uint8_t *header)
{
    uint16_t version = get_u16(header + HEADER_AT_VERSION);
    uint16_t flags = get_u16(header + HEADER_AT_FLAGS);

    if (memcmp(header, SNAPSHOT_MAGIC, HEADER_AT_VERSION) != 0) {
        return section_damaged(file, 0,
                               "This is no snapshot: it does not begin "
                               "with " SNAPSHOT_MAGIC);
    }
    if (get_u64(header + HEADER_AT_HASH) !=
        XXH3_64bits(header, HEADER_AT_HASH)) {
        return section_damaged(file, 0, "The header's checksum does not hold");
    }
    if (version > SNAPSHOT_VERSION) {
        return section_fail(file, SNAPSHOT_NEWER, HEADER_AT_VERSION,
                            "The snapshot is of version %u; this program knows "
                            "version %d.",
                            version, SNAPSHOT_VERSION);
    }
    if (version > 0 && flags != 0) {
        return section_fail(
            file, SNAPSHOT_NEWER, HEADER_AT_FLAGS,
            "The snapshot has flags %#x, which this program does not "
            "know.",
            flags);
    }
    if (get_u64(header + HEADER_AT_POSITION) >= GROUP_POSITION_LIMIT) {
        return section_damaged(file, HEADER_AT_POSITION,
                               "The position is higher than a log can reach");
    }
    if (get_u64(header + HEADER_AT_SEQUENCE) >= GROUP_NUMBER_LIMIT) {
        return section_damaged(file, HEADER_AT_SEQUENCE,
                               "The sequence is higher than a log can reach");
    }
    if (version == 0 || !is_history(header + HEADER_AT_HISTORY) ||
        file->databases < 1 || file->databases > DATABASES_MAX) {
        return section_damaged(file, 0, "The header's fields make no sense");
    }
    return SNAPSHOT_OK;
}

static enum snapshot_status
get_size(struct section_file *file)
{
    enum snapshot_status status;
    int error;

    if (file->source != NULL) {
        file->bytes = UINT64_MAX;
        return SNAPSHOT_OK;
    }
    error = file_size(file->fd, &file->bytes);
    if (error == 0) {
        return SNAPSHOT_OK;
    }
    status = section_fail(file, SNAPSHOT_IO, 0, "Its size is unknown: %s.",
                          strerror(error));
    file->error->error = error;
    return status;
}

enum snapshot_status
section_open(struct section_file *file, uint8_t *ret_header)
{
    enum snapshot_status status = get_size(file);

    memset(ret_header, 0, HEADER_BYTES);
    file->version = SNAPSHOT_VERSION;
    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (file->bytes < HEADER_BYTES) {
        return section_damaged(file, file->bytes,
                               "The file ends within the header");
    }
    status = section_read_bytes(file, ret_header, HEADER_BYTES, 0);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    file->databases = get_u32(ret_header + HEADER_AT_DATABASES);
    file->keys_announced = get_u64(ret_header + HEADER_AT_KEYS);
    file->key = get_u64(ret_header + HEADER_AT_FILE_KEY);
    status = check_header(file, ret_header);
    if (status == SNAPSHOT_OK) {
        file->version = get_u16(ret_header + HEADER_AT_VERSION);
    }
    return status;
}

/* ---- sections ------------------------------------------------------------ */

static bool
payload_fits(uint16_t type, uint64_t bytes)
{
    switch (type) {
    case SECTION_RECORDS_2:
    case SECTION_RECORDS:
        return bytes >= RECORD_BYTES_MIN && bytes <= RECORDS_BYTES_MAX;
    case SECTION_LARGE_2:
    case SECTION_LARGE:
        return bytes >= RECORD_BYTES_MIN && bytes <= LARGE_BYTES_MAX;
    case SECTION_VOIDS:
        return bytes >= VOID_HEAD_BYTES && bytes <= VOIDS_BYTES_MAX;
    case SECTION_EFFECTS:
        return bytes > EFFECTS_HEAD_BYTES && bytes <= EFFECTS_BYTES_MAX;
    case SECTION_PIECES:
        return bytes >= PIECES_HEAD_BYTES && bytes <= PIECES_BYTES_MAX &&
               bytes % PIECES_POSITION_BYTES == 0;
    case SECTION_END_2:
        return bytes == END_BYTES_2;
    case SECTION_LINES: /* lines.c checks the chunk's head */
        return bytes >= CHUNK_HEAD_BYTES &&
               bytes <= CHUNK_HEAD_BYTES + SNAPSHOT_CHUNK_BYTES;
    case SECTION_END:
        return bytes == END_BYTES;
    default:
        return false;
    }
}

static enum snapshot_status
read_head(struct section_file *file, uint64_t offset,
          struct section *ret_section)
{
    uint8_t head[SECTION_HEAD_BYTES];
    uint64_t left = file->bytes - offset;
    struct section section = { .offset = offset };
    enum snapshot_status status;

    if (left == 0) {
        return section_damaged(
            file, offset, "The file ends here, and its end section is missing");
    }
    if (left < SECTION_FRAME_BYTES) {
        return section_damaged(file, offset, "The file ends within a section");
    }
    status = section_read_bytes(file, head, sizeof(head), offset);
    if (status != SNAPSHOT_OK) {
        return status;
    }
    section.type = get_u16(head + SECTION_AT_TYPE);
    section.ordinal = get_u64(head + SECTION_AT_ORDINAL);
    section.bytes = get_u64(head + SECTION_AT_BYTES);
    section.seed = section_seed(head, file->key);
    if (memcmp(head, SNAPSHOT_SECTION_MAGIC, SECTION_AT_TYPE) != 0) {
        return section_damaged(file, offset, "Here a section should begin");
    }
    if (get_u16(head + SECTION_AT_ZERO) != 0 ||
        (section.type > SECTION_END_2 && file->version <= 2) ||
        !payload_fits(section.type, section.bytes)) {
        return section_damaged(file, offset,
                               "The head of this section makes no sense");
    }
    if (section.bytes > left - SECTION_FRAME_BYTES) {
        return section_damaged(file, offset,
                               "The file ends within this section");
    }
    section.next = offset + SECTION_FRAME_BYTES + section.bytes;
    *ret_section = section;
    return SNAPSHOT_OK;
}

enum snapshot_status
section_read_head(struct section_file *file, uint64_t offset, uint64_t ordinal,
                  struct section *ret_section)
{
    struct section section = { .offset = offset };
    enum snapshot_status status = read_head(file, offset, &section);

    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (section.ordinal != ordinal) {
        return section_fail(file, SNAPSHOT_DAMAGED, offset,
                            "Section %llu is here instead of section %llu.",
                            (unsigned long long)section.ordinal,
                            (unsigned long long)ordinal);
    }
    *ret_section = section;
    return SNAPSHOT_OK;
}

enum snapshot_status
section_read_end(struct section_file *file, struct section *ret_section)
{
    const uint64_t end_bytes = SECTION_FRAME_BYTES + END_BYTES;
    struct section section = { .type = 0 };
    enum snapshot_status status = SNAPSHOT_OK;

    if (file->bytes >= HEADER_BYTES + end_bytes) {
        status = read_head(file, file->bytes - end_bytes, &section);
    }
    if (status == SNAPSHOT_OK && section.type == SECTION_END) {
        *ret_section = section;
        return section_read_payload(file, &section);
    }
    return status == SNAPSHOT_IO
               ? status
               : section_damaged(file, file->bytes,
                                 "The file does not end with an end section");
}

enum snapshot_status
section_bad_hash(struct section_file *file, uint64_t offset)
{
    return section_damaged(file, offset,
                           "The checksum of this section does not hold");
}

/* Grows the buffer by what is to come, but at most to twice its size: a source
 * may promise bytes that never come. */
static bool
grow_buffer(struct section_file *file, size_t bytes)
{
    size_t room =
        file->buffer_bytes < bytes / 2 ? 2 * file->buffer_bytes : bytes;
    uint8_t *buffer = mem_try_realloc(file->buffer, room);

    if (buffer != NULL) {
        file->buffer = buffer;
        file->buffer_bytes = room;
    }
    return buffer != NULL;
}

/* Reads the bytes for which the buffer, which is full, was too small. */
static enum snapshot_status
read_rest(struct section_file *file, const struct section *section)
{
    size_t bytes = (size_t)section->bytes + SECTION_HASH_BYTES;
    enum snapshot_status status = SNAPSHOT_OK;

    while (file->buffer_bytes < bytes && status == SNAPSHOT_OK) {
        size_t done = file->buffer_bytes;

        if (!grow_buffer(file, bytes)) {
            return section_no_memory(file, section->offset, bytes);
        }
        status = section_read_bytes(
            file, file->buffer + done, file->buffer_bytes - done,
            section->offset + SECTION_HEAD_BYTES + done);
    }
    return status;
}

/* The buffer is made for the largest section of small filters: more of them
 * will follow. */
enum snapshot_status
section_read_payload(struct section_file *file, const struct section *section)
{
    size_t bytes = (size_t)section->bytes;
    size_t most = file->bytes < RECORDS_BYTES_MAX ? (size_t)file->bytes
                                                  : RECORDS_BYTES_MAX;
    size_t room = bytes > most && file->source == NULL ? bytes : most;
    size_t first = bytes + SECTION_HASH_BYTES;
    enum snapshot_status status;

    if (!section_reserve(file, room + SECTION_HASH_BYTES)) {
        return section_no_memory(file, section->offset, room);
    }
    first = first < file->buffer_bytes ? first : file->buffer_bytes;
    status = section_read_bytes(file, file->buffer, first,
                                section->offset + SECTION_HEAD_BYTES);
    if (status == SNAPSHOT_OK) {
        status = read_rest(file, section);
    }
    if (status != SNAPSHOT_OK) {
        return status;
    }
    if (get_u64(file->buffer + bytes) !=
        XXH3_64bits_withSeed(file->buffer, bytes, section->seed)) {
        return section_bad_hash(file, section->offset);
    }
    return SNAPSHOT_OK;
}

/* ---- stamps -------------------------------------------------------------- */

void
section_begin_stamp(const uint8_t *header, struct snapshot_stamp *stamp)
{
    memset(stamp, 0, sizeof(*stamp));
    memcpy(stamp->history, header + HEADER_AT_HISTORY, SNAPSHOT_HISTORY_BYTES);
    stamp->position = stamp->begins = get_u64(header + HEADER_AT_POSITION);
    stamp->sequence = get_u64(header + HEADER_AT_SEQUENCE);
    stamp->created_ms = get_u64(header + HEADER_AT_CREATED);
    stamp->keys = get_u64(header + HEADER_AT_KEYS);
    stamp->version = get_u16(header + HEADER_AT_VERSION);
}

enum snapshot_status
section_end_stamp(struct section_file *file, const struct section *section,
                  struct snapshot_stamp *stamp)
{
    const uint8_t *at = file->buffer;

    if (section->type == SECTION_END_2) {
        return SNAPSHOT_OK;
    }
    if (!is_history(at + END_AT_HISTORY) ||
        get_u64(at + END_AT_POSITION) >= GROUP_POSITION_LIMIT ||
        get_u64(at + END_AT_SEQUENCE) >= GROUP_NUMBER_LIMIT ||
        get_u64(at + END_AT_POSITION) < stamp->position ||
        get_u64(at + END_AT_SEQUENCE) < stamp->sequence) {
        return section_damaged(file, section->offset,
                               "The end of the snapshot makes no sense");
    }
    memcpy(stamp->history, at + END_AT_HISTORY, SNAPSHOT_HISTORY_BYTES);
    stamp->position = get_u64(at + END_AT_POSITION);
    stamp->sequence = get_u64(at + END_AT_SEQUENCE);
    stamp->keys = get_u64(at + END_AT_KEYS);
    return SNAPSHOT_OK;
}

/* ---- what is intact behind damage ---------------------------------------- */

static bool
section_holds(struct section_file *file, const struct section *section)
{
    uint8_t *piece = file->buffer + SECTION_SCAN_BYTES;
    uint64_t offset = section->offset + SECTION_HEAD_BYTES;
    uint64_t left = section->bytes;
    XXH3_state_t hash;

    XXH3_INITSTATE(&hash);
    (void)XXH3_64bits_reset_withSeed(&hash, section->seed);
    while (left > 0) {
        size_t step = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

        if (section_read_bytes(file, piece, step, offset) != SNAPSHOT_OK) {
            return false;
        }
        (void)XXH3_64bits_update(&hash, piece, step);
        offset += step;
        left -= step;
    }
    return section_read_bytes(file, piece, SECTION_HASH_BYTES, offset) ==
               SNAPSHOT_OK &&
           get_u64(piece) == XXH3_64bits_digest(&hash);
}

/* Returns the first place from `at` on where a section might begin; the end of
 * the file if there is none. Skips blocks that cannot be read. */
static uint64_t
find_magic(struct section_file *file, uint64_t at)
{
    while (file->bytes - at >= SECTION_FRAME_BYTES) {
        uint64_t left = file->bytes - at;
        size_t want =
            left < SECTION_SCAN_BYTES ? (size_t)left : SECTION_SCAN_BYTES;
        const uint8_t *found;
        size_t len;
        int error = file_read_at(file->fd, file->buffer, want, at, &len);

        found =
            memmem(file->buffer, len, SNAPSHOT_SECTION_MAGIC, SECTION_AT_TYPE);
        if (found != NULL) {
            return at + (uint64_t)(found - file->buffer);
        }
        if (error != 0) {
            at = (at + len) / BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES;
            at = at < file->bytes ? at : file->bytes;
        } else {
            at += len - (SECTION_AT_TYPE - 1);
        }
    }
    return file->bytes;
}

bool
section_find(struct section_file *file, uint64_t at, uint64_t ordinal,
             struct section *ret_section)
{
    struct section section = { .offset = at };

    for (;;) {
        at = find_magic(file, at);
        if (at == file->bytes) {
            return false;
        }
        if (read_head(file, at, &section) != SNAPSHOT_OK ||
            section.ordinal < ordinal || !section_holds(file, &section)) {
            at++;
        } else if (section.type == SECTION_LINES) {
            at = section.next;
        } else {
            *ret_section = section;
            return true;
        }
    }
}

void
section_close(struct section_file *file)
{
    mem_free(file->buffer);
    file->buffer = NULL;
    file->buffer_bytes = 0;
}
