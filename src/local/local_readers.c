/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The record of a reader, which fills a cache line, is never freed. So a writer
 * walks the list of records without a lock.
 */
#include "local/local_readers.h"

#include "base/mem.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { YIELDS = 20, PAUSE_NS = 50000, SETTLE_NS = 10000000 };

_Thread_local struct local_reader *local_readers_own
    __attribute__((tls_model("initial-exec")));
atomic_bool local_readers_fenced;

static _Atomic(struct local_reader *) readers;
static pthread_key_t key;

static void
leave(void *arg)
{
    struct local_reader *own = arg;

    local_readers_own = NULL;
    atomic_store_explicit(&own->taken, false, memory_order_release);
}

bool
local_readers_init(bool fenced)
{
    atomic_store(&local_readers_fenced,
                 fenced || syscall(__NR_membarrier,
                                   MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0,
                                   0) != 0);
    return pthread_key_create(&key, leave) == 0;
}

static struct local_reader *
take_left(void)
{
    for (struct local_reader *each = atomic_load(&readers); each != NULL;
         each = each->next) {
        bool taken = false;

        if (atomic_compare_exchange_strong(&each->taken, &taken, true)) {
            return each;
        }
    }
    return NULL;
}

static struct local_reader *
add_line(void)
{
    struct local_reader *line = mem_try_lines(sizeof(*line));

    if (line != NULL) {
        atomic_init(&line->turns, 0);
        atomic_init(&line->taken, true);
        line->next = atomic_load(&readers);
        while (!atomic_compare_exchange_weak(&readers, &line->next, line)) {
        }
    }
    return line;
}

struct local_reader *
local_readers_join(void)
{
    struct local_reader *own = take_left();

    if (own == NULL) {
        own = add_line();
    }
    if (own != NULL && pthread_setspecific(key, own) != 0) {
        atomic_store(&own->taken, false);
        own = NULL;
    }
    local_readers_own = own;
    return own;
}

/* Waits until a reader has ended its look. That takes milliseconds if the
 * scheduler has interrupted the reader. */
static void
wait_for(struct local_reader *reader)
{
    const struct timespec pause = { 0, PAUSE_NS };
    uint64_t turns = atomic_load(&reader->turns);

    for (unsigned i = 0; turns % 2 != 0 && atomic_load(&reader->turns) == turns;
         i++) {
        if (i < YIELDS) {
            (void)sched_yield();
        } else {
            (void)nanosleep(&pause, NULL);
        }
    }
}

/* Makes the marks of all readers visible to this thread. If the kernel refuses
 * membarrier, readers use a fence from now on. Marks that were set without a
 * fence are in memory long before the pause is over: no processor delays a
 * store for so long, and a switch of threads is a fence. */
static void
fence_all(void)
{
    const struct timespec settle = { 0, SETTLE_NS };

    if (!atomic_load(&local_readers_fenced) &&
        syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
        atomic_store(&local_readers_fenced, true);
        (void)nanosleep(&settle, NULL);
    }
}

void
local_readers_wait(void)
{
    fence_all();
    for (struct local_reader *each = atomic_load(&readers); each != NULL;
         each = each->next) {
        wait_for(each);
    }
}

void
local_readers_forked(void)
{
    for (struct local_reader *each = atomic_load(&readers); each != NULL;
         each = each->next) {
        if (each != local_readers_own) {
            atomic_store(&each->turns, 0);
            atomic_store(&each->taken, false);
        }
    }
}
