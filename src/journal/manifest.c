/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The manifest, version 1: lines that end in LF, words parted by one blank,
 * numbers in decimal without zeros before them, positions below 2^62 and all
 * else below 10^15 (journal/group.h).
 *
 *   bloomery-journal 1
 *   generation <number>
 *   base <number> <position> <sequence>      of the log, at the end of the base
 *   increment <number> <bytes>               a closed one; oldest first
 *   increment <number> -                     an open one
 *   checksum <16 hex digits>                 XXH3-64 of all lines before it
 *
 * Increments are optional. Open ones come after closed ones, since the
 * journal writes to one file after the other. A later version keeps the first
 * line's form and the last line, so that it can be distinguished from a damaged
 * file.
 */
#include "journal/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal/group.h"

#define TEMPORARY_NAME MANIFEST_NAME ".tmp"

enum { LINE_BYTES = 96 };

_Static_assert((MANIFEST_INCREMENTS_MAX + 4) * LINE_BYTES <= MANIFEST_BYTES_MAX,
               "manifest_format()");

/* ---- writing ------------------------------------------------------------- */

void
manifest_base_name(uint64_t number, char *ret_name)
{
    (void)snprintf(ret_name, MANIFEST_FILE_NAME_MAX, "base-%" PRIu64, number);
}

void
manifest_increment_name(uint64_t number, char *ret_name)
{
    (void)snprintf(ret_name, MANIFEST_FILE_NAME_MAX, "incr-%" PRIu64, number);
}

bool
manifest_is_file_name(const char *name)
{
    size_t digits;

    if (strncmp(name, "base-", 5) != 0 && strncmp(name, "incr-", 5) != 0) {
        return false;
    }
    digits = strspn(name + 5, "0123456789");
    return digits > 0 && name[5 + digits] == '\0';
}

size_t
manifest_format(const struct manifest *manifest, char *ret_text)
{
    char *to = ret_text;

    CHECK(manifest->count <= MANIFEST_INCREMENTS_MAX);
    to += snprintf(to, LINE_BYTES, "bloomery-journal %d\n", MANIFEST_VERSION);
    to += snprintf(to, LINE_BYTES, "generation %" PRIu64 "\n",
                   manifest->generation);
    to +=
        snprintf(to, LINE_BYTES, "base %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 manifest->base_number, manifest->position, manifest->sequence);
    for (uint32_t i = 0; i < manifest->count; i++) {
        const struct manifest_increment *increment = &manifest->increments[i];

        to += snprintf(to, LINE_BYTES, "increment %" PRIu64 " ",
                       increment->number);
        to += increment->closed
                  ? snprintf(to, LINE_BYTES, "%" PRIu64 "\n", increment->bytes)
                  : snprintf(to, LINE_BYTES, "-\n");
    }
    return checksum_append(ret_text, (size_t)(to - ret_text));
}

/* ---- reading ------------------------------------------------------------- */

/* Reads words from the front of the text. */
struct reader {
    struct slice rest;
    unsigned line; /* from 1, for messages */
    bool beyond;   /* the last number is larger than any that a journal has */
};

static bool
read_text(struct reader *reader, const char *word)
{
    bool taken = slice_take(&reader->rest, word);

    if (taken && word[strlen(word) - 1] == '\n') {
        reader->line++;
    }
    return taken;
}

static bool
read_number_below(struct reader *reader, uint64_t limit, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t digits = 0;

    reader->beyond = false;
    while (digits < reader->rest.len && reader->rest.data[digits] >= '0' &&
           reader->rest.data[digits] <= '9') {
        uint64_t digit = (uint64_t)(reader->rest.data[digits] - '0');

        if (number > (limit - 1 - digit) / 10) {
            reader->beyond = true;
            return false;
        }
        number = number * 10 + digit;
        digits++;
    }
    if (digits == 0 || (digits > 1 && reader->rest.data[0] == '0')) {
        return false;
    }
    reader->rest.data += digits;
    reader->rest.len -= digits;
    *ret_number = number;
    return true;
}

static bool
read_number(struct reader *reader, uint64_t *ret_number)
{
    return read_number_below(reader, GROUP_NUMBER_LIMIT, ret_number);
}

static bool
read_increment(struct reader *reader, const struct manifest *manifest,
               struct manifest_increment *ret_increment)
{
    const struct manifest_increment *last =
        manifest->count > 0 ? &manifest->increments[manifest->count - 1] : NULL;
    struct manifest_increment increment = { 0 };

    if (!read_number(reader, &increment.number) || !read_text(reader, " ") ||
        (last != NULL && increment.number <= last->number)) {
        return false;
    }
    if (!read_text(reader, "-")) {
        increment.closed = true;
        if (!read_number(reader, &increment.bytes) ||
            increment.bytes < GROUP_FIRST_LINE_BYTES ||
            (last != NULL && !last->closed)) {
            return false;
        }
    }
    *ret_increment = increment;
    return read_text(reader, "\n");
}

static bool
read_body(struct reader *reader, struct manifest *manifest)
{
    if (!read_text(reader, "generation ") ||
        !read_number(reader, &manifest->generation) ||
        !read_text(reader, "\n") || !read_text(reader, "base ") ||
        !read_number(reader, &manifest->base_number) ||
        !read_text(reader, " ") ||
        !read_number_below(reader, GROUP_POSITION_LIMIT, &manifest->position) ||
        !read_text(reader, " ") || !read_number(reader, &manifest->sequence) ||
        !read_text(reader, "\n")) {
        return false;
    }
    while (reader->rest.len > 0) {
        if (manifest->count == MANIFEST_INCREMENTS_MAX ||
            !read_text(reader, "increment ") ||
            !read_increment(reader, manifest,
                            &manifest->increments[manifest->count])) {
            return false;
        }
        manifest->count++;
    }
    return true;
}

/* Explains a text with a wrong checksum: by its first malformed line or, if
 * there is none, by the checksum. */
static void
explain_checksum(struct slice text, char *ret_reason, size_t reason_size)
{
    struct reader reader = { .rest = text, .line = 1 };
    struct manifest *manifest = mem_try_zalloc(sizeof(*manifest));
    size_t covered = text.len < CHECKSUM_LINE_BYTES
                         ? text.len
                         : text.len - CHECKSUM_LINE_BYTES;
    bool formed = false;

    reader.rest.len = covered;
    if (manifest != NULL) {
        formed = read_text(&reader, "bloomery-journal 1\n") &&
                 read_body(&reader, manifest);
        mem_free(manifest);
    }
    if (formed || manifest == NULL) {
        (void)snprintf(ret_reason, reason_size,
                       "the line at offset %zu is not the checksum of the %zu "
                       "bytes before it",
                       covered, covered);
        return;
    }
    (void)snprintf(ret_reason, reason_size,
                   "line %u, offset %zu, is wrong, and so is the checksum of "
                   "its %zu bytes",
                   reader.line, (size_t)(reader.rest.data - text.data),
                   text.len);
}

enum manifest_status
manifest_parse(struct slice text, struct manifest *ret_manifest,
               char *ret_reason, size_t reason_size)
{
    struct reader reader = { .rest = text, .line = 1 };
    struct manifest manifest = { 0 };
    uint64_t version;

    if (text.len > MANIFEST_BYTES_MAX) {
        (void)snprintf(ret_reason, reason_size,
                       "it has %zu bytes, more than the %d of any manifest",
                       text.len, MANIFEST_BYTES_MAX);
        return MANIFEST_DAMAGED;
    }
    if (!checksum_holds(text)) {
        explain_checksum(text, ret_reason, reason_size);
        return MANIFEST_DAMAGED;
    }
    reader.rest.len -= CHECKSUM_LINE_BYTES;
    if (read_text(&reader, "bloomery-journal ") &&
        read_number(&reader, &version) && version > MANIFEST_VERSION &&
        (read_text(&reader, "\n") || read_text(&reader, " "))) {
        (void)snprintf(ret_reason, reason_size,
                       "it is of version %" PRIu64
                       ", this program reads up to version %d",
                       version, MANIFEST_VERSION);
        return MANIFEST_NEWER;
    }
    reader = (struct reader){ .rest = text, .line = 1 };
    reader.rest.len -= CHECKSUM_LINE_BYTES;
    if (!read_text(&reader, "bloomery-journal 1\n") ||
        !read_body(&reader, &manifest)) {
        (void)snprintf(
            ret_reason, reason_size, "line %u, offset %zu, is wrong%s",
            reader.line, (size_t)(reader.rest.data - text.data),
            reader.beyond ? ": a number beyond those of any journal" : "");
        return MANIFEST_DAMAGED;
    }
    *ret_manifest = manifest;
    return MANIFEST_OK;
}

/* ---- the file ------------------------------------------------------------ */

static bool
has_mark(int dir_fd)
{
    return faccessat(dir_fd, MANIFEST_MARK_NAME, F_OK, AT_SYMLINK_NOFOLLOW) ==
           0;
}

/* Finds a base or an increment and returns its name; false if there is none. */
static bool
find_file(int dir_fd, char *ret_name, size_t size)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool found = false;

    if (dir == NULL) {
        file_close(fd);
        return false;
    }
    while (!found && (entry = readdir(dir)) != NULL) {
        found = manifest_is_file_name(entry->d_name);
        (void)snprintf(ret_name, size, "%s", entry->d_name);
    }
    (void)closedir(dir);
    return found;
}

/* Decides what a missing manifest means. A running server may store one
 * meanwhile, so after files were found the manifest is looked for once more. */
static enum manifest_status
explain_missing(int dir_fd, char *text, size_t *ret_len, char *ret_reason,
                size_t reason_size)
{
    char name[256];

    if (has_mark(dir_fd)) {
        return MANIFEST_UNFINISHED;
    }
    if (!find_file(dir_fd, name, sizeof(name))) {
        return MANIFEST_MISSING;
    }
    if (file_read_name(dir_fd, MANIFEST_NAME, text, MANIFEST_BYTES_MAX,
                       ret_len) == 0) {
        return MANIFEST_OK;
    }
    (void)snprintf(ret_reason, reason_size, "it is missing, and %.40s is there",
                   name);
    return MANIFEST_DAMAGED;
}

enum manifest_status
manifest_load(int dir_fd, struct manifest *ret_manifest, char *ret_reason,
              size_t reason_size)
{
    enum manifest_status status = MANIFEST_OK;
    size_t len = 0;
    char *text = mem_try_alloc(MANIFEST_BYTES_MAX + 1);
    int error = text != NULL ? file_read_name(dir_fd, MANIFEST_NAME, text,
                                              MANIFEST_BYTES_MAX, &len)
                             : ENOMEM;

    if (error == ENOENT) {
        status = explain_missing(dir_fd, text, &len, ret_reason, reason_size);
    } else if (error != 0) {
        status = MANIFEST_IO;
        (void)snprintf(ret_reason, reason_size, "it cannot be read: %s",
                       strerror(error));
    }
    if (status == MANIFEST_OK) {
        status = manifest_parse((struct slice){ text, len }, ret_manifest,
                                ret_reason, reason_size);
    }
    mem_free(text);
    return status;
}

static int
write_file(int dir_fd, const char *text, size_t len)
{
    int fd;
    int error = file_create(dir_fd, TEMPORARY_NAME, &fd);

    if (error != 0) {
        return error;
    }
    error = file_write(fd, text, len);
    if (error == 0) {
        error = file_sync(fd);
    }
    file_close(fd);
    return error;
}

/* Returns 0 if the next start would accept this text, else errno. A server that
 * went on with a manifest that it cannot read would have lost its journal
 * without knowing it. */
static int
check_text(struct slice text)
{
    struct manifest *again = mem_try_alloc(sizeof(*again));
    char why[256];
    int error = ENOMEM;

    if (again != NULL) {
        error = manifest_parse(text, again, why, sizeof(why)) == MANIFEST_OK
                    ? 0
                    : EINVAL;
        mem_free(again);
    }
    if (error == EINVAL) {
        log_error("persist.manifest",
                  "did not store a manifest that no start could read",
                  "why=\"%s\"", why);
    }
    return error;
}

static int
format_and_write(int dir_fd, const struct manifest *manifest)
{
    char *text = mem_try_alloc(MANIFEST_BYTES_MAX);
    size_t len;
    int error;

    if (text == NULL) {
        return ENOMEM;
    }
    len = manifest_format(manifest, text);
    error = check_text((struct slice){ text, len });
    if (error == 0) {
        error = write_file(dir_fd, text, len);
    }
    mem_free(text);
    return error;
}

int
manifest_store(int dir_fd, const struct manifest *manifest)
{
    int error = format_and_write(dir_fd, manifest);

    if (error == 0) {
        error = file_rename(dir_fd, TEMPORARY_NAME, MANIFEST_NAME);
    }
    if (error == 0) {
        error = file_sync_dir(dir_fd);
    }
    if (error == 0 && has_mark(dir_fd)) {
        (void)!file_unlink(dir_fd, MANIFEST_MARK_NAME);
    }
    return error;
}

int
manifest_mark(int dir_fd)
{
    int fd = -1;
    int error = file_open(dir_fd, MANIFEST_MARK_NAME, &fd);

    if (error == ENOENT) {
        error = file_create(dir_fd, MANIFEST_MARK_NAME, &fd);
    }
    if (error == 0) {
        error = file_sync(fd);
        file_close(fd);
    }
    return error == 0 ? file_sync_dir(dir_fd) : error;
}
