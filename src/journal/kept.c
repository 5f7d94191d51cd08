/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal/kept.h"

#include "base/file.h"
#include "base/mem.h"
#include "journal/group.h"

#include <errno.h>
#include <string.h>

/* The kept increments must fit into one manifest together with those of the
 * journal. */
enum { KEPT_MAX = MANIFEST_INCREMENTS_MAX / 2 };

/* ---- the file ------------------------------------------------------------ */

bool
kept_load(int dir_fd, struct manifest *ret_kept)
{
    char *text = mem_try_alloc(MANIFEST_BYTES_MAX + 1);
    char reason[256];
    size_t len = 0;
    bool read = text != NULL &&
                file_read_name(dir_fd, KEPT_NAME, text, MANIFEST_BYTES_MAX,
                               &len) == 0 &&
                manifest_parse((struct slice){ text, len }, ret_kept, reason,
                               sizeof(reason)) == MANIFEST_OK;

    for (uint32_t i = 0; read && i < ret_kept->count; i++) {
        read = ret_kept->increments[i].closed;
    }
    if (!read) {
        memset(ret_kept, 0, sizeof(*ret_kept));
    }
    mem_free(text);
    return read;
}

int
kept_store(int dir_fd, const struct manifest *kept)
{
    char *text;
    int error;

    if (kept->count == 0) {
        error = file_unlink(dir_fd, KEPT_NAME);
        return error == ENOENT ? 0 : error;
    }
    text = mem_try_alloc(MANIFEST_BYTES_MAX);
    if (text == NULL) {
        return ENOMEM;
    }
    error = file_replace(dir_fd, KEPT_NAME,
                         (struct slice){ text, manifest_format(kept, text) });
    mem_free(text);
    return error;
}

bool
kept_has(const struct manifest *kept, const char *name)
{
    char known[MANIFEST_FILE_NAME_MAX];

    for (uint32_t i = 0; i < kept->count; i++) {
        manifest_increment_name(kept->increments[i].number, known);
        if (strcmp(name, known) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- the log in kept increments ------------------------------------------ */

static uint64_t
log_bytes(const struct manifest_increment *increment)
{
    return increment->bytes - GROUP_FIRST_LINE_BYTES;
}

/* Returns where the log of the first `count` increments ends. */
static uint64_t
end_of(const struct manifest *kept, uint32_t count)
{
    uint64_t end = kept->position;

    for (uint32_t i = 0; i < count; i++) {
        end += log_bytes(&kept->increments[i]);
    }
    return end;
}

/* Returns how many increments come before this number. */
static uint32_t
count_before(const struct manifest *kept, uint64_t number)
{
    uint32_t count = 0;

    while (count < kept->count && kept->increments[count].number < number) {
        count++;
    }
    return count;
}

void
kept_prepend(const struct manifest *kept, struct manifest *manifest)
{
    uint64_t first =
        manifest->count > 0 ? manifest->increments[0].number : UINT64_MAX;
    uint32_t count = count_before(kept, first);
    size_t size = sizeof(manifest->increments[0]);

    if (count == 0 || end_of(kept, count) != manifest->position ||
        manifest->count + count > MANIFEST_INCREMENTS_MAX) {
        return;
    }
    memmove(manifest->increments + count, manifest->increments,
            manifest->count * size);
    memcpy(manifest->increments, kept->increments, count * size);
    manifest->count += count;
    manifest->position = kept->position;
}

/* ---- what a rewrite keeps ------------------------------------------------ */

static uint64_t
size_of(int dir_fd, uint64_t number)
{
    char name[MANIFEST_FILE_NAME_MAX];
    uint64_t bytes = 0;
    int fd = -1;

    manifest_increment_name(number, name);
    if (file_open(dir_fd, name, &fd) == 0) {
        (void)!file_size(fd, &bytes);
        file_close(fd);
    }
    return bytes;
}

/* Closes all increments, the last one at the position of the next base, which
 * the writer may not have reached yet. False: the last one ends elsewhere. */
static bool
close_all(int dir_fd, struct manifest *kept, uint64_t position)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        struct manifest_increment *increment = &kept->increments[i];

        if (!increment->closed && i + 1 < kept->count) {
            increment->bytes = size_of(dir_fd, increment->number);
        } else if (!increment->closed && position >= end_of(kept, i)) {
            increment->bytes =
                position - end_of(kept, i) + GROUP_FIRST_LINE_BYTES;
        }
        if (increment->bytes < GROUP_FIRST_LINE_BYTES) {
            return false;
        }
        increment->closed = true;
    }
    return end_of(kept, kept->count) == position;
}

static void
drop_first(struct manifest *kept)
{
    kept->position += log_bytes(&kept->increments[0]);
    kept->count--;
    memmove(kept->increments, kept->increments + 1,
            kept->count * sizeof(kept->increments[0]));
}

uint64_t
kept_extend(int dir_fd, struct manifest *kept, const struct manifest *before,
            const struct manifest *fresh, uint64_t needed, uint64_t limit_bytes)
{
    struct manifest *whole = mem_try_alloc(sizeof(*whole));
    uint64_t bytes = 0;

    CHECK(fresh->count > 0);
    if (whole == NULL) {
        memset(kept, 0, sizeof(*kept));
        return 0;
    }
    *whole = *before;
    kept_prepend(kept, whole);
    *kept = *whole;
    mem_free(whole);
    kept->sequence = 0;
    kept->count = count_before(kept, fresh->increments[0].number);
    if (!close_all(dir_fd, kept, fresh->position)) {
        kept->count = 0;
    }
    for (uint32_t i = 0; i < kept->count; i++) {
        bytes += kept->increments[i].bytes;
    }
    while (kept->count > 0 && (end_of(kept, 1) <= needed ||
                               bytes > limit_bytes || kept->count > KEPT_MAX)) {
        bytes -= kept->increments[0].bytes;
        drop_first(kept);
    }
    return bytes;
}
