/* SPDX-License-Identifier: BSD-3-Clause
 *
 * In sidecar mode a key's hash has its slot (keyspace/key_hash.h). Dispatch has
 * hashed the first key of a command that it is about to run; the slots of other
 * keys are computed from their names. The lease is compared with a fresh clock,
 * because a process that was stopped may execute what it read long ago.
 */
#include "engine/route.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "engine/rights.h"
#include "engine/txn.h"
#include "keyspace/key_hash.h"

/* What the checks of all keys of a request share. */
struct route {
    const struct cluster_view *view;
    const struct slice *argv; /* of the command being looked at */
    const struct key *hashed; /* a key whose hash may be known */
    int slot;                 /* -1: no key so far */
    enum err err;             /* the verdict on the slots of the keys so far */
    bool pauses;              /* the keys may be looked at in slices */
    bool goes_on;             /* err is ERR_AGAIN: there is a next slice */
};

/* Keys of a slice, which takes less than a millisecond. A command with fewer
 * words is looked at in one piece. */
enum { SLICE_KEYS = 8192 };

/* Uses route->hashed if its name is these very bytes: it may still be the key
 * of an earlier command, whose name is at another place. */
static uint32_t
slot_of(const struct route *route, struct slice name)
{
    const struct key *hashed = route->hashed;

    return hashed->name.data == name.data && hashed->name.len == name.len &&
                   key_hash_has_slots()
               ? key_slot(hashed->hash)
               : hash_slot_of(name);
}

static void
add_key(void *ctx, size_t position)
{
    struct route *route = ctx;
    uint32_t slot;

    if (route->err != OK) {
        return;
    }
    slot = slot_of(route, route->argv[position]);
    if (route->slot < 0) {
        route->slot = (int)slot;
        if (view_owner(route->view, slot) == NULL) {
            route->err = ERR_CLUSTERDOWN_UNBOUND;
        }
    } else if (route->slot != (int)slot) {
        route->err = ERR_CROSSSLOT;
    }
}

static void
add_command(struct route *route, const struct command *command,
            const struct slice *argv, size_t argc)
{
    route->argv = argv;
    command_each_key(command, argc, add_key, route);
}

/* Looks at the next keys of a long command, or at all of them if there is no
 * memory for the state. */
static void
add_slice(struct route *route, struct session *session,
          const struct command *command, const struct slice *argv, size_t argc)
{
    struct rights_walk *walk = session->rights;
    size_t at;

    if (walk == NULL) {
        walk = mem_try_zalloc(sizeof(*walk));
        if (walk == NULL) {
            add_command(route, command, argv, argc);
            return;
        }
        session->rights = walk;
    }
    route->argv = argv;
    route->slot = (int)walk->route.slot - 1;
    for (size_t n = 0; !walk->route.done && n < SLICE_KEYS; n++) {
        at = command_key_from(command, argc, walk->route.next);
        walk->route.done = at == 0;
        walk->route.next = at + 1;
        if (at > 0) {
            add_key(route, at);
        }
        if (route->err != OK) {
            return;
        }
    }
    walk->route.slot = (uint32_t)(route->slot + 1);
    if (!walk->route.done) {
        route->goes_on = true;
        route->err = ERR_AGAIN;
    } else if (route->slot >= 0 &&
               view_owner(route->view, (uint32_t)route->slot) == NULL) {
        route->err = ERR_CLUSTERDOWN_UNBOUND; /* the view may be a new one */
    }
}

/* Finds the slot of a command, or of all that EXEC runs. */
static void
find_slot(struct route *route, struct session *session,
          const struct command *command, const struct slice *argv, size_t argc)
{
    route->slot = -1;
    route->err = OK;
    if (route->pauses && argc > SLICE_KEYS) {
        add_slice(route, session, command, argv, argc);
        return;
    }
    if (command->id != CMD_ID_EXEC) {
        add_command(route, command, argv, argc);
        return;
    }
    for (size_t i = 0; txn_is_open(session) && i < session->txn->count; i++) {
        const struct queued *queued = &session->txn->queue[i];

        add_command(route, queued->command, queued->argv, queued->argc);
    }
}

/* Returns whether the command only reads, the client has said READONLY, and the
 * option sidecar-stale-reads is on. */
static bool
may_be_stale(const struct request *req, bool writes)
{
    return !writes && req->session->reads_replica &&
           req->service->conf->sidecar_stale_reads;
}

static enum err
judge_lease(const struct request *req, bool writes)
{
    return cluster_has_lease(req->service->cluster, clock_boot_ns()) ||
                   may_be_stale(req, writes)
               ? OK
               : ERR_CLUSTERDOWN;
}

static enum err
judge_state(const struct request *req, const struct route *route, bool writes)
{
    const struct cluster_view *view = route->view;
    const struct session *session = req->session;
    int owner = view->topology->owner[route->slot];
    bool mine = owner == view->topology->myself;

    switch ((enum slot_state)view->state[route->slot]) {
    case SLOT_SERVED:
        if (mine) {
            break;
        }
        if (session->reads_replica && !writes && owner == view->leader) {
            break;
        }
        return ERR_MOVED;
    case SLOT_LEAVING:
        if (clock_boot_ns() >=
            atomic_load(&req->service->cluster->leaving_until_ns)) {
            return ERR_AGAIN;
        }
        break;
    case SLOT_EXPORTED:
        if (session->asking) {
            break;
        }
        return mine ? ERR_CLUSTERDOWN_MISSING : ERR_MOVED;
    case SLOT_PULLED:
        return mine ? ERR_ASK : ERR_MOVED;
    case SLOT_HELD:
        return ERR_AGAIN;
    case SLOT_MISSING:
    case SLOT_AWAY:
        return mine ? ERR_CLUSTERDOWN_MISSING : ERR_MOVED;
    }
    return judge_lease(req, writes);
}

/* Shard channels have a slot, but no data: they need no lease, and the state of
 * the slot does not matter. */
static enum err
judge_channel(const struct route *route)
{
    const struct topology *topology = route->view->topology;
    int owner = topology->owner[route->slot];

    return owner == topology->myself || owner == route->view->leader
               ? OK
               : ERR_MOVED;
}

static enum err
judge_command(const struct request *req, struct route *route,
              const struct command *command, const struct slice *argv,
              size_t argc)
{
    const struct cluster_view *view = req->service->cluster->view;
    struct session *session = req->session;
    uint32_t flags = command->flags;
    bool writes;

    if (command->keys.first <= 0 && command->id != CMD_ID_EXEC) {
        return OK;
    }
    if (view == NULL) {
        return command->id == CMD_ID_EXEC && !txn_is_open(session)
                   ? OK
                   : ERR_CLUSTER_UNREAD;
    }
    route->view = view;
    find_slot(route, session, command, argv, argc);
    if (route->err != OK || route->slot < 0) {
        return route->err;
    }
    if ((command->key_use & KEY_NOT) != 0) {
        return judge_channel(route);
    }
    if (command->id == CMD_ID_EXEC) {
        flags |= txn_flags(session);
    }
    writes = (flags & CMD_WRITE) != 0;
    if (!view->topology->ok && !may_be_stale(req, writes)) {
        if (!view->settings.reads_when_down) {
            return ERR_CLUSTERDOWN;
        }
        if (writes) {
            return ERR_CLUSTERDOWN_WRITE;
        }
    }
    return judge_state(req, route, writes);
}

bool
route_allows(const struct request *req, const struct command *command,
             const struct slice *argv, size_t argc, const struct key *key)
{
    struct route route = { .hashed = key };

    return judge_command(req, &route, command, argv, argc) == OK;
}

/* ---- refusals ------------------------------------------------------------ */

/* Writes "<slot> <host>:<port>", without printf, since clients with an old map
 * get this for each command. */
static void
write_redirect(const struct request *req, const struct route *route,
               unsigned node)
{
    const struct conn *conn = req->session->conn;
    struct slice to = view_redirect(&route->view->nodes[node],
                                    conn != NULL && conn->tls != NULL);
    char *at = req->worker->detail;

    _Static_assert(sizeof(req->worker->detail) >
                       NUM_U64_MAX + 2 + TOPOLOGY_HOST_MAX + 8,
                   "a redirect fits");
    at += num_format_u64((uint64_t)route->slot, at);
    *at++ = ' ';
    memcpy(at, to.data, to.len);
    at[to.len] = '\0';
}

/* Makes the session wait for the end of a hand-off, or says that it has waited
 * long enough. A command that MULTI queues does not wait: EXEC will. */
static enum err
hold(const struct request *req)
{
    struct session *session = req->session;
    uint64_t now_ms = clock_mono_ms();

    if (txn_takes(session, req->command)) {
        return OK;
    }
    if (session->held_until_ms == 0) {
        session->held_until_ms = now_ms + ROUTE_HOLD_MS;
    }
    if (now_ms >= session->held_until_ms) {
        return ERR_TRYAGAIN;
    }
    session->wait = CONN_FOR_EVENT;
    return ERR_AGAIN;
}

void
route_count(enum err err)
{
    switch (err) {
    case ERR_MOVED:
        metric_add(METRIC_CLUSTER_MOVED, 1);
        break;
    case ERR_ASK:
        metric_add(METRIC_CLUSTER_ASK, 1);
        break;
    case ERR_TRYAGAIN:
        metric_add(METRIC_CLUSTER_TRYAGAIN, 1);
        break;
    case ERR_REDIRECT: /* outside a cluster */
        break;
    case ERR_CROSSSLOT:
        metric_add(METRIC_CLUSTER_CROSSSLOT, 1);
        break;
    default:
        metric_add(METRIC_CLUSTER_DOWN, 1);
    }
}

enum err
route_check(const struct request *req)
{
    struct route route = { .hashed = &req->key,
                           .pauses = request_may_pause(req) };
    enum err err =
        judge_command(req, &route, req->command, req->argv, req->argc);

    if (__builtin_expect(err == OK, 1)) {
        req->session->held_until_ms = 0;
        return OK;
    }
    if (route.goes_on) {
        return ERR_AGAIN;
    }
    if (err == ERR_AGAIN) {
        err = hold(req);
    } else if (err == ERR_MOVED) {
        write_redirect(req, &route, route.view->topology->owner[route.slot]);
    } else if (err == ERR_ASK) {
        write_redirect(req, &route, route.view->source[route.slot]);
    }
    if (err != ERR_AGAIN) {
        req->session->held_until_ms = 0;
    }
    return err;
}

void
route_command_ends(const struct request *req)
{
    if (!txn_is_open(req->session) &&
        (req->command == NULL || req->command->id != CMD_ID_ASKING)) {
        req->session->asking = false;
    }
}
