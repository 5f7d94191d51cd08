/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_member.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/ageing.h"
#include "core/bloom.h"
#include "core/env.h"
#include "local/local_readers.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS_NS UINT64_C(1000000)

/* ---- memory -------------------------------------------------------------- */

static void *
take(void *ctx, size_t bytes)
{
    struct bloomery_local *member = ctx;

    return member->lower->alloc(member->lower->ctx, bytes);
}

static void
give(void *ctx, void *ptr, size_t bytes)
{
    struct bloomery_local *member = ctx;

    member->lower->free(member->lower->ctx, ptr, bytes);
}

static void *
take_lines(void *ctx, size_t bytes)
{
    struct bloomery_local *member = ctx;

    return member->lower->alloc_lines(member->lower->ctx, bytes);
}

static void
give_lines(void *ctx, void *ptr, size_t bytes)
{
    struct bloomery_local *member = ctx;

    local_place_forget(&member->place, ptr);
    member->lower->free_lines(member->lower->ctx, ptr, bytes);
}

/* ---- what readers see ---------------------------------------------------- */

/* Computes until when "absent" is proved. Reads the clocks before the copy's
 * time, so that a pause in between makes the result earlier. Subtracts one more
 * millisecond, since the copy counts whole ones. */
static struct local_proof
proof_of(const struct bloomery_local *member, uint64_t deadline_ms)
{
    uint64_t mono_ns = clock_mono_ns();
    uint64_t wall_ns = clock_wall_us() * 1000;
    uint64_t now_ms = local_link_now_ms();
    uint64_t slack_ns = member->slack_ns + MS_NS;
    uint64_t left_ns =
        deadline_ms > now_ms ? (deadline_ms - now_ms) * MS_NS : 0;
    struct local_proof none = { 0, 0 };

    if (left_ns <= slack_ns) {
        return none;
    }
    return (struct local_proof){ mono_ns + left_ns - slack_ns,
                                 wall_ns + left_ns - slack_ns };
}

/* Returns the first live layer. Layers of an ageing filter expire by the
 * server's clock: the clock of this machine may be ahead. */
static uint32_t
first_live(const struct local_facts *facts)
{
    return facts->bloom != NULL
               ? facts->bloom->count -
                     ageing_layers(facts->bloom, facts->server_ms)
               : 0;
}

/* Publishes a new view of the copy's filter; none if there is no copy. */
static void
show(struct bloomery_local *member, const struct local_facts *facts)
{
    struct local_view *view =
        facts->has_copy ? local_view_new(facts->bloom) : NULL;

    if (view != NULL) {
        local_view_prove(view, proof_of(member, facts->deadline_ms));
        local_view_raise(view, first_live(facts));
    }
    local_place_give(&member->place, view);
}

static void
on_swap(void *ctx)
{
    struct bloomery_local *member = ctx;
    struct local_facts facts;

    local_copy_facts(member->copy, &facts);
    show(member, &facts);
}

/* Brings the view up to date. */
static void
update_view(struct bloomery_local *member, const struct local_facts *facts)
{
    struct local_view *view = member->place.own;

    if (!facts->has_copy || view == NULL ||
        !local_view_fits(view, facts->bloom)) {
        if (facts->has_copy || view != NULL) {
            show(member, facts);
        }
        return;
    }
    if (facts->server_ms != member->told.server_ms) {
        local_view_raise(view, first_live(facts));
    }
    if (facts->deadline_ms != member->told.deadline_ms) {
        local_view_prove(view, proof_of(member, facts->deadline_ms));
    }
}

/* ---- what is told -------------------------------------------------------- */

static void
tell(struct bloomery_local *member, enum bloomery_local_event event,
     const char *text)
{
    if (member->on_event == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&member->telling);
    if (!atomic_load(&member->closed)) {
        member->on_event(member->context, event, text);
    }
    (void)pthread_mutex_unlock(&member->telling);
}

/* Returns whether trying again will not mend an error. */
static bool
is_hopeless(enum bloomery_local_code fault, const char *text, bool watched)
{
    static const char *const passing[] = {
        "LOADING",  "MASTERDOWN", "CLUSTERDOWN",   "MOVED", "ASK ",
        "TRYAGAIN", "BUSY",       "max number of", "TURNED"
    };

    if (fault == BLOOMERY_LOCAL_REPLICA) {
        return !watched; /* the next Sentinel may know the primary */
    }
    if (fault != BLOOMERY_LOCAL_REFUSED) {
        return fault == BLOOMERY_LOCAL_TLS || fault == BLOOMERY_LOCAL_FOREIGN ||
               fault == BLOOMERY_LOCAL_LIMIT;
    }
    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++) {
        if (strstr(text, passing[i]) != NULL) {
            return false;
        }
    }
    return true;
}

/* Notes an error, under the mutex. */
static void
note_error(struct bloomery_local *member, enum bloomery_local_code fault,
           const char *text)
{
    struct bloomery_local_status *known = &member->known;

    known->error = fault;
    (void)snprintf(known->error_text, sizeof(known->error_text), "%s", text);
    member->hopeless =
        is_hopeless(fault, text, member->address.sentinel != NULL);
}

/* Updates what local_member_status() returns, and wakes waiting threads. */
static void
note(struct bloomery_local *member, const struct local_facts *facts)
{
    struct bloomery_local_status *known = &member->known;
    struct bloom_info info = { .struct_size = sizeof(info) };

    if (facts->bloom != NULL) {
        bloom_get_info(facts->bloom, &info);
    }
    (void)pthread_mutex_lock(&member->mutex);
    known->loads = facts->loads;
    if (known->connections != member->link.connections) {
        known->connections = member->link.connections;
        (void)snprintf(known->server, sizeof(known->server), "%.255s",
                       member->link.server);
    }
    known->items = info.items;
    known->capacity = info.capacity;
    known->layers = info.layers;
    known->size_bytes = info.size_bytes;
    if (facts->loads != member->told.loads) {
        note_error(member, BLOOMERY_LOCAL_OK, "");
    } else if (facts->fault != BLOOMERY_LOCAL_OK) {
        note_error(member, facts->fault, facts->error);
    }
    if (member->link.cuts != member->told_cuts) {
        note_error(member, member->link.fault, member->link.error);
    }
    known->state = facts->missing    ? BLOOMERY_LOCAL_MISSING
                   : facts->has_copy ? BLOOMERY_LOCAL_STALE
                                     : BLOOMERY_LOCAL_NONE;
    member->answered = member->answered || facts->loads > 0 || facts->missing;
    (void)pthread_cond_broadcast(&member->news);
    (void)pthread_mutex_unlock(&member->mutex);
}

static void
tell_news(struct bloomery_local *member, const struct local_facts *facts)
{
    const struct local_facts *told = &member->told;
    char text[BLOOMERY_LOCAL_TEXT_BYTES];

    if (facts->changes != told->changes) {
        tell(member, BLOOMERY_LOCAL_CHANGED, "the filter became another one");
    }
    if (facts->loads != told->loads) {
        (void)snprintf(text, sizeof(text), "%llu items, %llu bytes",
                       (unsigned long long)member->known.items,
                       (unsigned long long)member->known.size_bytes);
        tell(member, BLOOMERY_LOCAL_LOADED, text);
    }
    if (facts->missing && !told->missing) {
        tell(member, BLOOMERY_LOCAL_GONE, "the key does not exist");
    }
    /* Dials that fail after a reported cut are not reported. */
    if (member->link.cuts != member->told_cuts &&
        member->link.connections != member->told_lost) {
        member->told_lost = member->link.connections;
        tell(member, BLOOMERY_LOCAL_CUT, member->link.error);
    } else if (facts->fault != BLOOMERY_LOCAL_OK &&
               facts->fault != told->fault) {
        tell(member, BLOOMERY_LOCAL_FAILED, facts->error);
    }
}

void
local_member_look(struct bloomery_local *member)
{
    struct local_facts facts;

    local_copy_facts(member->copy, &facts);
    update_view(member, &facts);
    note(member, &facts);
    tell_news(member, &facts);
    member->told = facts;
    member->told_cuts = member->link.cuts;
}

/* ---- life ---------------------------------------------------------------- */

static void
init_locks(struct bloomery_local *member)
{
    pthread_condattr_t monotonic;
    pthread_mutexattr_t recursive;

    /* In the C library these functions only set fields, and do not fail. */
    (void)pthread_mutexattr_init(&recursive);
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&member->news, &monotonic);
    (void)pthread_mutex_init(&member->mutex, NULL);
    (void)pthread_mutex_init(&member->telling, &recursive);
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_mutexattr_destroy(&recursive);
}

struct bloomery_local *
local_member_new(const struct bloomery_local_options *options,
                 const char *server)
{
    struct bloomery_local *member =
        mem_try_zalloc(sizeof(*member) + options->key_bytes);
    struct local_options rules = {
        .max_stale_ms = options->max_stale_ms,
        .refresh_ms = options->refresh_ms,
        .missing_is_absent =
            (options->flags & BLOOMERY_LOCAL_MISSING_IS_ABSENT) != 0,
        .on_swap = on_swap,
        .ctx = member,
    };

    if (member == NULL) {
        return NULL;
    }
    memcpy(member->key, options->key, options->key_bytes);
    rules.key = (struct slice){ member->key, options->key_bytes };
    rules.env = &member->env;
    member->lower = env_or_default(NULL);
    member->env = (struct bloom_env){ .alloc = take,
                                      .free = give,
                                      .alloc_lines = take_lines,
                                      .free_lines = give_lines,
                                      .ctx = member,
                                      .size_limit_bytes = options->max_bytes };
    member->max_stale_ms = options->max_stale_ms;
    member->on_event = options->on_event;
    member->context = options->context;
    member->slack_ns = local_view_slack_ns();
    if (member->slack_ns > member->max_stale_ms * MS_NS / 4) {
        member->slack_ns = member->max_stale_ms * MS_NS / 4;
    }
    local_place_init(&member->place);
    member->link.replica =
        (options->flags & BLOOMERY_LOCAL_REPLICA_ALLOWED) != 0;
    (void)snprintf(member->known.server, sizeof(member->known.server), "%s",
                   server);
    atomic_init(&member->references, 1);
    member->copy = local_copy_new(&rules);
    if (member->copy == NULL) {
        mem_free(member);
        return NULL;
    }
    init_locks(member);
    member->told_lost = UINT_MAX;
    return member;
}

void
local_member_release(struct bloomery_local *member)
{
    if (atomic_fetch_sub(&member->references, 1) == 1) {
        (void)pthread_cond_destroy(&member->news);
        (void)pthread_mutex_destroy(&member->mutex);
        (void)pthread_mutex_destroy(&member->telling);
        mem_free(member);
    }
}

void
local_member_abandon(struct bloomery_local *member)
{
    local_copy_free(member->copy);
    local_member_release(member);
}

void
local_member_close(struct bloomery_local *member)
{
    atomic_store(&member->closed, true);
    local_place_close(&member->place);
    (void)pthread_mutex_lock(&member->mutex);
    (void)pthread_cond_broadcast(&member->news);
    (void)pthread_mutex_unlock(&member->mutex);
    /* Wait until an on_event that runs now has ended. If that on_event closes
     * the copy, the mutex, which is recursive, does not wait. */
    (void)pthread_mutex_lock(&member->telling);
    (void)pthread_mutex_unlock(&member->telling);
}

void
local_member_begin(struct bloomery_local *member,
                   const struct local_address *address, int wake_fd)
{
    bool replica = member->link.replica;

    member->address = *address;
    local_link_init(&member->link, &member->address, member->copy, wake_fd);
    member->link.replica = replica;
}

void
local_member_end(struct bloomery_local *member)
{
    local_link_close(&member->link);
    local_place_give(&member->place, NULL);
    local_copy_free(member->copy);
    member->copy = NULL;
    local_member_release(member);
}

void
local_member_forked(struct bloomery_local *member)
{
    local_place_close(&member->place);
    atomic_store(&member->closed, true);
    init_locks(member);
    member->server = NULL;
}

/* ---- others -------------------------------------------------------------- */

enum bloomery_local_code
local_member_wait(struct bloomery_local *member, uint64_t timeout_ms)
{
    uint64_t end_ns = clock_mono_ns() + timeout_ms * MS_NS;
    const struct timespec end = { (time_t)(end_ns / (1000 * MS_NS)),
                                  (long)(end_ns % (1000 * MS_NS)) };
    enum bloomery_local_code code = BLOOMERY_LOCAL_OK;

    (void)pthread_mutex_lock(&member->mutex);
    while (!member->answered && !member->hopeless &&
           !atomic_load(&member->closed) &&
           pthread_cond_timedwait(&member->news, &member->mutex, &end) == 0) {
    }
    if (atomic_load(&member->closed)) {
        code = BLOOMERY_LOCAL_CLOSED;
    } else if (!member->answered) {
        code = member->hopeless ? (enum bloomery_local_code)member->known.error
                                : BLOOMERY_LOCAL_LATE;
    }
    (void)pthread_mutex_unlock(&member->mutex);
    return code;
}

/* Finds out whether "absent" is proved now, and how old the proof is. False:
 * there is no proof, or this thread cannot read now. */
static bool
read_age(struct bloomery_local *member, bool *ret_fresh, uint64_t *ret_age_ms)
{
    struct local_reader *own = local_readers_begin();
    const struct local_view *view;
    uint64_t until_ns, proved_ns, now_ns = clock_mono_ns();

    if (own == NULL) {
        return false;
    }
    view = atomic_load(&member->place.view);
    until_ns = atomic_load(&view->mono_ns);
    *ret_fresh = local_view_is_fresh(view);
    local_readers_end(own);
    proved_ns = until_ns + member->slack_ns + MS_NS;
    proved_ns -= proved_ns > member->max_stale_ms * MS_NS
                     ? member->max_stale_ms * MS_NS
                     : proved_ns;
    *ret_age_ms = now_ns > proved_ns ? (now_ns - proved_ns) / MS_NS : 0;
    return until_ns > 0;
}

void
local_member_status(struct bloomery_local *member,
                    struct bloomery_local_status *ret_status)
{
    bool fresh = false;

    (void)pthread_mutex_lock(&member->mutex);
    *ret_status = member->known;
    (void)pthread_mutex_unlock(&member->mutex);
    if (atomic_load(&member->closed)) {
        ret_status->state = BLOOMERY_LOCAL_NONE;
        ret_status->error = BLOOMERY_LOCAL_CLOSED;
        (void)snprintf(ret_status->error_text, sizeof(ret_status->error_text),
                       "the copy is closed");
        return;
    }
    if (!read_age(member, &fresh, &ret_status->age_ms)) {
        ret_status->age_ms = 0;
    }
    if (fresh && ret_status->state == BLOOMERY_LOCAL_STALE) {
        ret_status->state = BLOOMERY_LOCAL_FRESH;
    }
}
