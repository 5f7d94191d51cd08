/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A primary that has just started has two doubts. Does another server lead by
 * now (start-grace)? That doubt ends early when all former replicas follow
 * again. Does a replica have changes that this server has lost? Once a replica
 * shows such changes, this doubt lasts until a command says which server leads.
 *
 * The role file keeps the former replicas, each as a hash of its address, and
 * the histories in which replicas that are not back yet may still be. Our data
 * may be too old to name these histories.
 */
#include "roles/grace.h"

#include "base/log.h"
#include "roles/replication_state.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The least time to wait for former replicas. After it, those that are not back
 * are forgotten. */
enum { MEMORY_MS = 60 * 1000 };

/* ---- histories ----------------------------------------------------------- */

static size_t
add_ended(const struct history *loaded, const char *id, uint64_t position,
          struct history_past *ended, size_t count)
{
    uint64_t until = position;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(ended[i].id, id) == 0) {
            return count;
        }
    }
    if (id[0] == '\0' || count == PRIMARY_ENDED_MAX) {
        return count;
    }
    for (size_t i = 0; i < HISTORY_PAST_MAX; i++) {
        if (strcmp(loaded->past[i].id, id) == 0) {
            until = loaded->past[i].until;
        }
    }
    memcpy(ended[count].id, id, sizeof(ended[count].id));
    ended[count].until = until;
    return count + 1;
}

/* Lists the histories of our data, and of the data that the role file
 * remembers. */
static size_t
list_ended(struct replication *r, const struct history *loaded,
           uint64_t position, struct history_past *ended)
{
    const struct role_state *kept = &r->kept;
    size_t count = add_ended(loaded, loaded->id, position, ended, 0);

    if (kept->known && !kept->replica) {
        count = add_ended(loaded, kept->history, position, ended, count);
        for (size_t i = 0; i < ROLE_BEFORE_MAX; i++) {
            count = add_ended(loaded, kept->before[i], position, ended, count);
        }
    }
    return count;
}

/* ---- former replicas ----------------------------------------------------- */

static uint64_t
name_of(const struct primary_hello *hello)
{
    char text[STATUS_TEXT_MAX + 16];
    int len = snprintf(text, sizeof(text), "%s:%u", hello->ip, hello->port);
    uint64_t name = XXH3_64bits(text, (size_t)len);

    return name != 0 ? name : 1;
}

static void
forget_name(uint64_t names[ROLE_FOLLOWERS_MAX], uint64_t name)
{
    size_t kept = 0;

    for (size_t i = 0; i < ROLE_FOLLOWERS_MAX; i++) {
        uint64_t one = names[i];

        names[i] = 0;
        if (one != name && one != 0) {
            names[kept++] = one;
        }
    }
}

/* Adds the hash of an address. False: the list is full. */
static bool
note_name(uint64_t names[ROLE_FOLLOWERS_MAX], uint64_t name)
{
    size_t i = 0;

    while (i < ROLE_FOLLOWERS_MAX && names[i] != 0 && names[i] != name) {
        i++;
    }
    if (i < ROLE_FOLLOWERS_MAX) {
        names[i] = name;
    }
    return i < ROLE_FOLLOWERS_MAX;
}

void
grace_meet(struct replication *r, const struct primary_hello *hello)
{
    struct grace *grace = &r->grace;
    uint64_t name = name_of(hello);

    forget_name(grace->awaited, name);
    if (!note_name(grace->met, name)) {
        grace->met_more = true;
    }
}

void
grace_fill(const struct replication *r, struct role_state *state)
{
    const struct grace *grace = &r->grace;

    memcpy(state->before, grace->before, sizeof(state->before));
    memcpy(state->followers, grace->met, sizeof(state->followers));
    state->more_followers = grace->met_more || grace->awaits_more;
    for (size_t i = 0; i < ROLE_FOLLOWERS_MAX; i++) {
        if (grace->awaited[i] != 0 &&
            !note_name(state->followers, grace->awaited[i])) {
            state->more_followers = true;
        }
    }
}

/* ---- the doubt ----------------------------------------------------------- */

void
grace_begin(struct replication *r, const struct history *loaded,
            uint64_t position)
{
    const struct role_state *kept = &r->kept;
    struct grace *grace = &r->grace;
    struct history_past ended[PRIMARY_ENDED_MAX];
    size_t count = list_ended(r, loaded, position, ended);
    uint64_t memory_ms = r->grace_ms > MEMORY_MS ? r->grace_ms : MEMORY_MS;

    primary_set_ended(r->primary, ended, count);
    *grace = (struct grace){ 0 };
    if (kept->known && !kept->replica) {
        bool named = kept->followers[0] != 0 || kept->more_followers;

        grace->awaits_until_ms = replication_now_ms() + memory_ms;
        grace->awaits_more = kept->more_followers || (kept->replicas && !named);
        memcpy(grace->awaited, kept->followers, sizeof(grace->awaited));
    }
    for (size_t i = 0; i + 1 < count && i < ROLE_BEFORE_MAX; i++) {
        memcpy(grace->before[i], ended[i + 1].id, sizeof(grace->before[i]));
    }
    /* Until now no command could say which server leads. */
    if (r->grace_ms > 0) {
        atomic_store(&r->loop0->service->grace_until_ms,
                     replication_now_ms() + r->grace_ms);
    }
}

static void
note_behind(struct replication *r)
{
    _Atomic uint64_t *until_ms = &r->loop0->service->grace_until_ms;
    bool sidecar = r->loop0->service->cluster != NULL;

    if (atomic_exchange(until_ms, GRACE_BEHIND) != GRACE_BEHIND) {
        log_error("server.replication", "came back with older data",
                  "consequence=\"no writes, no full synchronizations, PING "
                  "fails%s\" help=\"%s\"",
                  sidecar ? ", no slot is served" : "",
                  sidecar
                      ? "say CLUSTER FAILOVER to the node of the replica that "
                        "has newer data, or SIDECAR FORCE-SERVE with all of "
                        "this node's slots here to go on with the older data"
                      : "promote the replica that has newer data and have this "
                        "server follow it, or say REPLICAOF NO ONE here to go "
                        "on with the older data");
    }
}

/* Ends the grace when all former replicas follow again, and none of them is
 * ahead. */
static void
settle_grace(struct replication *r)
{
    _Atomic uint64_t *until_ms = &r->loop0->service->grace_until_ms;
    uint64_t over = atomic_load(until_ms);

    r->grace.awaits_until_ms = 0;
    memset(r->grace.before, 0, sizeof(r->grace.before));
    if (over > 0 && atomic_compare_exchange_strong(until_ms, &over, 0)) {
        log_notice("server.replication", "all replicas are back",
                   "consequence=\"start-grace ended early\"%s", "");
    }
}

static void
stop_awaiting(struct grace *grace)
{
    grace->awaits_until_ms = 0;
    grace->awaits_more = false;
    memset(grace->awaited, 0, sizeof(grace->awaited));
}

static void
look_at_time(struct replication *r)
{
    _Atomic uint64_t *until_ms = &r->loop0->service->grace_until_ms;
    struct grace *grace = &r->grace;
    uint64_t now_ms = replication_now_ms();
    uint64_t over = atomic_load(until_ms);

    if (over > 0 && now_ms >= over) {
        (void)atomic_compare_exchange_strong(until_ms, &over, 0);
    }
    if (grace->awaits_until_ms > 0 && now_ms >= grace->awaits_until_ms) {
        stop_awaiting(grace);
    }
}

void
grace_look(struct replication *r)
{
    const struct grace *grace = &r->grace;

    if (atomic_exchange(&r->loop0->service->leads_by_word, false)) {
        grace_end(r, "a command has said which server leads");
    } else if (primary_is_behind(r->primary)) {
        note_behind(r);
    } else if (grace->awaits_until_ms > 0 && grace->awaited[0] == 0 &&
               !grace->awaits_more) {
        settle_grace(r);
    } else {
        look_at_time(r);
    }
}

void
grace_end(struct replication *r, const char *why)
{
    if (primary_is_behind(r->primary)) {
        log_notice("server.replication", why, "%s", "");
    }
    primary_set_ended(r->primary, NULL, 0);
    stop_awaiting(&r->grace);
    memset(r->grace.before, 0, sizeof(r->grace.before));
    atomic_store(&r->loop0->service->grace_until_ms, 0);
}
