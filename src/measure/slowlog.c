/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of entries, each one block of memory with its words behind it. Blocks
 * are allocated before the lock is acquired, and freed after it is released.
 */
#include "measure/slowlog.h"

#include "base/err.h"
#include "base/longest.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>

enum { NOTE_MAX = 48 }; /* bytes of "... (n more arguments)" */

struct kept {
    struct kept *newer, *older;
    size_t bytes; /* of the block */
    struct slowlog_entry entry;
    struct slice argv[]; /* and the texts behind them */
};

struct slowlog {
    pthread_mutex_t mutex;
    struct kept *newest, *oldest;
    const struct kept *shown; /* the last entry of the last visit, where the
                                 next piece begins; NULL: it is gone */
    size_t count, bytes;
    uint64_t length_max, next_id;
};

struct slowlog *
slowlog_new(void)
{
    struct slowlog *log = mem_zalloc(sizeof(*log));

    CHECK(pthread_mutex_init(&log->mutex, NULL) == 0);
    return log;
}

static void
free_chain(struct kept *kept)
{
    while (kept != NULL) {
        struct kept *newer = kept->newer;

        mem_free(kept);
        kept = newer;
    }
}

void
slowlog_free(struct slowlog *log)
{
    if (log != NULL) {
        free_chain(log->oldest);
        CHECK(pthread_mutex_destroy(&log->mutex) == 0);
        mem_free(log);
    }
}

/* Removes the oldest entries above the limits. The caller holds the lock, and
 * frees them when it has released it. */
static struct kept *
cut_oldest(struct slowlog *log)
{
    struct kept *first = log->oldest, *last = NULL;

    while (log->oldest != NULL &&
           (log->count > log->length_max || log->bytes > SLOWLOG_BYTES_MAX)) {
        last = log->oldest;
        log->oldest = last->newer;
        if (last == log->shown) {
            log->shown = NULL;
        }
        log->count--;
        log->bytes -= last->bytes;
    }
    CHECK((log->oldest == NULL) == (log->count == 0 && log->bytes == 0));
    if (last == NULL) {
        return NULL;
    }
    last->newer = NULL;
    if (log->oldest != NULL) {
        log->oldest->older = NULL;
    } else {
        log->newest = NULL;
    }
    return first;
}

void
slowlog_set_length(struct slowlog *log, uint64_t length)
{
    struct kept *gone;

    pthread_mutex_lock(&log->mutex);
    log->length_max = length;
    gone = cut_oldest(log);
    pthread_mutex_unlock(&log->mutex);
    free_chain(gone);
}

/* ---- one entry ----------------------------------------------------------- */

/* The part of a word that an entry keeps, and a note about the rest. */
struct word {
    struct slice begin;
    char note[NOTE_MAX];
};

static void
trim(const struct slowlog_entry *from, size_t index, struct word *word)
{
    word->begin = (struct slice){ NULL, 0 };
    word->note[0] = '\0';
    if (from->argc > SLOWLOG_ARGS_MAX && index == SLOWLOG_ARGS_MAX - 1) {
        (void)snprintf(word->note, NOTE_MAX, "... (%zu more arguments)",
                       from->argc - SLOWLOG_ARGS_MAX + 1);
        return;
    }
    word->begin = from->argv[index];
    if (word->begin.len > SLOWLOG_ARG_BYTES_MAX) {
        (void)snprintf(word->note, NOTE_MAX, "... (%zu more bytes)",
                       word->begin.len - SLOWLOG_ARG_BYTES_MAX);
        word->begin.len = SLOWLOG_ARG_BYTES_MAX;
    }
}

static struct slice
put_text(char **to, struct slice text, const char *note)
{
    struct slice kept = { *to, text.len + strlen(note) };

    if (text.len > 0) {
        memcpy(*to, text.data, text.len);
    }
    memcpy(*to + text.len, note, kept.len - text.len);
    *to += kept.len;
    return kept;
}

/* Copies an entry with the kept part of each word; NULL: no memory. */
static struct kept *
keep_entry(const struct slowlog_entry *from)
{
    struct word words[SLOWLOG_ARGS_MAX];
    size_t argc = from->argc < SLOWLOG_ARGS_MAX ? from->argc : SLOWLOG_ARGS_MAX;
    size_t bytes = sizeof(struct kept) + argc * sizeof(struct slice) +
                   from->addr.len + from->name.len;
    struct kept *kept;
    char *to;

    for (size_t i = 0; i < argc; i++) {
        trim(from, i, &words[i]);
        bytes += words[i].begin.len + strlen(words[i].note);
    }
    kept = mem_try_alloc(bytes);
    if (kept == NULL) {
        return NULL;
    }
    kept->bytes = bytes;
    kept->entry = *from;
    kept->entry.argv = kept->argv;
    kept->entry.argc = argc;
    to = (char *)(kept->argv + argc);
    for (size_t i = 0; i < argc; i++) {
        kept->argv[i] = put_text(&to, words[i].begin, words[i].note);
    }
    kept->entry.addr = put_text(&to, from->addr, "");
    kept->entry.name = put_text(&to, from->name, "");
    return kept;
}

void
slowlog_add(struct slowlog *log, const struct slowlog_entry *from)
{
    struct kept *kept = keep_entry(from);
    struct kept *gone;

    if (kept == NULL) {
        return;
    }
    pthread_mutex_lock(&log->mutex);
    kept->entry.id = log->next_id++;
    kept->newer = NULL;
    kept->older = log->newest;
    if (log->newest != NULL) {
        log->newest->newer = kept;
    } else {
        log->oldest = kept;
    }
    log->newest = kept;
    log->count++;
    log->bytes += kept->bytes;
    gone = cut_oldest(log);
    pthread_mutex_unlock(&log->mutex);
    free_chain(gone);
}

/* ---- all of them --------------------------------------------------------- */

/* Finds the first entry to show. It follows `shown`, unless another client has
 * visited the log meanwhile. */
static const struct kept *
first_of(const struct slowlog *log, uint64_t before_id)
{
    const struct kept *kept = log->newest;

    if (before_id > 0 && log->shown != NULL &&
        log->shown->entry.id == before_id) {
        return log->shown->older;
    }
    while (before_id > 0 && kept != NULL && kept->entry.id >= before_id) {
        kept = kept->older;
    }
    return kept;
}

uint64_t
slowlog_visit(struct slowlog *log, uint64_t count,
              const struct slowlog_visitor *visitor)
{
    const struct kept *kept;
    struct longest_span held;
    uint64_t shown = 0;

    pthread_mutex_lock(&log->mutex);
    held = longest_begin();
    kept = first_of(log, visitor->before_id);
    for (; shown < count && kept != NULL; shown++) {
        visitor->entry(visitor->ctx, &kept->entry);
        log->shown = kept;
        kept = kept->older;
    }
    longest_end(LONGEST_LOCK, &held, "slowlog");
    pthread_mutex_unlock(&log->mutex);
    return shown;
}

size_t
slowlog_length(struct slowlog *log)
{
    size_t count;

    pthread_mutex_lock(&log->mutex);
    count = log->count;
    pthread_mutex_unlock(&log->mutex);
    return count;
}

size_t
slowlog_bytes(struct slowlog *log)
{
    size_t bytes;

    pthread_mutex_lock(&log->mutex);
    bytes = log->bytes;
    pthread_mutex_unlock(&log->mutex);
    return bytes;
}

void
slowlog_reset(struct slowlog *log)
{
    struct kept *gone;

    pthread_mutex_lock(&log->mutex);
    gone = log->oldest;
    log->newest = log->oldest = NULL;
    log->shown = NULL;
    log->count = log->bytes = 0;
    pthread_mutex_unlock(&log->mutex);
    free_chain(gone);
}
