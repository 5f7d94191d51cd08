/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel's page map says of each page whether this process alone has it.
 * Memory that was only read shares the page of zeros, and does not count.
 *
 * A mapping is dense early, when a quarter of its pages is in use. A classic
 * Bloom filter, whose items have 7 bits in 7 places, would then use 87 % of its
 * pages. A page fault costs more than collapsing an untouched page.
 *
 * The table of mappings is an open hash of their addresses. The mutex is held
 * for moments; while the thread advises the kernel about a mapping, which may
 * take milliseconds, `busy` keeps others from unmapping it.
 */
#include "keyspace/sparse.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/huge.h"
#include "base/mem.h"
#include "base/thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
    PAGE = 4096,
    PAGES_IN_HUGE = HUGE_PAGE_BYTES / PAGE,
    TURN_MS = 25,
    TURN_HUGE = 128,  /* huge pages (2 MiB) in which one turn counts pages */
    TURN_FAULTS = 64, /* page faults after which mappings are counted again */
    DENSE_PART = 4,   /* dense: one of so many pages is in use */
    PAUSE_MOST_MS = 1,
    FEWEST = 64, /* slots of the table */
};

struct mapping {
    char *ptr; /* NULL: a free slot */
    size_t bytes;
};

static struct sparse {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* `busy` has ended, or the thread must stop */
    struct mapping *slot;
    size_t slots, count;
    size_t at;        /* the slot that the thread looks at next */
    const char *busy; /* the mapping that the thread advises about */
    int page_map;     /* a descriptor; -1: the thread does not run */
    bool stopping;
    pthread_t thread;
} sparse = { .mutex = PTHREAD_MUTEX_INITIALIZER,
             .changed = PTHREAD_COND_INITIALIZER,
             .page_map = -1 };

/* ---- the table, under the mutex ------------------------------------------ */

static size_t
home_of(const char *ptr, size_t slots)
{
    return (size_t)(((uintptr_t)ptr / HUGE_PAGE_BYTES) * 0x9E3779B97F4A7C15U >>
                    20) &
           (slots - 1);
}

/* Returns the slot of the mapping, or the free one where it belongs. */
static struct mapping *
find_mapping(const char *ptr)
{
    size_t at = home_of(ptr, sparse.slots);

    while (sparse.slot[at].ptr != NULL && sparse.slot[at].ptr != ptr) {
        at = (at + 1) & (sparse.slots - 1);
    }
    return &sparse.slot[at];
}

/* Makes room for another mapping. False without memory. */
static bool
make_mapping_room(void)
{
    struct mapping *old = sparse.slot;
    size_t slots = sparse.slots, more = slots > 0 ? 2 * slots : FEWEST;
    struct mapping *made;

    if (2 * (sparse.count + 1) <= slots) {
        return true;
    }
    made = mem_try_zalloc(more * sizeof(*made));
    if (made == NULL) {
        return false;
    }
    sparse.slot = made;
    sparse.slots = more;
    for (size_t i = 0; i < slots; i++) {
        if (old[i].ptr != NULL) {
            *find_mapping(old[i].ptr) = old[i];
        }
    }
    mem_free(old);
    return true;
}

/* Removes a mapping, and moves those behind it that could not be at home. */
static void
remove_at(struct mapping *gone)
{
    size_t hole = (size_t)(gone - sparse.slot);

    sparse.count--;
    gone->ptr = NULL;
    for (size_t at = (hole + 1) & (sparse.slots - 1);
         sparse.slot[at].ptr != NULL; at = (at + 1) & (sparse.slots - 1)) {
        struct mapping one = sparse.slot[at];

        sparse.slot[at].ptr = NULL;
        *find_mapping(one.ptr) = one;
    }
}

/* ---- watching ------------------------------------------------------------ */

void
sparse_watch(void *ptr, size_t bytes)
{
    bool watched;

    pthread_mutex_lock(&sparse.mutex);
    watched = sparse.page_map >= 0 && make_mapping_room();
    if (watched) {
        *find_mapping(ptr) = (struct mapping){ ptr, huge_round(bytes) };
        sparse.count++;
        pthread_cond_broadcast(&sparse.changed);
    }
    pthread_mutex_unlock(&sparse.mutex);
    if (watched) {
        (void)madvise(ptr, huge_round(bytes), MADV_NOHUGEPAGE);
    }
}

void
sparse_forget(void *ptr)
{
    struct mapping *found;

    pthread_mutex_lock(&sparse.mutex);
    while (sparse.busy == ptr) {
        pthread_cond_wait(&sparse.changed, &sparse.mutex);
    }
    if (sparse.count > 0) {
        found = find_mapping(ptr);
        if (found->ptr != NULL) {
            remove_at(found);
        }
    }
    pthread_mutex_unlock(&sparse.mutex);
}

size_t
sparse_count(void)
{
    size_t count;

    pthread_mutex_lock(&sparse.mutex);
    count = sparse.count;
    pthread_mutex_unlock(&sparse.mutex);
    return count;
}

/* ---- the thread ---------------------------------------------------------- */

/* Returns whether enough pages are in use. The mapping may go meanwhile: then
 * the result means nothing. advise() looks whether it is still watched. */
static bool
is_dense(const char *ptr, size_t bytes)
{
    const uint64_t alone = (uint64_t)1 << 56, swapped = (uint64_t)1 << 62;
    uint64_t page[PAGES_IN_HUGE];
    size_t used = 0;

    for (size_t at = 0; at < bytes; at += HUGE_PAGE_BYTES) {
        off_t from = (off_t)(((uintptr_t)ptr + at) / PAGE * sizeof(page[0]));

        if (pread(sparse.page_map, page, sizeof(page), from) !=
            (ssize_t)sizeof(page)) {
            return false;
        }
        for (size_t i = 0; i < PAGES_IN_HUGE; i++) {
            used += (page[i] & (alone | swapped)) != 0;
        }
    }
    return used >= bytes / PAGE / DENSE_PART;
}

/* Advises about a mapping if it is still watched. Nobody unmaps it meanwhile.
 */
static bool
advise(char *ptr, size_t at, size_t bytes, int advice)
{
    struct mapping *found;
    bool is_there;

    pthread_mutex_lock(&sparse.mutex);
    found = sparse.count > 0 ? find_mapping(ptr) : NULL;
    is_there = found != NULL && found->ptr != NULL && !sparse.stopping;
    if (is_there) {
        sparse.busy = ptr;
        is_there = found->bytes >= at + bytes;
    }
    pthread_mutex_unlock(&sparse.mutex);
    if (is_there) {
        (void)madvise(ptr + at, bytes, advice);
    }
    pthread_mutex_lock(&sparse.mutex);
    sparse.busy = NULL;
    pthread_cond_broadcast(&sparse.changed);
    pthread_mutex_unlock(&sparse.mutex);
    return is_there;
}

/* Sleeps as long as it is since SINCE_NS, at most PAUSE_MOST_MS. */
static void
pause_since(uint64_t since_ns)
{
    const uint64_t most_ns = (uint64_t)PAUSE_MOST_MS * 1000 * 1000;
    uint64_t ns = clock_mono_ns() - since_ns;
    const struct timespec time = { 0, (long)(ns < most_ns ? ns : most_ns) };

    (void)nanosleep(&time, NULL);
}

/* Gives a dense mapping huge pages. It sleeps between two of them, so that
 * other threads can map and unmap memory. */
static void
make_huge(char *ptr, size_t bytes)
{
    bool goes_on = advise(ptr, 0, bytes, MADV_HUGEPAGE);

    for (size_t at = 0; goes_on && at < bytes; at += HUGE_PAGE_BYTES) {
        uint64_t since_ns = clock_mono_ns();

        goes_on = advise(ptr, at, HUGE_PAGE_BYTES, MADV_COLLAPSE);
        pause_since(since_ns);
    }
    sparse_forget(ptr);
}

/* Takes the next mapping. False: all had their turn, or the thread is to stop.
 */
static bool
take_next(struct mapping *ret_mapping)
{
    bool found = false;
    bool goes_on;

    pthread_mutex_lock(&sparse.mutex);
    while (!found && sparse.at < sparse.slots) {
        *ret_mapping = sparse.slot[sparse.at++];
        found = ret_mapping->ptr != NULL;
    }
    if (!found) {
        sparse.at = 0;
    }
    goes_on = found && !sparse.stopping;
    pthread_mutex_unlock(&sparse.mutex);
    return goes_on;
}

/* Looks at mappings until one turn's work is done. False: it has come to the
 * last one. */
static bool
look_at_mappings(void)
{
    struct mapping mapping;
    size_t counted = 0;
    bool found = true;

    while (counted < TURN_HUGE && (found = take_next(&mapping))) {
        counted += mapping.bytes / HUGE_PAGE_BYTES;
        if (is_dense(mapping.ptr, mapping.bytes)) {
            make_huge(mapping.ptr, mapping.bytes);
        }
    }
    return found;
}

static long
faults(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

/* The thread sleeps while there is nothing to look at. */
static bool
wait_turn(void)
{
    struct timespec until;
    bool goes_on;

    pthread_mutex_lock(&sparse.mutex);
    while (sparse.count == 0 && !sparse.stopping) {
        (void)pthread_cond_wait(&sparse.changed, &sparse.mutex);
    }
    pthread_mutex_unlock(&sparse.mutex);
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)TURN_MS * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&sparse.mutex);
    if (!sparse.stopping) {
        (void)pthread_cond_timedwait(&sparse.changed, &sparse.mutex, &until);
    }
    goes_on = !sparse.stopping;
    pthread_mutex_unlock(&sparse.mutex);
    return goes_on;
}

/* A round looks at all mappings once. If the process has no new pages, there is
 * no round. */
static void *
run_rounds(void *arg)
{
    bool in_round = false;
    long before = 0;

    (void)arg;
    while (wait_turn()) {
        if (!in_round && faults() - before >= TURN_FAULTS) {
            in_round = true;
            before = faults();
        }
        if (in_round) {
            in_round = look_at_mappings();
        }
    }
    return NULL;
}

/* Returns whether the page map can be used. The kernel may refuse it, or leave
 * out the bits that we need: then a written page does not show in it. */
static bool
page_map_tells(int fd)
{
    static volatile char own;
    uint64_t page = 0;

    own = 1;
    return pread(fd, &page, sizeof(page),
                 (off_t)((uintptr_t)&own / PAGE * sizeof(page))) ==
               (ssize_t)sizeof(page) &&
           (page >> 56 & 1) != 0;
}

void
sparse_start(void)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    CHECK(sparse.page_map < 0);
    if (fd >= 0 && (sysconf(_SC_PAGESIZE) != PAGE || !page_map_tells(fd))) {
        (void)close(fd);
        fd = -1;
    }
    sparse.page_map = fd;
    sparse.stopping = false;
    if (fd >= 0) {
        thread_must_start(&sparse.thread, "pages", run_rounds, NULL);
    }
}

/* Mappings that are still watched stay as they are, and may be forgotten later.
 */
void
sparse_stop(void)
{
    if (sparse.page_map < 0) {
        return;
    }
    pthread_mutex_lock(&sparse.mutex);
    sparse.stopping = true;
    pthread_cond_broadcast(&sparse.changed);
    pthread_mutex_unlock(&sparse.mutex);
    (void)pthread_join(sparse.thread, NULL);
    (void)close(sparse.page_map);
    sparse.page_map = -1;
    if (sparse.count == 0) {
        mem_free(sparse.slot);
        sparse.slot = NULL;
        sparse.slots = 0;
    }
}
