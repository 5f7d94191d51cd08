/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that need memory, in any thread and library: allocations, mappings
 * (including the allocator's own), and thread starts. The library counts them
 * and can make them fail without any effect. It forwards the others to the
 * server's allocator, jemalloc, which it looks up at the first call: that is
 * before any constructor.
 */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                         void *);

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    create_fn create;
} real;

static _Thread_local int inside; /* of a call that is looked at just now */

/* Returns the next function of that name after this library's. */
static void
find(void *ret_fn, size_t size, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    if (symbol == NULL) {
        abort();
    }
    memcpy(ret_fn, &symbol, size);
}

#define REAL(name)                                                             \
    (real.name == NULL ? find((void *)&real.name, sizeof(real.name), #name)    \
                       : (void)0,                                              \
     real.name)

static bool
is_wanted(enum call call)
{
    if (control_shared == NULL || inside != 0) {
        return false;
    }
    for (int i = 0; i < RULES; i++) {
        const struct rule *rule = &control_shared->rules[i];

        if (rule->armed != 0 && (rule->calls >> call & 1) != 0) {
            return true;
        }
    }
    return false;
}

/* Returns whether a rule makes this call fail. */
static bool
fails(enum call call)
{
    struct step step;
    int error = errno;

    if (!is_wanted(call)) {
        return false;
    }
    inside++;
    step = control_begin(call, KIND_NONE);
    inside--;
    errno = error;
    return step.error != 0;
}

static void *
refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

void *
malloc(size_t bytes)
{
    return fails(CALL_ALLOC) ? refuse() : REAL(malloc)(bytes);
}

void *
calloc(size_t count, size_t bytes)
{
    return fails(CALL_ALLOC) ? refuse() : REAL(calloc)(count, bytes);
}

void *
realloc(void *ptr, size_t bytes)
{
    return fails(CALL_ALLOC) ? refuse() : REAL(realloc)(ptr, bytes);
}

void *
aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(CALL_ALLOC) ? refuse() : REAL(aligned_alloc)(alignment, bytes);
}

int
posix_memalign(void **ret_ptr, size_t alignment, size_t bytes)
{
    return fails(CALL_ALLOC) ? ENOMEM
                             : REAL(posix_memalign)(ret_ptr, alignment, bytes);
}

void *
mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fails(CALL_MAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return REAL(mmap)(at, bytes, protection, flags, fd, offset);
}

int
pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr,
               void *(*fn)(void *), void *arg)
{
    if (real.create == NULL) {
        find((void *)&real.create, sizeof(real.create), "pthread_create");
    }
    return fails(CALL_THREAD) ? EAGAIN : real.create(ret_thread, attr, fn, arg);
}
