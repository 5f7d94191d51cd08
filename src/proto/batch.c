/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Grows the argv of a batch, and finds the RESP of its commands.
 */
#include "proto/batch.h"

#include "base/mem.h"

enum {
    ARGV_FIRST = 512,
    ARGV_KEEP = 64 * 1024 /* slots: 1 MiB */
};

static void
return_borrowed(struct batch *batch)
{
    if (batch->borrows) {
        batch->argv = batch->own;
        batch->argv_capacity = batch->own_capacity;
        batch->borrows = false;
    }
}

void
batch_borrow(struct batch *batch, struct slice *argv, size_t argc)
{
    CHECK(batch->count == 0 && !batch->borrows);
    batch->borrows = true;
    batch->own = batch->argv;
    batch->own_capacity = batch->argv_capacity;
    batch->argv = argv;
    batch->argv_capacity = argc;
}

void
batch_fini(struct batch *batch)
{
    return_borrowed(batch);
    mem_free(batch->argv);
    batch->argv = NULL;
    batch->argv_count = 0;
    batch->argv_capacity = 0;
    batch->count = 0;
}

void
batch_clear(struct batch *batch)
{
    batch->argv_count = 0;
    batch->count = 0;
    batch->in_place = false;
    return_borrowed(batch);
    if (batch->argv_capacity > ARGV_KEEP) {
        batch_fini(batch);
    }
}

bool
batch_grow(struct batch *batch, size_t more)
{
    size_t capacity =
        batch->argv_capacity > 0 ? batch->argv_capacity : ARGV_FIRST;
    size_t needed = 0;
    size_t bytes = 0;
    struct slice *argv;

    /* Indexes into argv have 32 bits. No read has more arguments, since each
     * takes at least 6 bytes. */
    if (__builtin_add_overflow(batch->argv_count, more, &needed) ||
        needed > UINT32_MAX) {
        return false;
    }
    while (capacity < needed) {
        capacity *= 2;
    }
    if (!mem_multiply(capacity, sizeof(*argv), &bytes)) {
        return false;
    }
    argv = mem_try_realloc(batch->argv, bytes);
    if (argv == NULL) {
        return false;
    }
    batch->argv = argv;
    batch->argv_capacity = capacity;
    return true;
}

/* Returns the length of a type, a number without leading zeros, and CRLF. */
static size_t
header_bytes(size_t number)
{
    size_t bytes = 4;

    for (; number >= 10; number /= 10) {
        bytes++;
    }
    return bytes;
}

struct slice
batch_resp(const struct slice *argv, size_t argc)
{
    const char *begin =
        argv[0].data - header_bytes(argv[0].len) - header_bytes(argc);
    const char *end = argv[argc - 1].data + argv[argc - 1].len + 2;

    return (struct slice){ begin, (size_t)(end - begin) };
}
