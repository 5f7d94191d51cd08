/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a client wrote before its server began to follow another one may be
 * lost, whatever replicas acknowledge afterwards: positions are then another
 * log's. So no connection keeps one over that.
 */
#include "command/role.h"

#include "command/client.h"
#include "command/service.h"
#include "net/registry.h"
#include "persist/persist.h"

#include <strings.h>

enum { PIECE_CLIENTS = 1024 };

static void
forget_written(void *ctx, struct conn *conn)
{
    struct session *session = &client_of(conn)->session;

    (void)ctx;
    if (atomic_load(&session->written) > 0) {
        atomic_store(&session->written, UINT64_MAX);
    }
}

static void
forget_all_written(struct service *service)
{
    uint64_t last_id = 0;

    if (service->registry == NULL) {
        return;
    }
    do {
        last_id = registry_visit(service->registry, last_id, PIECE_CLIENTS,
                                 forget_written, NULL);
    } while (last_id != 0);
}

static bool
is_so(const struct role *role, struct slice host, uint32_t port)
{
    return role->replica && role->port == port &&
           strlen(role->host) == host.len &&
           strncasecmp(role->host, host.data, host.len) == 0;
}

static void
set(struct role *role, struct slice host, uint32_t port)
{
    CHECK(host.len < sizeof(role->host));
    memset(role->host, 0, sizeof(role->host));
    if (host.len > 0) {
        memcpy(role->host, host.data, host.len);
    }
    role->port = port;
    role->replica = host.len > 0;
    role->epoch++;
}

static void
tell(const struct service *service)
{
    if (service->replication.role_changed != NULL) {
        service->replication.role_changed(service->ctx);
    }
}

void
role_follow(struct service *service, struct slice host, uint32_t port)
{
    struct role *role = &service->role;

    if (is_so(role, host, port)) {
        return;
    }
    if (!role->replica) {
        forget_all_written(service);
    }
    atomic_store(&service->link_up, false);
    atomic_store(&service->grace_until_ms, 0);
    set(role, host, port);
    tell(service);
}

void
role_lead(struct service *service)
{
    if (!service->role.replica) {
        return;
    }
    atomic_store(&service->link_up, false);
    atomic_store(&service->grace_until_ms, 0);
    set(&service->role, slice_lit(""), 0);
    if (service->persist != NULL) {
        persist_renew_history(service->persist);
    }
    tell(service);
}

void
role_set(struct service *service, struct slice host, uint32_t port)
{
    set(&service->role, host, port);
}

bool
role_host_is_valid(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        if (host.data[i] <= ' ' || host.data[i] > '~' || host.data[i] == '"') {
            return false;
        }
    }
    return host.len > 0 && host.len < ROLE_HOST_MAX;
}
