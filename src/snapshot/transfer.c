/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loop 0 and the thread share a list of blocks of one size. Loop 0 writes
 * behind the filled part of a block and the thread reads within it, both
 * without the mutex; they change `filled` and the list only with the mutex. So
 * each byte is copied twice: into the queue, and to its final place. A block
 * that was read goes to options.copy, if there is one.
 */
#include "snapshot/transfer.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "keyspace/exchange.h"
#include "keyspace/make.h"
#include "snapshot/insert.h"
#include "snapshot/snapshot_read.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { BLOCK_BYTES = 256 << 10, REASON_BYTES = 512 };

struct block {
    struct block *next;
    size_t filled; /* moves under the mutex */
    size_t taken;  /* the thread's */
    char bytes[BLOCK_BYTES];
};

struct transfer {
    struct transfer_options options;
    pthread_t thread;
    atomic_bool cancelled; /* set to true once, under the mutex */
    /* The thread owns these; after its end loop 0 does. */
    struct keyspace *keyspace;
    struct insert insert; /* also why reading was stopped */
    struct snapshot_stamp stamp;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t news;   /* wakes the thread */
    struct block *first, *last;
    size_t queued;
    bool is_full;   /* transfer_put returned false, and poke is still due */
    bool finished;  /* the source has finished */
    bool truncated; /* there was no memory for a block */
    enum transfer_state state;
    char reason[REASON_BYTES];
};

/* ---- the queue, loop 0's end --------------------------------------------- */

static bool
has_room(const struct transfer *transfer)
{
    return transfer->queued < transfer->options.queue_bytes ||
           transfer->state != TRANSFER_RUNS;
}

/* Returns the block to write to, which is not full; NULL without memory. */
static struct block *
last_block(struct transfer *transfer)
{
    struct block *block = transfer->last;

    if (block != NULL && block->filled < BLOCK_BYTES) {
        return block;
    }
    block = mem_try_alloc(sizeof(*block));
    if (block == NULL) {
        return NULL;
    }
    block->next = NULL;
    block->filled = block->taken = 0;
    if (transfer->last != NULL) {
        transfer->last->next = block;
    } else {
        transfer->first = block;
    }
    transfer->last = block;
    return block;
}

/* Copies as many bytes as fit into one block and returns their number. Gives
 * the mutex back for the copying; the thread frees only full blocks. */
static size_t
put_some(struct transfer *transfer, struct slice bytes)
{
    struct block *block = last_block(transfer);
    size_t room;
    size_t step;

    if (block == NULL) {
        transfer->truncated = true;
        return 0;
    }
    room = BLOCK_BYTES - block->filled;
    step = bytes.len < room ? bytes.len : room;
    pthread_mutex_unlock(&transfer->mutex);
    memcpy(block->bytes + block->filled, bytes.data, step);
    pthread_mutex_lock(&transfer->mutex);
    block->filled += step;
    transfer->queued += step;
    pthread_cond_signal(&transfer->news);
    return step;
}

bool
transfer_put(struct transfer *transfer, struct slice bytes)
{
    bool room;

    pthread_mutex_lock(&transfer->mutex);
    CHECK(!transfer->finished);
    while (bytes.len > 0 && transfer->state == TRANSFER_RUNS &&
           !transfer->truncated) {
        size_t step = put_some(transfer, bytes);

        bytes.data += step;
        bytes.len -= step;
    }
    pthread_cond_signal(&transfer->news);
    room = has_room(transfer);
    transfer->is_full = !room;
    pthread_mutex_unlock(&transfer->mutex);
    return room;
}

bool
transfer_has_room(struct transfer *transfer)
{
    bool room;

    pthread_mutex_lock(&transfer->mutex);
    room = has_room(transfer);
    pthread_mutex_unlock(&transfer->mutex);
    return room;
}

void
transfer_finish(struct transfer *transfer)
{
    pthread_mutex_lock(&transfer->mutex);
    transfer->finished = true;
    pthread_cond_signal(&transfer->news);
    pthread_mutex_unlock(&transfer->mutex);
}

/* ---- the queue, the thread's end ----------------------------------------- */

/* Waits for bytes, under the mutex. *ret_block is NULL at the end. */
static int
wait_for_bytes(struct transfer *transfer, struct block **ret_block)
{
    for (;;) {
        struct block *block = transfer->first;

        if (atomic_load_explicit(&transfer->cancelled, memory_order_relaxed)) {
            return ECANCELED;
        }
        if (block != NULL && block->taken < block->filled) {
            *ret_block = block;
            return 0;
        }
        if (transfer->truncated) {
            return ENOMEM;
        }
        if (transfer->finished) {
            *ret_block = NULL;
            return 0;
        }
        pthread_cond_wait(&transfer->news, &transfer->mutex);
    }
}

/* Disposes of a block that was read. Without the mutex. */
static void
pass_on(const struct transfer *transfer, struct block *block)
{
    const struct transfer_copy *copy = &transfer->options.copy;

    if (block != NULL && copy->take != NULL) {
        copy->take(copy->ctx, block,
                   (struct slice){ block->bytes, block->taken });
    } else {
        mem_free(block);
    }
}

/* Removes `step` bytes of the first block. Gives the mutex back for a moment to
 * pass on a block that was read whole, or to call poke. It calls poke only once
 * half of the queue is read, so that this is rare. */
static void
consume(struct transfer *transfer, struct block *block, size_t step)
{
    struct block *empty = NULL;
    bool pokes;

    block->taken += step;
    transfer->queued -= step;
    if (block->taken == BLOCK_BYTES) {
        empty = block;
        transfer->first = block->next;
        transfer->last = block->next != NULL ? transfer->last : NULL;
    }
    pokes = transfer->is_full &&
            transfer->queued <= transfer->options.queue_bytes / 2;
    transfer->is_full = transfer->is_full && !pokes;
    if (empty == NULL && !pokes) {
        return;
    }
    pthread_mutex_unlock(&transfer->mutex);
    if (pokes) {
        transfer->options.poke(transfer->options.ctx);
    }
    pass_on(transfer, empty);
    pthread_mutex_lock(&transfer->mutex);
}

/* Passes on the last block, and says whether the snapshot was good. */
static void
end_copy(struct transfer *transfer, bool good)
{
    const struct transfer_copy *copy = &transfer->options.copy;
    struct block *last = NULL;

    if (copy->take == NULL) {
        return;
    }
    if (good) { /* the source has ended: at most one block is left */
        pthread_mutex_lock(&transfer->mutex);
        last = transfer->first;
        transfer->first = transfer->last = NULL;
        pthread_mutex_unlock(&transfer->mutex);
        pass_on(transfer, last);
    }
    copy->end(copy->ctx, good);
}

static int
read_queue(void *ctx, void *to, size_t len, size_t *ret_len)
{
    struct transfer *transfer = ctx;
    struct block *block = NULL;
    size_t done = 0;
    int error = 0;

    pthread_mutex_lock(&transfer->mutex);
    while (done < len) {
        size_t step;

        error = wait_for_bytes(transfer, &block);
        if (error != 0 || block == NULL) {
            break;
        }
        step = block->filled - block->taken;
        step = step < len - done ? step : len - done;
        pthread_mutex_unlock(&transfer->mutex);
        memcpy((char *)to + done, block->bytes + block->taken, step);
        pthread_mutex_lock(&transfer->mutex);
        consume(transfer, block, step);
        done += step;
    }
    pthread_mutex_unlock(&transfer->mutex);
    *ret_len = done;
    return error;
}

/* ---- the thread ---------------------------------------------------------- */

/* Refuses a snapshot with more databases than there are here: a later SELECT in
 * the primary's log would fail. */
static bool
on_header(void *ctx, const struct snapshot_stamp *begin, uint32_t databases)
{
    struct transfer *transfer = ctx;
    unsigned here = transfer->options.keyspace.databases;

    struct insert *insert = &transfer->insert;

    (void)begin;
    if (databases > here) {
        (void)snprintf(insert->why, sizeof(insert->why),
                       "it has %u databases, but the option databases is %u",
                       (unsigned)databases, here);
        return false;
    }
    transfer->keyspace = keyspace_try_new(&transfer->options.keyspace);
    if (transfer->keyspace == NULL) {
        (void)snprintf(insert->why, sizeof(insert->why),
                       "there is no memory for it");
        return false;
    }
    insert->keyspace = transfer->keyspace;
    insert->env = transfer->options.env;
    insert->completion = transfer->options.completion;
    insert->part = transfer->options.part;
    return true;
}

static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct transfer *transfer = ctx;

    if (atomic_load_explicit(&transfer->cancelled, memory_order_relaxed)) {
        bloom_fini(bloom, transfer->options.env);
        return false;
    }
    return insert_filter(&transfer->insert, record, bloom);
}

static bool
on_gone(void *ctx, const struct snapshot_record *record)
{
    struct transfer *transfer = ctx;

    return insert_gone(&transfer->insert, record);
}

static bool
on_effects(void *ctx, const struct snapshot_effects *effects)
{
    struct transfer *transfer = ctx;

    return !atomic_load_explicit(&transfer->cancelled, memory_order_relaxed) &&
           insert_effects(&transfer->insert, effects);
}

static bool
on_end(void *ctx, const struct snapshot_stamp *end)
{
    struct transfer *transfer = ctx;

    transfer->stamp = *end;
    return insert_end(&transfer->insert, end);
}

static void
drop_keyspace(struct transfer *transfer)
{
    struct keyspace *ks = transfer->keyspace;

    transfer->keyspace = NULL;
    if (ks != NULL && transfer->options.present != NULL) {
        keyspace_discard(transfer->options.present, ks);
    } else {
        keyspace_free(ks);
    }
}

static void
describe_error(const struct transfer *transfer,
               const struct snapshot_error *error, char *to, size_t size)
{
    unsigned long long offset = error->offset;
    unsigned long long keys = error->record;

    if (atomic_load(&transfer->cancelled)) {
        (void)snprintf(to, size, "It was cancelled.");
        return;
    }
    switch (error->status) {
    case SNAPSHOT_STOPPED:
        (void)snprintf(to, size,
                       "The snapshot cannot be taken at offset %llu, behind "
                       "%llu keys: %s.",
                       offset, keys, transfer->insert.why);
        break;
    case SNAPSHOT_NEWER:
        (void)snprintf(to, size, "%s A newer server wrote it.", error->text);
        break;
    case SNAPSHOT_SECRET:
        (void)snprintf(to, size, "%s Copy it to hash-secrets in dir.",
                       error->text);
        break;
    case SNAPSHOT_IO:
        (void)snprintf(to, size,
                       "There is no memory for what comes at offset %llu of "
                       "the snapshot.",
                       offset);
        break;
    case SNAPSHOT_NOMEM:
        (void)snprintf(to, size,
                       "At offset %llu of the snapshot, behind %llu keys: %s",
                       offset, keys, error->text);
        break;
    default:
        (void)snprintf(to, size,
                       "The snapshot is damaged at offset %llu, behind %llu "
                       "keys: %s",
                       offset, keys, error->text);
    }
}

static void *
run_transfer(void *arg)
{
    struct transfer *transfer = arg;
    const struct snapshot_source source = { .read = read_queue,
                                            .ctx = transfer };
    const struct snapshot_visitor visitor = { .header = on_header,
                                              .filter = on_filter,
                                              .gone = on_gone,
                                              .effects = on_effects,
                                              .end = on_end,
                                              .ctx = transfer };
    struct snapshot_error error = { 0 };
    char reason[REASON_BYTES] = "";
    enum snapshot_status status;

    (void)mem_set_claim(MEM_FILL); /* the data comes from another server */
    status = snapshot_read_source(&source, transfer->options.env, &visitor,
                                  NULL, &error);
    insert_fini(&transfer->insert);
    if (status != SNAPSHOT_OK) {
        describe_error(transfer, &error, reason, sizeof(reason));
        drop_keyspace(transfer);
    }
    end_copy(transfer, status == SNAPSHOT_OK);
    pthread_mutex_lock(&transfer->mutex);
    transfer->state = status == SNAPSHOT_OK ? TRANSFER_LOADED : TRANSFER_FAILED;
    memcpy(transfer->reason, reason, sizeof(reason));
    pthread_mutex_unlock(&transfer->mutex);
    transfer->options.poke(transfer->options.ctx);
    metric_thread_exit();
    return NULL;
}

/* ---- life ---------------------------------------------------------------- */

static void
destroy(struct transfer *transfer)
{
    struct block *block = transfer->first;

    while (block != NULL) {
        struct block *next = block->next;

        mem_free(block);
        block = next;
    }
    pthread_cond_destroy(&transfer->news);
    pthread_mutex_destroy(&transfer->mutex);
    mem_free(transfer);
}

struct transfer *
transfer_new(const struct transfer_options *options)
{
    struct transfer *transfer = mem_try_zalloc(sizeof(*transfer));

    CHECK(options->queue_bytes > 0);
    if (transfer == NULL) {
        return NULL;
    }
    transfer->options = *options;
    CHECK(pthread_mutex_init(&transfer->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&transfer->news, NULL) == 0);
    if (!thread_start(&transfer->thread, "transfer", run_transfer, transfer,
                      THREAD_PASSES)) {
        destroy(transfer);
        return NULL;
    }
    return transfer;
}

void
transfer_free(struct transfer *transfer)
{
    if (transfer == NULL) {
        return;
    }
    pthread_mutex_lock(&transfer->mutex);
    atomic_store(&transfer->cancelled, true);
    pthread_cond_signal(&transfer->news);
    pthread_mutex_unlock(&transfer->mutex);
    CHECK(pthread_join(transfer->thread, NULL) == 0);
    drop_keyspace(transfer);
    destroy(transfer);
}

/* ---- the result ---------------------------------------------------------- */

enum transfer_state
transfer_poll(struct transfer *transfer, char *ret_reason, size_t reason_size)
{
    enum transfer_state state;

    pthread_mutex_lock(&transfer->mutex);
    state = transfer->state;
    if (state == TRANSFER_FAILED) {
        (void)snprintf(ret_reason, reason_size, "%s", transfer->reason);
    }
    pthread_mutex_unlock(&transfer->mutex);
    return state;
}

/* The thread no longer uses the keyspace: it set the state, under the mutex,
 * after its last access. */
struct keyspace *
transfer_take(struct transfer *transfer, struct snapshot_stamp *ret_stamp)
{
    struct keyspace *ks;

    pthread_mutex_lock(&transfer->mutex);
    CHECK(transfer->state == TRANSFER_LOADED && transfer->keyspace != NULL);
    ks = transfer->keyspace;
    transfer->keyspace = NULL;
    *ret_stamp = transfer->stamp;
    pthread_mutex_unlock(&transfer->mutex);
    return ks;
}
