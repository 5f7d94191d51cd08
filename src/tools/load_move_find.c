/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One server of the cluster is the way in: it says where the other servers are,
 * and where its own node is, which says where the other nodes are.
 */
#include "tools/load_move_state.h"

#include <stdio.h>

bool
move_place(struct move *move, struct load_place *ret_place, bool server,
           const char *id)
{
    const struct topology *view = server ? move->servers : move->nodes;
    int at = topology_find(view, slice_of(id));

    if (at < 0 || view->nodes[at].host[0] == '\0') {
        tool_complain(&move->load->tool, LOAD_UNREADABLE,
                      "nobody says where %s %s is",
                      server ? "the server beside node" : "node", id);
        return false;
    }
    load_place_init(ret_place, move->load,
                    server ? &move->load->to : &move->load->node,
                    view->nodes[at].host, view->nodes[at].port);
    return true;
}

/* ---- the way in ---------------------------------------------------------- */

/* Splits "host:port". False: it is none. */
static bool
split(const char *address, char *ret_host, size_t size, unsigned *ret_port)
{
    const char *colon = strrchr(address, ':');
    uint64_t port;
    size_t len;

    if (colon == NULL || !slice_to_u64(slice_of(colon + 1), &port) ||
        port == 0 || port > UINT16_MAX) {
        return false;
    }
    len = (size_t)(colon - address);
    if (address[0] == '[' && len > 2 && colon[-1] == ']') {
        address++;
        len -= 2;
    }
    (void)snprintf(ret_host, size, "%.*s", (int)len, address);
    *ret_port = (unsigned)port;
    return true;
}

static bool
is_own_machine(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

/* Reads an option of a server. False: it does not tell. */
static bool
read_option(struct load_place *place, const char *name, char *ret_value,
            size_t size)
{
    struct slice reply;
    struct slice rest;
    struct slice element;
    struct slice text;

    if (!load_place_ask(place, &reply, "CONFIG", "GET", name, NULL)) {
        return false;
    }
    if (!load_reply_array(reply, &rest) ||
        !load_reply_element(&rest, &element) ||
        !load_reply_element(&rest, &element)) {
        return false;
    }
    text = load_reply_text(element);
    (void)snprintf(ret_value, size, "%.*s", (int)text.len, text.data);
    return text.len > 0;
}

/* Finds the node beside a server: sidecar-of is what the server calls it. */
static bool
find_node(struct move *move, struct load_place *way, struct load_place *ret)
{
    char of[LOAD_PLACE_MAX];
    char host[LOAD_PLACE_MAX];
    char way_host[LOAD_PLACE_MAX];
    unsigned port;
    unsigned way_port;

    if (move->load->node_address != NULL) {
        (void)snprintf(of, sizeof(of), "%s", move->load->node_address);
    } else if (!read_option(way, "sidecar-of", of, sizeof(of))) {
        tool_complain(&move->load->tool, LOAD_USAGE,
                      "%s is not the server beside a node of a cluster, or "
                      "does not let this user read sidecar-of: give one with "
                      "--to, and its node with --node",
                      way->address);
        return false;
    }
    if (of[0] == '/') {
        load_place_init(ret, move->load, &move->load->node, of, 0);
        return true;
    }
    if (!split(of, host, sizeof(host), &port)) {
        tool_complain(&move->load->tool, LOAD_USAGE,
                      "%s: '%s' is no address of a node", way->address, of);
        return false;
    }
    if (move->load->node_address == NULL && is_own_machine(host) &&
        split(way->address, way_host, sizeof(way_host), &way_port)) {
        (void)snprintf(host, sizeof(host), "%s", way_host);
    }
    load_place_init(ret, move->load, &move->load->node, host, port);
    return true;
}

static bool
open_way(struct move *move, const char *from, struct load_place *way)
{
    struct load *load = move->load;
    const char *address = load->to.address;
    char host[LOAD_PLACE_MAX];
    unsigned port;

    if (address == NULL) {
        address = strrchr(from, ':') != NULL ? from : LOAD_DEFAULT_ADDRESS;
    }
    if (address[0] == '/') {
        load_place_init(way, load, &load->to, address, 0);
    } else if (split(address, host, sizeof(host), &port)) {
        load_place_init(way, load, &load->to, host, port);
    } else {
        tool_complain(&load->tool, LOAD_USAGE, "'%s' is no host:port", address);
        return false;
    }
    return load_place_open(way);
}

/* ---- the ends ------------------------------------------------------------ */

static bool
is_at(const struct topology_node *node, const char *host, unsigned port)
{
    return node->port == port &&
           (strcmp(node->host, host) == 0 || strcmp(node->hostname, host) == 0);
}

/* Returns the id of the node that the word names: by its id, its address, or
 * the address of the server beside it; or NULL. */
static const char *
resolve(const struct move *move, const char *word)
{
    const struct topology *views[] = { move->nodes, move->servers };
    char host[LOAD_PLACE_MAX];
    unsigned port;
    int at = topology_find(move->nodes, slice_of(word));

    if (at >= 0) {
        return move->nodes->nodes[at].id;
    }
    if (!split(word, host, sizeof(host), &port)) {
        return NULL;
    }
    for (int view = 0; view < 2; view++) {
        for (size_t i = 0; i < views[view]->count; i++) {
            if (is_at(&views[view]->nodes[i], host, port)) {
                return views[view]->nodes[i].id;
            }
        }
    }
    return NULL;
}

static bool
set_end(struct move *move, int end, const char *word)
{
    const char *id = resolve(move, word);

    if (id == NULL) {
        tool_complain(&move->load->tool, LOAD_USAGE,
                      "%s: the cluster has no such node; give the id or the "
                      "address that CLUSTER NODES shows for it, or the address "
                      "of the server beside it",
                      word);
        return false;
    }
    memcpy(move->id[end], id, sizeof(move->id[end]));
    return move_place(move, &move->node[end], false, id) &&
           move_place(move, &move->server[end], true, id);
}

bool
move_find(struct move *move, const char *from, const char *to)
{
    struct load_place way = { 0 };
    struct load_place node = { 0 };
    bool good = open_way(move, from, &way) && find_node(move, &way, &node) &&
                load_place_view(&way, &move->servers) &&
                load_place_view(&node, &move->nodes) &&
                set_end(move, MOVE_FROM, from) && set_end(move, MOVE_TO, to);

    load_place_close(&way);
    load_place_close(&node);
    if (good && strcmp(move->id[MOVE_FROM], move->id[MOVE_TO]) == 0) {
        tool_complain(&move->load->tool, LOAD_USAGE,
                      "FROM and TO are the same node");
        return false;
    }
    return good;
}
