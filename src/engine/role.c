/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes from before a server becomes a replica may be lost, whatever replicas
 * acknowledge afterwards, since positions then belong to another log. So no
 * session keeps a position over that change.
 */
#include "engine/role.h"

#include "engine/client.h"
#include "engine/service.h"
#include "journal/journal.h"
#include "keyspace/gate.h"
#include "net/registry.h"
#include "persist/persist.h"
#include "persist/place.h"

#include <arpa/inet.h>
#include <string.h>
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
    CHECK(role->epoch > 0 && role->replica == (role->host[0] != '\0'));
}

static void
tell(const struct service *service)
{
    if (service->replication.role_changed != NULL) {
        service->replication.role_changed(service->replication.ctx);
    }
}

void
role_follow(struct service *service, struct slice host, uint32_t port)
{
    struct role *role = &service->role;

    CHECK(role_place_is_valid(host, port));
    if (is_so(role, host, port)) {
        return;
    }
    if (!role->replica) {
        forget_all_written(service);
    }
    atomic_store(&service->link_up, false);
    atomic_store(&service->grace_until_ms, 0);
    if (service->persist != NULL) {
        journal_unbar(persist_journal(service->persist));
    }
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
        journal_bar(persist_journal(service->persist));
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

bool
role_place_is_valid(struct slice host, uint32_t port)
{
    return role_host_is_valid(host) && port > 0 && port <= UINT16_MAX;
}

/* ---- which hosts are allowed --------------------------------------------- */

/* Parses an address into 16 bytes; an IPv4 address becomes its mapped one. */
static bool
parse_address(struct slice text, unsigned char ret_bytes[16],
              unsigned *ret_bits_before)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    char line[INET6_ADDRSTRLEN];

    if (text.len >= sizeof(line)) {
        return false;
    }
    memcpy(line, text.data, text.len);
    line[text.len] = '\0';
    *ret_bits_before = 0;
    if (inet_pton(AF_INET6, line, ret_bytes) == 1) {
        return true;
    }
    *ret_bits_before = 8 * sizeof(mapped);
    memcpy(ret_bytes, mapped, sizeof(mapped));
    return inet_pton(AF_INET, line, ret_bytes + sizeof(mapped)) == 1;
}

static bool
same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned rest = bits % 8;

    return memcmp(a, b, bits / 8) == 0 &&
           (rest == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0);
}

/* Returns whether the address is in a network, which is given as ADDRESS or
 * ADDRESS/BITS. */
static bool
is_in_network(const unsigned char address[16], struct slice network)
{
    const char *slash = memchr(network.data, '/', network.len);
    unsigned char bytes[16];
    uint64_t bits = 128;
    unsigned before;

    if (slash != NULL) {
        struct slice count = { slash + 1, 0 };

        count.len = network.len - (size_t)(slash + 1 - network.data);
        network.len = (size_t)(slash - network.data);
        if (!slice_to_u64(count, &bits) || bits > 128) {
            return false;
        }
    }
    if (!parse_address(network, bytes, &before)) {
        return false;
    }
    bits += slash != NULL ? before : 0;
    return bits <= 128 && same_bits(address, bytes, (unsigned)bits);
}

bool
role_host_is_allowed(const struct conf *conf, struct slice host)
{
    struct slice rest = slice_of(conf->replicaof_allowed);
    unsigned char address[16];
    unsigned before;
    bool numeric = parse_address(host, address, &before);
    struct slice word;

    while (slice_next_word(&rest, &word)) {
        if (slice_is_word(word, "*") ||
            (word.len == host.len &&
             strncasecmp(word.data, host.data, host.len) == 0) ||
            (numeric && is_in_network(address, word))) {
            return true;
        }
    }
    return false;
}

struct role
role_copy(const struct service *service)
{
    struct gate *gate = keyspace_gate(service->keyspace);
    struct role role;

    gate_enter(gate, 0);
    role = service->role;
    gate_leave(gate, 0);
    return role;
}
