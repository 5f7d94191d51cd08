/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replicas that have failed are left out only from CLUSTER SLOTS.
 */
#include "cluster/view_text.h"

#include "base/err.h"
#include "proto/reply.h"

/* The state of writing one variant of one reply. */
struct writer {
    const struct cluster_view *view;
    struct reply *reply;
    bool tls;
};

/* ---- CLUSTER SLOTS ------------------------------------------------------- */

/* Writes host, port, id, and further facts about the address. */
static void
write_slots_node(const struct writer *writer, const struct view_node *node)
{
    struct reply *reply = writer->reply;
    bool has_ip = node->endpoint != node->host;
    bool has_name = node->endpoint != node->hostname && *node->hostname != '\0';

    reply_array(reply, 4);
    if (node->endpoint == NULL) {
        reply_null(reply);
    } else {
        reply_bulk_text(reply, node->endpoint);
    }
    reply_int(reply, node->port[writer->tls]);
    reply_bulk_text(reply, node->node->id);
    reply_map(reply, (size_t)has_ip + has_name);
    if (has_ip) {
        reply_bulk_text(reply, "ip");
        reply_bulk_text(reply, node->host);
    }
    if (has_name) {
        reply_bulk_text(reply, "hostname");
        reply_bulk_text(reply, node->hostname);
    }
}

static void
write_slots_range(const struct writer *writer, unsigned first, unsigned last)
{
    const struct cluster_view *view = writer->view;
    const struct view_node *owner = &view->nodes[view->topology->owner[first]];
    size_t count = 3;

    for (int i = owner->first_replica; i >= 0;
         i = view->nodes[i].next_replica) {
        count += !view->nodes[i].failed;
    }
    reply_array(writer->reply, count);
    reply_int(writer->reply, first);
    reply_int(writer->reply, last);
    write_slots_node(writer, owner);
    for (int i = owner->first_replica; i >= 0;
         i = view->nodes[i].next_replica) {
        if (!view->nodes[i].failed) {
            write_slots_node(writer, &view->nodes[i]);
        }
    }
}

/* Returns the first slot after `slot` that has another owner. */
static unsigned
end_of_range(const struct topology *topology, unsigned slot)
{
    uint16_t owner = topology->owner[slot];

    while (slot < CLUSTER_SLOTS && topology->owner[slot] == owner) {
        slot++;
    }
    return slot;
}

static void
write_slots(const struct writer *writer)
{
    const struct topology *topology = writer->view->topology;
    size_t place = reply_begin(writer->reply);
    size_t count = 0;
    unsigned end;

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot = end) {
        end = end_of_range(topology, slot);
        if (topology->owner[slot] != TOPOLOGY_NOBODY) {
            write_slots_range(writer, slot, end - 1);
            count++;
        }
    }
    reply_array_end(writer->reply, place, count);
}

/* ---- CLUSTER SHARDS ------------------------------------------------------ */

static void
write_shard_node(const struct writer *writer, const struct view_node *node,
                 size_t *gap)
{
    struct reply *reply = writer->reply;
    const struct cluster_view *view = writer->view;
    bool has_name = *node->hostname != '\0';
    bool replica = (node->node->flags & NODE_REPLICA) != 0;

    reply_map(reply, 6 + (size_t)view->has_plain + view->has_tls + has_name);
    reply_bulk_text(reply, "id");
    reply_bulk_text(reply, node->node->id);
    if (view->has_plain) {
        reply_named_int(reply, "port", node->port[0]);
    }
    if (view->has_tls) {
        reply_named_int(reply, "tls-port", node->port[1]);
    }
    reply_bulk_text(reply, "ip");
    reply_bulk_text(reply, node->host);
    reply_bulk_text(reply, "endpoint");
    reply_bulk_text(reply, node->endpoint != NULL ? node->endpoint : "");
    if (has_name) {
        reply_bulk_text(reply, "hostname");
        reply_bulk_text(reply, node->hostname);
    }
    reply_bulk_text(reply, "role");
    reply_bulk_text(reply, replica ? "replica" : "master");
    reply_bulk_text(reply, "replication-offset");
    if ((node->node->flags & NODE_MYSELF) != 0) {
        *gap = reply->buf->len; /* CLUSTER SHARDS inserts the offset */
    } else {
        reply_int(reply, 0); /* nodes do not tell each other theirs */
    }
    reply_bulk_text(reply, "health");
    reply_bulk_text(reply, node->failed ? "fail" : "online");
}

/* Returns the slots of a node; most nodes of a large cluster have none. */
static struct slot_set
slots_of(const struct cluster_view *view, int index)
{
    struct slot_set set = { { 0 } };

    if (view->nodes[index].slots > 0) {
        topology_slots_of(view->topology, index, &set);
    }
    return set;
}

static void
write_shard_slots(const struct writer *writer, int index)
{
    struct reply *reply = writer->reply;
    struct slot_set set;
    size_t place;
    size_t count = 0;
    unsigned at = 0;
    unsigned first;
    unsigned last;

    set = slots_of(writer->view, index);
    reply_bulk_text(reply, "slots");
    place = reply_begin(reply);
    while (slot_set_next(&set, &at, &first, &last)) {
        reply_int(reply, first);
        reply_int(reply, last);
        count += 2;
    }
    reply_array_end(reply, place, count);
}

static size_t
count_replicas(const struct cluster_view *view, const struct view_node *node)
{
    size_t count = 0;

    for (int i = node->first_replica; i >= 0; i = view->nodes[i].next_replica) {
        count++;
    }
    return count;
}

/* Returns where this server's replication offset is inserted. */
static size_t
write_shards(const struct writer *writer)
{
    const struct cluster_view *view = writer->view;
    struct reply *reply = writer->reply;
    size_t shards = 0;
    size_t gap = SIZE_MAX;

    for (size_t i = 0; i < view->topology->count; i++) {
        shards += (view->nodes[i].node->flags & NODE_PRIMARY) != 0;
    }
    reply_array(reply, shards);
    for (size_t i = 0; i < view->topology->count; i++) {
        const struct view_node *node = &view->nodes[i];

        if ((node->node->flags & NODE_PRIMARY) == 0) {
            continue;
        }
        reply_map(reply, 2);
        write_shard_slots(writer, (int)i);
        reply_bulk_text(reply, "nodes");
        reply_array(reply, 1 + count_replicas(view, node));
        write_shard_node(writer, node, &gap);
        for (int r = node->first_replica; r >= 0;
             r = view->nodes[r].next_replica) {
            write_shard_node(writer, &view->nodes[r], &gap);
        }
    }
    return gap;
}

/* ---- CLUSTER NODES ------------------------------------------------------- */

static void
write_flags(struct buf *out, uint32_t flags)
{
    static const struct {
        uint32_t flag;
        const char *word;
    } words[] = {
        { NODE_MYSELF, "myself" }, { NODE_PRIMARY, "master" },
        { NODE_REPLICA, "slave" }, { NODE_PFAIL, "fail?" },
        { NODE_FAIL, "fail" },     { NODE_NOFAILOVER, "nofailover" }
    };
    const char *between = "";

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((flags & words[i].flag) != 0) {
            buf_printf(out, "%s%s", between, words[i].word);
            between = ",";
        }
    }
    if (*between == '\0') {
        buf_append_slice(out, slice_lit("noflags"));
    }
}

/* Writes a line. The times of pings are 0, since daemons send each other none.
 */
static void
write_nodes_line(const struct writer *writer, struct buf *out, size_t index)
{
    const struct cluster_view *view = writer->view;
    const struct view_node *node = &view->nodes[index];
    const struct topology_node *about = node->node;
    struct slot_set set;

    buf_printf(out, "%s %s:%u@%u", about->id, node->host,
               node->port[writer->tls], about->cport);
    if (*node->hostname != '\0') {
        buf_printf(out, ",%s", node->hostname);
    }
    buf_append_slice(out, slice_lit(" "));
    write_flags(out, about->flags);
    buf_printf(out, " %s 0 0 %llu %s",
               about->primary >= 0 ? view->nodes[about->primary].node->id : "-",
               (unsigned long long)about->epoch,
               about->connected ? "connected" : "disconnected");
    set = slots_of(view, (int)index);
    if (!slot_set_is_empty(&set)) {
        buf_append_slice(out, slice_lit(" "));
        slot_set_write(out, &set);
    }
    buf_append_slice(out, slice_lit("\n"));
}

static void
write_nodes(const struct writer *writer)
{
    struct buf text = { 0 };

    for (size_t i = 0; i < writer->view->topology->count; i++) {
        write_nodes_line(writer, &text, i);
    }
    reply_text(writer->reply, &text);
}

/* ---- all ----------------------------------------------------------------- */

static bool
write_text(struct cluster_view *view, enum view_reply which, bool tls,
           unsigned resp)
{
    struct view_text *to = &view->reply[which][tls][resp == 3];
    struct reply reply = { &to->text, resp };
    struct writer writer = { view, &reply, tls };

    to->gap = SIZE_MAX;
    switch (which) {
    case VIEW_SLOTS:
        write_slots(&writer);
        break;
    case VIEW_SHARDS:
        to->gap = write_shards(&writer);
        break;
    case VIEW_NODES:
        write_nodes(&writer);
        break;
    }
    return !to->text.failed;
}

static bool
write_all(struct cluster_view *view, bool tls, unsigned resp)
{
    return write_text(view, VIEW_SLOTS, tls, resp) &&
           write_text(view, VIEW_SHARDS, tls, resp) &&
           write_text(view, VIEW_NODES, tls, resp);
}

bool
view_text_write(struct cluster_view *view)
{
    return write_all(view, false, 2) && write_all(view, false, 3) &&
           (!view->has_both ||
            (write_all(view, true, 2) && write_all(view, true, 3)));
}
