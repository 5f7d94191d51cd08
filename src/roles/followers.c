/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handles the bytes and events of the links, and the snapshot's pipe.
 */
#include "roles/followers.h"

#include "access/users.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/session.h"
#include "info/links.h"
#include "keyspace/gate.h"
#include "net/link_take.h"
#include "persist/place.h"
#include "persist/sync.h"
#include "proto/scan.h"
#include "repl/primary_sync.h"
#include "roles/failover.h"
#include "roles/figures.h"
#include "roles/grace.h"
#include "roles/kept_role.h"
#include "roles/outgoing.h"
#include "roles/replication_state.h"
#include "roles/role_change.h"

#include <stdio.h>
#include <unistd.h>

enum {
    UNPARSED_MAX = 4096, /* an ACK has about 80 bytes */
    ANSWER_MS = 5000     /* time for the replica to read a refusal */
};

struct follower {
    struct follower *next;
    struct replication *r;
    uint64_t id; /* the id of the former client */
    struct link *link;
    struct user *user; /* the user of its login, with a reference */
};

static struct follower *
find_follower(struct replication *r, uint64_t id)
{
    struct follower *follower = r->followers;

    while (follower != NULL && follower->id != id) {
        follower = follower->next;
    }
    return follower;
}

static void
free_follower(struct follower *follower)
{
    user_unref(follower->user);
    mem_free(follower);
}

static void
forget_follower(struct follower *follower)
{
    struct follower **at = &follower->r->followers;

    while (*at != follower) {
        at = &(*at)->next;
    }
    *at = follower->next;
    free_follower(follower);
}

/* ---- acknowledgements ---------------------------------------------------- */

static const struct parse_limits ack_limits = { .args_max = 8,
                                                .bulk_max = 128,
                                                .query_max = UNPARSED_MAX };

/* Handles REPLCONF ACK, the only command that a replica may send. False: it has
 * sent another command. */
static bool
handle_acks(struct replication *r, uint64_t id, const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct batch_command *command = &batch->command[i];
        uint64_t position;
        uint64_t synced;

        if (!wire_parse_ack(&batch->argv[command->first], command->argc,
                            &position, &synced)) {
            return false;
        }
        primary_acked(r->primary, id, position, synced, replication_now_ms());
    }
    return true;
}

static void
on_bytes(void *ctx, struct link *link, struct slice bytes, size_t *ret_used)
{
    struct follower *follower = ctx;
    struct replication *r = follower->r;
    uint64_t id = follower->id;
    struct batch batch;
    size_t at = 0;
    size_t before;
    bool good = true;

    (void)link;
    memset(&batch, 0, sizeof(batch));
    do {
        before = at;
        batch_clear(&batch);
        good = scan_commands(bytes, &ack_limits, &batch, &at) == OK &&
               handle_acks(r, id, &batch);
    } while (good && at > before);
    batch_fini(&batch);
    *ret_used = at;
    /* An acknowledgement may have dropped the replica. */
    if (find_follower(r, id) != NULL &&
        (!good || bytes.len - at > UNPARSED_MAX)) {
        (void)primary_drop(r->primary, id,
                           "it sent something other than REPLCONF ACK");
    }
    figures_settle(r);
}

static void
on_drained(void *ctx, struct link *link)
{
    struct follower *follower = ctx;
    struct replication *r = follower->r;

    (void)link;
    primary_drained(r->primary, follower->id, replication_now_ms());
    figures_settle(r);
}

static void
on_follower_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct follower *follower = ctx;
    struct replication *r = follower->r;
    uint64_t id = follower->id;

    (void)link;
    (void)error;
    log_notice("server.replication", "lost a replica", "id=%llu reason=\"%s\"",
               (unsigned long long)id, reason);
    status_note_lost(r->loop0->service->status, id, reason);
    forget_follower(follower);
    r->figures_due = true;
    primary_detached(r->primary, id);
    figures_settle(r);
}

static const struct link_hooks follower_hooks = {
    .bytes = on_bytes, .drained = on_drained, .closed = on_follower_closed
};

/* ---- hooks of the primary's side ----------------------------------------- */

static bool
send_to(void *ctx, uint64_t id, struct slice bytes)
{
    struct follower *follower = find_follower(ctx, id);

    return follower != NULL && link_send(follower->link, bytes);
}

static size_t
unsent_of(void *ctx, uint64_t id)
{
    struct follower *follower = find_follower(ctx, id);

    return follower != NULL ? link_unsent(follower->link) : 0;
}

static void
drop_follower(void *ctx, uint64_t id, const char *reason)
{
    struct replication *r = ctx;
    struct follower *follower = find_follower(r, id);

    if (follower != NULL) {
        log_warn("server.replication", "dropped a replica",
                 "id=%llu reason=\"%s\"", (unsigned long long)id, reason);
        status_note_lost(r->loop0->service->status, id, reason);
        link_close(follower->link);
        forget_follower(follower);
        r->figures_due = true;
    }
}

static void
ask_sync(void *ctx, const struct slot_set *slots)
{
    struct replication *r = ctx;

    r->sync.limited = slots != NULL;
    persist_ask_sync(r->loop0->service->persist, slots);
}

static void
end_pipe(struct replication *r)
{
    if (r->sync.pipe != NULL) {
        link_close(r->sync.pipe);
        r->sync.pipe = NULL;
    }
}

static void
cancel_sync(void *ctx)
{
    struct replication *r = ctx;

    end_pipe(r);
    r->sync = (struct outgoing_sync){ 0 };
    persist_cancel_sync(r->loop0->service->persist);
}

static void
pause_sync(void *ctx, bool paused)
{
    const struct replication *r = ctx;

    if (r->sync.pipe != NULL) {
        link_pause(r->sync.pipe, paused);
    }
}

static void
acked(void *ctx)
{
    struct replication *r = ctx;

    r->figures_due = true;
}

const struct primary_hooks followers_hooks = { .send = send_to,
                                               .unsent = unsent_of,
                                               .drop = drop_follower,
                                               .ask_sync = ask_sync,
                                               .cancel_sync = cancel_sync,
                                               .pause_sync = pause_sync,
                                               .acked = acked };

/* ---- snapshots for replicas ---------------------------------------------- */

static void
end_sync(struct replication *r)
{
    bool good = r->sync.error == 0;

    r->sync = (struct outgoing_sync){ .state = OUTGOING_NONE };
    primary_sync_ended(r->primary, good, replication_now_ms());
    figures_settle(r);
}

/* Notes that the pipe was read to its end, or that the snapshot was written
 * completely. When both have happened, the snapshot ends. */
static void
end_half(struct replication *r, enum outgoing_state half, int error)
{
    if (r->sync.error == 0) {
        r->sync.error = error;
    }
    if (r->sync.state == OUTGOING_RUNS) {
        r->sync.state = half;
    } else if (r->sync.state != half) {
        CHECK(r->sync.state != OUTGOING_NONE);
        end_sync(r);
    }
}

static void
on_pipe_bytes(void *ctx, struct link *link, struct slice bytes,
              size_t *ret_used)
{
    struct replication *r = ctx;

    (void)link;
    *ret_used = bytes.len;
    primary_sync_bytes(r->primary, bytes, replication_now_ms());
    figures_settle(r);
}

static void
on_pipe_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct replication *r = ctx;

    (void)link;
    (void)reason;
    r->sync.pipe = NULL;
    end_half(r, OUTGOING_READ, error);
}

static const struct link_hooks pipe_hooks = { .bytes = on_pipe_bytes,
                                              .closed = on_pipe_closed };

void
followers_sync_began(void *ctx, int fd, int error, uint64_t position,
                     uint64_t sequence)
{
    struct replication *r = ctx;
    int64_t bytes = r->sync.limited ? 0 : metric_sum(METRIC_BF_MEMORY);
    struct primary_sync sync = { .position = position,
                                 .sequence = sequence,
                                 .bytes = bytes > 0 ? (uint64_t)bytes : 0 };

    r->sync = (struct outgoing_sync){ .state = OUTGOING_RUNS,
                                      .error = error,
                                      .limited = r->sync.limited };
    if (fd < 0) {
        end_sync(r);
        return;
    }
    r->sync.pipe = link_take(r->loop0->loop, fd, &pipe_hooks, r);
    if (r->sync.pipe == NULL) {
        end_half(r, OUTGOING_READ, ENOMEM);
        persist_cancel_sync(r->loop0->service->persist);
        return;
    }
    log_notice("server.replication", "began a full synchronization",
               "position=%llu", (unsigned long long)position);
    gate_enter(replication_gate(r), 0);
    memcpy(sync.history, persist_history(r->loop0->service->persist)->id,
           sizeof(sync.history));
    gate_leave(replication_gate(r), 0);
    primary_sync_began(r->primary, &sync, replication_now_ms());
    figures_settle(r);
}

void
followers_sync_reached(void *ctx, uint64_t position, uint64_t sequence)
{
    struct replication *r = ctx;

    (void)sequence;
    if (r->sync.state != OUTGOING_NONE) { /* else the snapshot was cancelled */
        primary_sync_reached(r->primary, position);
    }
}

void
followers_sync_ended(void *ctx, int error)
{
    struct replication *r = ctx;

    if (r->sync.state == OUTGOING_NONE) { /* the snapshot was cancelled */
        return;
    }
    if (error != 0) {
        end_pipe(r);
        r->sync.error = error;
        end_sync(r);
    } else {
        end_half(r, OUTGOING_WRITTEN, 0);
    }
}

/* ---- new replicas -------------------------------------------------------- */

static void
describe_follower(const struct follower *follower,
                  const struct handover *handover,
                  struct primary_hello *ret_hello)
{
    memset(ret_hello, 0, sizeof(*ret_hello));
    ret_hello->id = follower->id;
    ret_hello->port = handover->port;
    ret_hello->position = handover->position;
    memcpy(ret_hello->run_id, handover->run_id, sizeof(ret_hello->run_id));
    memcpy(ret_hello->history, handover->history, sizeof(ret_hello->history));
    link_peer_address(follower->link, ret_hello->address);
    link_local_address(follower->link, ret_hello->local_address);
    link_peer_host(follower->link, ret_hello->ip);
    (void)snprintf(ret_hello->user, sizeof(ret_hello->user), "%s",
                   follower->user != NULL ? follower->user->name : "default");
    ret_hello->pulls = handover->pulls;
    ret_hello->wants_holdings = handover->wants_holdings;
    ret_hello->slots = handover->slots;
    if (handover->ip[0] != '\0') {
        (void)snprintf(ret_hello->ip, sizeof(ret_hello->ip), "%s",
                       handover->ip);
    }
}

/* Returns whether the replica was accepted. */
static bool
attach(struct follower *follower, const struct handover *handover)
{
    struct replication *r = follower->r;
    struct primary_hello hello;

    follower->next = r->followers;
    r->followers = follower;
    describe_follower(follower, handover, &hello);
    if (!primary_attach(r->primary, &hello, replication_now_ms())) {
        grace_look(r);
        return false;
    }
    if (hello.pulls) { /* grace does not wait for a server that only takes slots
                          over */
        log_notice("server.replication", "a server takes slots over",
                   "id=%llu address=%s port=%u slots=%u",
                   (unsigned long long)hello.id, hello.address, hello.port,
                   slot_set_count(&hello.slots));
        return true;
    }
    grace_meet(r, &hello);
    grace_look(r);
    log_notice("server.replication", "a replica follows",
               "id=%llu address=%s port=%u history=%s position=%llu",
               (unsigned long long)hello.id, hello.address, hello.port,
               hello.history[0] != '\0' ? hello.history : "none",
               (unsigned long long)hello.position);
    r->has_replicas = true;
    kept_role_update(r);
    return true;
}

/* Returns whether the server with this run id is above us. Two servers that
 * connect to each other at the same moment detect the ring only here. */
static bool
is_above_us(const struct replication *r, const char *run_id)
{
    char chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1];
    size_t count = replica_chain(r->replica, chain);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(chain[i], run_id) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the error reply that refuses the replica; NULL: it is not refused.
 * `text` is storage for the reply. */
static const char *
refusal(struct replication *r, const struct handover *handover, char *text,
        size_t size)
{
    char reason[STATUS_TEXT_MAX];

    if (!handover->failover && /* a failover leaves no server above us */
        handover->chain_changes !=
            atomic_load(&r->loop0->service->chain_changes)) {
        return "-ERR the chain of primaries has changed, try again\r\n";
    }
    if (handover->failover &&
        !failover_take_over(r, handover, reason, sizeof(reason))) {
        (void)snprintf(text, size, "-ERR %s\r\n", reason);
        return text;
    }
    role_change_look(r); /* failover_take_over may have changed the role */
    if (!replication_role(r).replica) {
        return NULL;
    }
    if (is_above_us(r, handover->run_id) &&
        (!handover->pulls || replica_is_connected(r->replica))) {
        return "-ERR a ring: this server follows the one that asks\r\n";
    }
    /* A server that takes slots over needs our data, not our primary's. It may
     * even be our primary, if that has lost its data and we have no link to it.
     */
    return replica_is_connected(r->replica) ||
                   (handover->pulls && links_has_data(r->loop0->service))
               ? NULL
               : "-NOMASTERLINK Can't SYNC while not connected with my "
                 "master\r\n";
}

/* Accepts the replica. False: it was refused with an error reply. */
static bool
admit(struct follower *follower, const struct handover *handover)
{
    struct replication *r = follower->r;
    char text[STATUS_TEXT_MAX + 16];
    const char *refused;

    role_change_look(r);
    grace_look(r); /* a command may have just said which server leads */
    figures_keep_chain(r);
    refused = refusal(r, handover, text, sizeof(text));
    if (refused != NULL) {
        (void)link_send(follower->link, slice_of(refused));
        return false;
    }
    outgoing_open(r);
    role_change_note_history(r);
    (void)outgoing_seal(r);
    if (!attach(follower, handover)) {
        r->followers = follower->next;
        return false;
    }
    return true;
}

static void
drop_handover(void *ptr)
{
    struct handover *handover = ptr;

    (void)close(handover->fd);
    session_free_handover(handover);
}

/* Accepts a handed-over connection, on loop 0. */
static void
on_handover(struct loop *loop, void *ptr, uint64_t number)
{
    const struct worker *worker = loop->owner;
    struct replication *r = worker->service->replication.ctx;
    struct handover *handover = ptr;
    struct follower *follower = mem_try_alloc(sizeof(*follower));

    (void)number;
    if (follower == NULL || r->life != REPLICATION_RUNS) {
        mem_free(follower);
        drop_handover(handover);
        return;
    }
    *follower =
        (struct follower){ .r = r, .id = handover->id, .user = handover->user };
    handover->user = NULL;
    follower->link = link_take(loop, handover->fd, &follower_hooks, follower);
    if (follower->link != NULL && handover->tls != NULL) {
        link_secure(follower->link, handover->tls);
        handover->tls = NULL;
    }
    if (follower->link == NULL) {
        free_follower(follower);
    } else if (!admit(follower, handover)) {
        link_close_after(follower->link, ANSWER_MS);
        free_follower(follower);
    }
    figures_settle(r);
    session_free_handover(handover);
    r->users_seen = 0; /* the user may be gone since PSYNC */
    followers_revoke(r);
}

bool
followers_take(void *ctx, struct handover *handover)
{
    struct replication *r = ctx;

    return mailbox_give(&r->loop0->loop->mailbox, on_handover, drop_handover,
                        handover);
}

void
followers_kill(struct replication *r, uint64_t id)
{
    if (primary_drop(r->primary, id, "killed by a client")) {
        figures_settle(r);
    }
}

/* Returns the id of a replica whose user was deleted; 0: there is none. */
static uint64_t
find_lost(const struct replication *r)
{
    struct gate *gate = keyspace_gate(r->loop0->service->keyspace);
    const struct follower *follower = r->followers;
    uint64_t id;

    gate_enter(gate, 0);
    while (follower != NULL &&
           (follower->user == NULL || !follower->user->gone)) {
        follower = follower->next;
    }
    id = follower != NULL ? follower->id : 0;
    gate_leave(gate, 0);
    return id;
}

void
followers_revoke(struct replication *r)
{
    uint64_t changes = atomic_load(&r->loop0->service->users->changes);
    uint64_t id;

    if (changes == r->users_seen) {
        return;
    }
    while ((id = find_lost(r)) != 0 &&
           primary_drop(r->primary, id, "its user was deleted")) {
        figures_settle(r);
    }
    r->users_seen = changes;
}

void
followers_close(struct replication *r)
{
    end_pipe(r);
    while (r->followers != NULL) {
        struct follower *follower = r->followers;

        r->followers = follower->next;
        link_close(follower->link);
        free_follower(follower);
    }
}
