/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server that was never a replica and never had a replica has no role file.
 */
#include "roles/kept_role.h"

#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/role.h"
#include "roles/grace.h"
#include "roles/replication_state.h"

#include <stdio.h>

/* Releases the replies to writes once the role that admits writes is on the
 * disk. */
static void
release(struct replication *r, uint64_t epoch)
{
    const struct service *service = r->loop0->service;

    if (r->released_epoch == epoch ||
        kept_file_outcome(r->role_file, atomic_load(&r->shared.kept_ticket)) !=
            1) {
        return;
    }
    gate_enter(replication_gate(r), 0);
    if (service->role.epoch == epoch) {
        r->released_epoch = epoch;
        journal_unbar(persist_journal(service->persist));
    }
    gate_leave(replication_gate(r), 0);
}

void
kept_role_update(struct replication *r)
{
    const struct role role = replication_role(r);
    struct role_state state = { .known = true,
                                .replica = role.replica,
                                .port = role.port,
                                .key = r->key,
                                .replicas = r->has_replicas };
    bool wanted = r->kept.known || state.replica || state.replicas;

    memcpy(state.host, role.host, sizeof(state.host));
    if (!role.replica || r->following.synced_once) {
        memcpy(state.history, r->history, sizeof(state.history));
    }
    if (!role.replica) {
        grace_fill(r, &state);
    }
    if (wanted && (!r->kept.known || !role_state_same(&r->kept, &state))) {
        r->kept = state;
        atomic_store(&r->shared.kept_ticket,
                     role_file_write(r->role_file, &state));
    }
    atomic_store(&r->shared.kept_epoch, role.epoch);
    release(r, role.epoch);
}

void
kept_role_write_again(struct replication *r)
{
    atomic_store(&r->shared.kept_ticket, kept_file_write_again(r->role_file));
}

bool
kept_role_is_settled(void *ctx, uint64_t epoch)
{
    struct replication *r = ctx;

    return atomic_load(&r->shared.kept_epoch) >= epoch &&
           kept_file_outcome(r->role_file,
                             atomic_load(&r->shared.kept_ticket)) != 0;
}

/* ---- the start ----------------------------------------------------------- */

static bool
read_role(const char *dir, struct role_state *ret_state, char *ret_reason,
          unsigned reason_size)
{
    int fd = -1;
    int error = file_open_dir(dir, false, &fd);
    bool read = false;

    if (error != 0) {
        (void)snprintf(ret_reason, reason_size, "%s", strerror(error));
    } else {
        read = role_file_read(fd, ret_state, ret_reason, reason_size);
    }
    file_close(fd);
    return read;
}

enum kept_role
kept_role_open(struct replication *r)
{
    struct service *service = r->loop0->service;
    struct role_state state;
    const struct conf *conf = service->conf;
    char reason[STATUS_TEXT_MAX];
    struct slice words = slice_of(conf->replicaof);
    struct slice host;
    struct slice port_text;
    uint64_t port = 0;

    if (!read_role(conf->dir, &state, reason, sizeof(reason))) {
        log_error("server.replication", "cannot read the role",
                  "file=\"%s/" ROLE_FILE_NAME "\" reason=\"%s\"", conf->dir,
                  reason);
        return KEPT_ROLE_UNREAD;
    }
    if (reason[0] != '\0') {
        log_warn("server.replication", "set the kept role aside",
                 "reason=\"%s\"", reason);
    }
    r->kept = state;
    r->role_file = role_file_new(persist_dir(service->persist),
                                 service->wake_loops, service->ctx);
    r->key = state.key;
    while (r->key == 0) {
        random_bytes(&r->key, sizeof(r->key));
    }
    r->has_replicas = state.known && state.replicas;
    if (state.known && conf->replicaof[0] != '\0') {
        log_notice("server.replication", "uses the kept role, not replicaof",
                   "file=\"%s/" ROLE_FILE_NAME "\" replicaof=\"%s\"", conf->dir,
                   conf->replicaof);
    }
    if (state.known && state.replica) {
        role_set(service, slice_of(state.host), state.port);
    } else if (!state.known && slice_next_word(&words, &host)) {
        if (!slice_next_word(&words, &port_text) ||
            !slice_to_u64(port_text, &port) || port > UINT16_MAX ||
            !role_place_is_valid(host, (uint32_t)port)) {
            log_error("server.replication", "cannot follow",
                      "replicaof=\"%s\" reason=\"it takes a host and a "
                      "port\"",
                      conf->replicaof);
            return KEPT_ROLE_REFUSED;
        }
        role_set(service, host, (uint32_t)port);
    }
    if (service->role.replica &&
        !role_host_is_allowed(conf, slice_of(service->role.host))) {
        log_error("server.replication", "cannot follow",
                  "host=%s reason=\"replicaof-allowed does not name it\" "
                  "next=\"allow it, or remove %s\"",
                  service->role.host,
                  state.known ? ROLE_FILE_NAME " from dir" : "replicaof");
        return KEPT_ROLE_REFUSED;
    }
    if (state.known && !state.replica) {
        r->grace_ms = (uint64_t)conf->start_grace * 1000;
    }
    return KEPT_ROLE_OPEN;
}

void
kept_role_close(struct replication *r)
{
    kept_file_free(r->role_file);
    r->role_file = NULL;
}
