/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of blocks of one size, and a list of the ends of groups. Both have one
 * writer at a time (under the journal's mutex) and one reader (loop 0). The
 * writer publishes the count of ends last (release, acquire). So an end tells
 * the reader how far it may follow the list of blocks.
 *
 *   blocks   [......#seal...][.....#seal#..][...hole.......]
 *            first (loop 0's index)          tail (writer's)
 *   ends                      ^sealed         ^closed
 *
 * Only loop 0 frees blocks, and never the last one of its index, since the
 * writer may still fill it. Some freed blocks go back to the writer, which then
 * needs no allocation while other threads wait for the mutex.
 */
#include "repl/backlog.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "journal/group.h"

enum {
    BLOCK_BYTES = 64 * 1024, /* including `next` */
    ENDS_IN_PART = 255,
    SPARES_MAX = 8,
    INDEX_MIN = 8
};

struct block {
    struct block *next;
    char data[BLOCK_BYTES - sizeof(struct block *)];
};

enum { BLOCK_DATA = sizeof(((struct block *)NULL)->data) };

/* A closed group; its seal begins at `end`. */
struct end {
    uint64_t end, sequence;
    bool sealed;
};

struct part {
    struct part *next; /* set before the last end of this part is visible */
    _Atomic uint32_t count;
    struct end ends[ENDS_IN_PART];
};

/* The fields of each side have their own cache lines.
 * NOLINTNEXTLINE(*Padding) */
struct backlog {
    /* Used by the writer, under the journal's mutex. */
    struct block *tail;
    size_t fill;        /* bytes in the tail */
    uint64_t position;  /* the end of everything written */
    struct part *last;  /* the part that gets the next end */
    struct block *kept; /* free blocks, from `spares` */

    /* Written by both sides, or read by any thread. */
    _Alignas(64) _Atomic(struct block *) spares;
    _Atomic(struct block *) head; /* first block, before it is in the index */
    _Atomic(struct part *) part;  /* the first part, before loop 0 reads it */
    _Atomic uint64_t bytes;
    _Atomic uint32_t spare_count;
    atomic_bool broken;

    /* Used by loop 0: a ring of pointers to all blocks up to the one that
     * contains `sealed`; its size is a power of two. */
    _Alignas(64) struct block **index;
    size_t index_size, index_at, index_count;
    uint64_t first; /* position of the first byte of the first block */
    uint64_t sealed;
    struct part *reading;
    uint32_t read; /* how many ends of `reading` were read */
    struct group_hash *hash;
    bool lent;
    struct block *held; /* blocks to free on backlog_return */
};

/* ---- memory; either side ------------------------------------------------- */

static void
count_bytes(struct backlog *backlog, int64_t bytes)
{
    atomic_fetch_add_explicit(&backlog->bytes, (uint64_t)bytes,
                              memory_order_relaxed);
    metric_add(METRIC_REPL_BACKLOG, bytes);
}

static void *
take_memory(struct backlog *backlog, size_t bytes)
{
    void *taken = mem_try_alloc(bytes);

    if (taken != NULL) {
        count_bytes(backlog, (int64_t)bytes);
    }
    return taken;
}

static void
give(struct backlog *backlog, void *taken, size_t bytes)
{
    if (taken != NULL) {
        count_bytes(backlog, -(int64_t)bytes);
        mem_free(taken);
    }
}

/* Frees blocks, or keeps them while they may be lent. */
static void
give_blocks(struct backlog *backlog, struct block *block)
{
    if (backlog->lent && block != NULL) {
        struct block *last = block;

        while (last->next != NULL) {
            last = last->next;
        }
        last->next = backlog->held;
        backlog->held = block;
        return;
    }
    while (block != NULL) {
        struct block *next = block->next;

        give(backlog, block, sizeof(*block));
        block = next;
    }
}

/* ---- the writer ---------------------------------------------------------- */

static void
give_up(struct backlog *backlog)
{
    atomic_store_explicit(&backlog->broken, true, memory_order_release);
}

static struct block *
next_block(struct backlog *backlog)
{
    struct block *block = backlog->kept;

    if (block == NULL) {
        block = atomic_exchange_explicit(&backlog->spares, NULL,
                                         memory_order_acquire);
    }
    if (block != NULL) {
        backlog->kept = block->next;
        atomic_fetch_sub_explicit(&backlog->spare_count, 1,
                                  memory_order_relaxed);
    } else {
        block = take_memory(backlog, sizeof(*block));
    }
    return block;
}

/* Appends a block. False: no memory. */
static bool
begin_block(struct backlog *backlog)
{
    struct block *block = next_block(backlog);

    if (block == NULL) {
        give_up(backlog);
        return false;
    }
    block->next = NULL;
    if (backlog->tail == NULL) {
        atomic_store_explicit(&backlog->head, block, memory_order_relaxed);
    } else {
        backlog->tail->next = block;
    }
    backlog->tail = block;
    backlog->fill = 0;
    return true;
}

/* Appends bytes; NULL leaves a hole for a seal. False: no memory. */
static bool
put_bytes(struct backlog *backlog, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t room = BLOCK_DATA - backlog->fill;
        size_t now = len < room ? len : room;

        if (now == 0) {
            if (!begin_block(backlog)) {
                return false;
            }
            continue;
        }
        if (bytes != NULL) {
            memcpy(backlog->tail->data + backlog->fill, bytes, now);
            bytes += now;
        }
        backlog->fill += now;
        backlog->position += now;
        len -= now;
    }
    return true;
}

static void
on_text(void *ctx, struct slice bytes)
{
    struct backlog *backlog = ctx;

    if (!atomic_load_explicit(&backlog->broken, memory_order_relaxed)) {
        (void)put_bytes(backlog, bytes.data, bytes.len);
    }
}

static struct part *
new_part(struct backlog *backlog)
{
    struct part *part = take_memory(backlog, sizeof(*part));

    if (part == NULL) {
        give_up(backlog);
        return NULL;
    }
    part->next = NULL;
    atomic_init(&part->count, 0);
    backlog->last = part;
    return part;
}

static void
add_end(struct backlog *backlog, const struct end *end)
{
    struct part *part = backlog->last;
    uint32_t count;

    if (part == NULL) {
        part = new_part(backlog);
        if (part == NULL) {
            return;
        }
        atomic_store_explicit(&backlog->part, part, memory_order_release);
    }
    count = atomic_load_explicit(&part->count, memory_order_relaxed);
    if (count + 1 == ENDS_IN_PART) {
        part->next = new_part(backlog);
        if (part->next == NULL) {
            return;
        }
    }
    part->ends[count] = *end;
    atomic_store_explicit(&part->count, count + 1, memory_order_release);
}

static void
on_close(void *ctx, uint64_t sequence, const char *seal)
{
    struct backlog *backlog = ctx;
    struct end end = { .end = backlog->position,
                       .sequence = sequence,
                       .sealed = seal != NULL };

    if (!atomic_load_explicit(&backlog->broken, memory_order_relaxed) &&
        put_bytes(backlog, seal, GROUP_SEAL_BYTES)) {
        add_end(backlog, &end);
    }
}

/* ---- loop 0 -------------------------------------------------------------- */

struct backlog *
backlog_new(void)
{
    struct backlog *backlog = mem_lines(sizeof(*backlog));

    backlog->hash = group_hash_new();
    backlog_begin(backlog, 0);
    return backlog;
}

void
backlog_begin(struct backlog *backlog, uint64_t position)
{
    struct part *part =
        backlog->reading != NULL ? backlog->reading : backlog->part;

    give_blocks(backlog, backlog->index_count > 0
                             ? backlog->index[backlog->index_at]
                             : backlog->head);
    give_blocks(backlog, backlog->spares);
    give_blocks(backlog, backlog->kept);
    while (part != NULL) {
        struct part *next = part->next;

        give(backlog, part, sizeof(*part));
        part = next;
    }
    give(backlog, (void *)backlog->index,
         backlog->index_size * sizeof(struct block *));
    backlog->tail = backlog->kept = NULL;
    backlog->last = backlog->reading = NULL;
    backlog->index = NULL;
    backlog->index_size = backlog->index_at = backlog->index_count = 0;
    backlog->fill = BLOCK_DATA; /* the first byte begins a block */
    backlog->position = backlog->first = backlog->sealed = position;
    atomic_store(&backlog->head, NULL);
    atomic_store(&backlog->part, NULL);
    atomic_store(&backlog->spares, NULL);
    atomic_store(&backlog->spare_count, 0);
    atomic_store(&backlog->broken, false);
}

void
backlog_free(struct backlog *backlog)
{
    if (backlog == NULL) {
        return;
    }
    CHECK(!backlog->lent);
    backlog_begin(backlog, 0);
    group_hash_free(backlog->hash);
    mem_free_lines(backlog, sizeof(*backlog));
}

static void
on_begin(void *ctx, uint64_t position, uint64_t sequence)
{
    (void)sequence;
    backlog_begin(ctx, position);
}

struct journal_tap
backlog_tap(struct backlog *backlog)
{
    return (struct journal_tap){
        .begin = on_begin, .text = on_text, .close = on_close, .ctx = backlog
    };
}

static struct block **
slot(const struct backlog *backlog, size_t i)
{
    return &backlog->index[(backlog->index_at + i) & (backlog->index_size - 1)];
}

static bool
grow_index(struct backlog *backlog)
{
    size_t size =
        backlog->index_size == 0 ? INDEX_MIN : 2 * backlog->index_size;
    struct block **index = take_memory(backlog, size * sizeof(struct block *));

    if (index == NULL) {
        return false;
    }
    for (size_t i = 0; i < backlog->index_count; i++) {
        index[i] = *slot(backlog, i);
    }
    give(backlog, (void *)backlog->index,
         backlog->index_size * sizeof(struct block *));
    backlog->index = index;
    backlog->index_size = size;
    backlog->index_at = 0;
    return true;
}

/* Adds blocks to the index until it reaches `end`, which was written already.
 * False: no memory. */
static bool
reach(struct backlog *backlog, uint64_t end)
{
    while (backlog->first + backlog->index_count * BLOCK_DATA < end) {
        size_t count = backlog->index_count;
        struct block *block =
            count == 0
                ? atomic_load_explicit(&backlog->head, memory_order_relaxed)
                : (*slot(backlog, count - 1))->next;

        if (count == backlog->index_size && !grow_index(backlog)) {
            return false;
        }
        CHECK(block != NULL);
        backlog->index_count++;
        *slot(backlog, count) = block;
    }
    return true;
}

/* Returns the byte at `position`, which is within the index, and how many bytes
 * its block has from there on. */
static char *
place_of_byte(const struct backlog *backlog, uint64_t position,
              size_t *ret_room)
{
    uint64_t offset = position - backlog->first;
    size_t at = (size_t)(offset % BLOCK_DATA);

    CHECK(position >= backlog->first &&
          offset / BLOCK_DATA < backlog->index_count);
    *ret_room = BLOCK_DATA - at;
    return (*slot(backlog, (size_t)(offset / BLOCK_DATA)))->data + at;
}

/* Writes the seal of a group that the journal has closed without one. */
static void
fill_hole(struct backlog *backlog, const struct end *end, uint64_t key,
          uint64_t unix_ms)
{
    struct group_seal seal = { .sequence = end->sequence,
                               .unix_ms = unix_ms,
                               .bytes = end->end - backlog->sealed };
    char text[GROUP_SEAL_BYTES];
    size_t room;

    group_hash_begin(backlog->hash, key);
    for (uint64_t at = backlog->sealed; at < end->end; at += room) {
        char *from = place_of_byte(backlog, at, &room);

        room = room < end->end - at ? room : (size_t)(end->end - at);
        group_hash_add(backlog->hash, from, room);
    }
    group_write_seal(backlog->hash, key, &seal, text);
    for (size_t done = 0; done < sizeof(text); done += room) {
        char *to = place_of_byte(backlog, end->end + done, &room);

        room = room < sizeof(text) - done ? room : sizeof(text) - done;
        memcpy(to, text + done, room);
    }
}

/* Returns the next end; NULL: there is none yet. */
static const struct end *
next_end(struct backlog *backlog)
{
    struct part *part = backlog->reading;

    if (part == NULL) {
        part = backlog->reading =
            atomic_load_explicit(&backlog->part, memory_order_acquire);
        backlog->read = 0;
    }
    if (part == NULL ||
        backlog->read ==
            atomic_load_explicit(&part->count, memory_order_acquire)) {
        return NULL;
    }
    return &part->ends[backlog->read];
}

static void
skip_end(struct backlog *backlog)
{
    struct part *part = backlog->reading;

    if (++backlog->read == ENDS_IN_PART) {
        backlog->reading = part->next;
        backlog->read = 0;
        give(backlog, part, sizeof(*part));
    }
}

uint64_t
backlog_seal(struct backlog *backlog, uint64_t key, uint64_t unix_ms)
{
    const struct end *end;

    while ((end = next_end(backlog)) != NULL) {
        uint64_t behind = end->end + GROUP_SEAL_BYTES;

        CHECK(end->end >= backlog->sealed);
        if (!reach(backlog, behind)) {
            give_up(backlog);
            break;
        }
        if (!end->sealed) {
            fill_hole(backlog, end, key, unix_ms);
        }
        backlog->sealed = behind;
        skip_end(backlog);
    }
    return backlog->sealed;
}

uint64_t
backlog_first(const struct backlog *backlog)
{
    return backlog->first;
}

uint64_t
backlog_sealed(const struct backlog *backlog)
{
    return backlog->sealed;
}

bool
backlog_is_broken(const struct backlog *backlog)
{
    return atomic_load_explicit(&backlog->broken, memory_order_acquire);
}

struct slice
backlog_read(const struct backlog *backlog, uint64_t position, uint64_t end)
{
    const char *from;
    size_t room;

    CHECK(backlog->first <= position && position <= end &&
          end <= backlog->sealed);
    if (position == end) {
        return slice_lit("");
    }
    from = place_of_byte(backlog, position, &room);
    return (struct slice){ from, room < end - position
                                     ? room
                                     : (size_t)(end - position) };
}

size_t
backlog_slices(uint64_t bytes)
{
    return (size_t)(bytes / BLOCK_DATA) + 2;
}

size_t
backlog_lend(struct backlog *backlog, uint64_t position, uint64_t end,
             struct slice *ret_slices, size_t max)
{
    size_t count = 0;

    CHECK(!backlog->lent);
    while (position < end && count < max) {
        ret_slices[count] = backlog_read(backlog, position, end);
        position += ret_slices[count].len;
        count++;
    }
    if (position < end) {
        return 0;
    }
    backlog->lent = count > 0;
    return count;
}

void
backlog_return(struct backlog *backlog)
{
    struct block *held = backlog->held;

    CHECK(backlog->lent);
    backlog->lent = false;
    backlog->held = NULL;
    give_blocks(backlog, held);
}

/* Gives the block to the writer, or frees it. */
static void
retire(struct backlog *backlog, struct block *block)
{
    if (atomic_load_explicit(&backlog->spare_count, memory_order_relaxed) >=
        SPARES_MAX) {
        give(backlog, block, sizeof(*block));
        return;
    }
    atomic_fetch_add_explicit(&backlog->spare_count, 1, memory_order_relaxed);
    block->next = atomic_load_explicit(&backlog->spares, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &backlog->spares, &block->next, block, memory_order_release,
        memory_order_relaxed)) {
    }
}

void
backlog_trim(struct backlog *backlog, uint64_t needed, uint64_t size)
{
    uint64_t kept = backlog->sealed - backlog->first;
    uint64_t keep = kept > size ? backlog->sealed - size : backlog->first;

    CHECK(backlog->first <= backlog->sealed);
    keep = keep < needed ? keep : needed;
    while (!backlog->lent && backlog->index_count > 1 &&
           backlog->first + BLOCK_DATA <= keep) {
        struct block *block = *slot(backlog, 0);

        backlog->index_at = (backlog->index_at + 1) & (backlog->index_size - 1);
        backlog->index_count--;
        backlog->first += BLOCK_DATA;
        retire(backlog, block);
    }
}

uint64_t
backlog_bytes(const struct backlog *backlog)
{
    return atomic_load_explicit(&backlog->bytes, memory_order_relaxed);
}
