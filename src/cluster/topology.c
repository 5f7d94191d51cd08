/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A line of CLUSTER NODES has eight fields by position, then slots:
 *
 *   <id> <host:port[@cport][,hostname[,...]]> <flags> <primary id, or -> <ping>
 *   <pong> <epoch> <connected|disconnected> [a|a-b|[s->-id]|[s-<-id]] ...
 *
 * Lines are parsed twice: first fields, then primaries and slots, which name
 * nodes of other lines.
 */
#include "cluster/topology.h"

#include "base/err.h"
#include "base/hex.h"
#include "base/mem.h"

#include <stdio.h>

enum { FIELDS = 8, MARKS_MAX = 2 * CLUSTER_SLOTS };

/* The fields of one line, and the slots that follow them. */
struct line {
    struct slice field[FIELDS];
    struct slice slots;
    bool ignored; /* handshake or noaddr */
};

struct parser {
    struct topology *topology;
    struct line *lines;
    size_t line_count;
    char *reason;
};

static bool
refuse_text(struct parser *parser, const char *what, struct slice text)
{
    (void)snprintf(parser->reason, TOPOLOGY_REASON_MAX, "%s: '%.*s'", what,
                   text.len < 64 ? (int)text.len : 64, text.data);
    for (char *at = parser->reason; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = '?';
        }
    }
    return false;
}

/* ---- parts of a line ----------------------------------------------------- */

static bool
is_id(struct slice text)
{
    return hex_is_digits(text, TOPOLOGY_ID_LEN);
}

/* Returns whether the text has only bytes that addresses and host names have.
 * Replies and logs show it, so it must have no others. */
static bool
is_host(struct slice text)
{
    if (text.len >= TOPOLOGY_HOST_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = slice_fold(text.data[i]);

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')) &&
            (c == '\0' || strchr(".:-_%", c) == NULL)) {
            return false;
        }
    }
    return true;
}

static void
copy_text(char *to, struct slice text)
{
    if (text.len > 0) {
        memcpy(to, text.data, text.len);
    }
    to[text.len] = '\0';
}

/* Cuts the text before the first SEPARATOR off the front, and drops the
 * separator; without a separator, cuts off the whole text. */
static struct slice
cut_word(struct slice *text, char separator)
{
    const char *end =
        text->len > 0 ? memchr(text->data, separator, text->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - text->data) : text->len;
    struct slice part = { text->data, len };

    len += end != NULL;
    text->data += len;
    text->len -= len;
    return part;
}

static bool
parse_port(struct slice text, unsigned *ret_port)
{
    uint64_t port;

    if (!slice_to_u64(text, &port) || port > UINT16_MAX) {
        return false;
    }
    *ret_port = (unsigned)port;
    return true;
}

/* Parses host:port[@cport][,hostname[,key=value...]]; an IPv6 host may have
 * brackets or not. */
static bool
parse_address(struct slice text, struct topology_node *node)
{
    struct slice bus = cut_word(&text, ',');
    struct slice address = cut_word(&bus, '@');
    struct slice hostname = cut_word(&text, ',');
    const char *colon =
        address.len > 0 ? memrchr(address.data, ':', address.len) : NULL;
    struct slice host;
    struct slice port;

    if (colon == NULL) {
        return false;
    }
    host = (struct slice){ address.data, (size_t)(colon - address.data) };
    port = (struct slice){ colon + 1, address.len - host.len - 1 };
    if (hostname.len > 0 && memchr(hostname.data, '=', hostname.len) != NULL) {
        hostname.len = 0;
    }
    if (host.len > 1 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
        host = (struct slice){ host.data + 1, host.len - 2 };
    }
    if (!is_host(host) || !is_host(hostname) ||
        !parse_port(port, &node->port) ||
        (bus.len > 0 && !parse_port(bus, &node->cport))) {
        return false;
    }
    copy_text(node->host, host);
    copy_text(node->hostname, hostname);
    return true;
}

/* Flags that a later version may add are ignored. */
static bool
parse_flags(struct slice text, uint32_t *ret_flags, bool *ret_ignored)
{
    static const struct {
        const char *word;
        uint32_t flag;
    } words[] = {
        { "myself", NODE_MYSELF }, { "master", NODE_PRIMARY },
        { "slave", NODE_REPLICA }, { "fail?", NODE_PFAIL },
        { "fail", NODE_FAIL },     { "nofailover", NODE_NOFAILOVER }
    };
    uint32_t flags = 0;

    while (text.len > 0) {
        struct slice word = cut_word(&text, ',');

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (slice_equal(word, slice_of(words[i].word))) {
                flags |= words[i].flag;
            }
        }
        if (slice_equal(word, slice_lit("handshake")) ||
            slice_equal(word, slice_lit("noaddr"))) {
            *ret_ignored = true;
        }
    }
    *ret_flags = flags;
    return (flags & (NODE_PRIMARY | NODE_REPLICA)) !=
           (NODE_PRIMARY | NODE_REPLICA);
}

/* ---- first pass ---------------------------------------------------------- */

static bool
split_line(struct slice text, struct line *line)
{
    for (int i = 0; i < FIELDS; i++) {
        line->field[i] = cut_word(&text, ' ');
        if (line->field[i].len == 0) {
            return false;
        }
    }
    line->slots = text;
    return true;
}

static bool
parse_fields(struct parser *parser, struct line *line)
{
    struct topology *topology = parser->topology;
    struct topology_node *node = &topology->nodes[topology->count];
    const struct slice *field = line->field;

    *node = (struct topology_node){ .primary = -1 };
    if (!is_id(field[0])) {
        return refuse_text(parser, "a node's id is not 40 hex digits",
                           field[0]);
    }
    if (!parse_flags(field[2], &node->flags, &line->ignored)) {
        return refuse_text(parser, "a node is both master and slave", field[0]);
    }
    if (line->ignored && (node->flags & NODE_MYSELF) == 0) {
        return true;
    }
    line->ignored = false;
    copy_text(node->id, field[0]);
    if (topology_find(topology, field[0]) >= 0) {
        return refuse_text(parser, "a node is listed twice", field[0]);
    }
    if (!parse_address(field[1], node)) {
        return refuse_text(parser, "a node's address is malformed", field[1]);
    }
    if (!slice_to_u64(field[6], &node->epoch)) {
        return refuse_text(parser, "a node's epoch is no number", field[6]);
    }
    node->connected = slice_equal(field[7], slice_lit("connected"));
    if ((node->flags & NODE_MYSELF) != 0) {
        if (topology->myself >= 0) {
            return refuse_text(parser, "two nodes are 'myself'", field[0]);
        }
        topology->myself = (int)topology->count;
    }
    if (!map_put(&topology->by_id, field[0], node)) {
        return refuse_text(parser, "no memory for a node", field[0]);
    }
    topology->count++;
    return true;
}

static size_t
count_lines(struct slice text)
{
    size_t count = 0;
    struct slice line;

    while (slice_next_line(&text, &line)) {
        count += line.len > 0;
    }
    return count;
}

static bool
parse_lines(struct parser *parser, struct slice text)
{
    struct topology *topology = parser->topology;
    size_t count = count_lines(text);
    struct slice line;

    if (count == 0 || count > TOPOLOGY_NODES_MAX) {
        return refuse_text(parser, "there are no nodes, or too many",
                           slice_lit("CLUSTER NODES"));
    }
    parser->lines = mem_try_zalloc(count * sizeof(*parser->lines));
    topology->nodes = mem_try_zalloc(count * sizeof(*topology->nodes));
    if (parser->lines == NULL || topology->nodes == NULL) {
        return refuse_text(parser, "no memory for the nodes",
                           slice_lit("CLUSTER NODES"));
    }
    topology->nodes_known = count;
    while (slice_next_line(&text, &line)) {
        struct line *to = &parser->lines[parser->line_count];

        if (line.len == 0) {
            continue;
        }
        if (!split_line(line, to)) {
            return refuse_text(parser, "a line has fewer than 8 fields", line);
        }
        if (!parse_fields(parser, to)) {
            return false;
        }
        parser->line_count++;
    }
    return true;
}

/* ---- second pass --------------------------------------------------------- */

/* Parses "[s->-id]" or "[s-<-id]". */
static bool
parse_mark(struct parser *parser, struct slice text)
{
    struct topology *topology = parser->topology;
    struct slice slot = cut_word(&text, '-');
    struct topology_mark mark = { .node = TOPOLOGY_NOBODY };
    uint64_t number;
    int node;

    if (text.len != TOPOLOGY_ID_LEN + 3 || text.data[1] != '-' ||
        text.data[text.len - 1] != ']' ||
        (text.data[0] != '>' && text.data[0] != '<') ||
        !slice_to_u64((struct slice){ slot.data + 1, slot.len - 1 }, &number) ||
        number >= CLUSTER_SLOTS) {
        return false;
    }
    mark.importing = text.data[0] == '<';
    text = (struct slice){ text.data + 2, TOPOLOGY_ID_LEN };
    if (!is_id(text) || topology->mark_count == MARKS_MAX) {
        return false;
    }
    node = topology_find(topology, text);
    if (node >= 0) {
        mark.node = (uint16_t)node;
    }
    mark.slot = (uint16_t)number;
    if (topology->marks == NULL) {
        topology->marks = mem_try_alloc(MARKS_MAX * sizeof(mark));
        if (topology->marks == NULL) {
            return false;
        }
    }
    topology->marks[topology->mark_count++] = mark;
    return true;
}

static bool
parse_slots(struct parser *parser, const struct line *line, size_t index)
{
    struct topology *topology = parser->topology;
    struct slice rest = line->slots;

    while (rest.len > 0) {
        struct slice word = cut_word(&rest, ' ');
        unsigned first;
        unsigned last;

        if (word.len == 0) {
            continue;
        }
        if (word.data[0] == '[') {
            if (!parse_mark(parser, word)) {
                return refuse_text(parser, "an open slot is malformed", word);
            }
            continue;
        }
        if (!slot_set_parse_range(word, &first, &last)) {
            return refuse_text(parser, "a range of slots is malformed", word);
        }
        if ((topology->nodes[index].flags & NODE_PRIMARY) == 0) {
            return refuse_text(parser, "a node that is no master has slots",
                               word);
        }
        for (unsigned slot = first; slot <= last; slot++) {
            if (topology->owner[slot] != TOPOLOGY_NOBODY) {
                return refuse_text(parser, "a slot has two owners", word);
            }
            topology->owner[slot] = (uint16_t)index;
        }
    }
    return true;
}

static bool
parse_relations(struct parser *parser)
{
    struct topology *topology = parser->topology;
    size_t index = 0;

    for (size_t i = 0; i < parser->line_count; i++) {
        const struct line *line = &parser->lines[i];
        struct slice primary = line->field[3];

        if (line->ignored) {
            continue;
        }
        if (!slice_equal(primary, slice_lit("-"))) {
            if (!is_id(primary)) {
                return refuse_text(parser, "a primary's id is malformed",
                                   primary);
            }
            if ((topology->nodes[index].flags & NODE_REPLICA) != 0) {
                topology->nodes[index].primary =
                    topology_find(topology, primary);
            }
        }
        if (!parse_slots(parser, line, index)) {
            return false;
        }
        index++;
    }
    CHECK(index == topology->count);
    return true;
}

/* ---- INFO and MYID ------------------------------------------------------- */

static bool
parse_info(struct parser *parser, struct slice info)
{
    struct topology *topology = parser->topology;
    bool has_state = false;
    struct slice line;

    while (slice_next_line(&info, &line)) {
        struct slice name = cut_word(&line, ':');
        bool good = true;

        if (slice_equal(name, slice_lit("cluster_state"))) {
            topology->ok = slice_equal(line, slice_lit("ok"));
            has_state = true;
        } else if (slice_equal(name, slice_lit("cluster_current_epoch"))) {
            good = slice_to_u64(line, &topology->current_epoch);
        } else if (slice_equal(name, slice_lit("cluster_my_epoch"))) {
            good = slice_to_u64(line, &topology->my_epoch);
        }
        if (!good) {
            return refuse_text(parser, "an epoch of CLUSTER INFO is no number",
                               line);
        }
    }
    return has_state || refuse_text(parser, "CLUSTER INFO has no cluster_state",
                                    slice_lit("CLUSTER INFO"));
}

static bool
check_myself(struct parser *parser, struct slice myid)
{
    const struct topology *topology = parser->topology;

    if (topology->myself < 0) {
        return refuse_text(parser, "no node is 'myself'", myid);
    }
    if (!slice_equal(myid, slice_of(topology->nodes[topology->myself].id))) {
        return refuse_text(parser, "CLUSTER MYID is not the id of 'myself'",
                           myid);
    }
    return true;
}

bool
topology_parse(struct slice nodes, struct slice info, struct slice myid,
               struct topology **ret_topology,
               char ret_reason[TOPOLOGY_REASON_MAX])
{
    struct parser parser = { .reason = ret_reason };
    bool good;

    parser.topology = mem_try_zalloc(sizeof(*parser.topology));
    if (parser.topology == NULL) {
        (void)snprintf(ret_reason, TOPOLOGY_REASON_MAX, "no memory");
        return false;
    }
    parser.topology->users = 1;
    parser.topology->myself = -1;
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        parser.topology->owner[slot] = TOPOLOGY_NOBODY;
    }
    good = parse_lines(&parser, nodes) && parse_relations(&parser) &&
           parse_info(&parser, info) && check_myself(&parser, myid);
    mem_free(parser.lines);
    if (!good) {
        topology_free(parser.topology);
        return false;
    }
    *ret_topology = parser.topology;
    return true;
}

struct topology *
topology_share(struct topology *topology)
{
    topology->users++;
    return topology;
}

void
topology_free(struct topology *topology)
{
    if (topology != NULL && --topology->users == 0) {
        map_free(&topology->by_id);
        mem_free(topology->nodes);
        mem_free(topology->marks);
        mem_free(topology);
    }
}

/* ---- the rest ------------------------------------------------------------ */

/* Appends a line with 0 for its fields 4 and 5, the times of pings. */
static void
strip_line(struct slice line, struct buf *out)
{
    for (int i = 0; line.len > 0 && i < FIELDS; i++) {
        struct slice field = cut_word(&line, ' ');

        if (i != 4 && i != 5) {
            buf_append_slice(out, field);
        } else if (field.len > 0) {
            buf_append_slice(out, slice_lit("0"));
        }
        buf_append_slice(out, slice_lit(" "));
    }
    buf_append_slice(out, line);
}

void
topology_strip(struct slice nodes, struct slice info, struct slice myid,
               struct buf *out)
{
    struct slice line;

    buf_append_slice(out, myid);
    while (slice_next_line(&nodes, &line)) {
        buf_append_slice(out, slice_lit("\n"));
        strip_line(line, out);
    }
    while (slice_next_line(&info, &line)) {
        struct slice rest = line;
        struct slice name = cut_word(&rest, ':');

        if (slice_equal(name, slice_lit("cluster_state")) ||
            slice_equal(name, slice_lit("cluster_current_epoch")) ||
            slice_equal(name, slice_lit("cluster_my_epoch"))) {
            buf_append_slice(out, slice_lit("\n"));
            buf_append_slice(out, line);
        }
    }
}

int
topology_find(const struct topology *topology, struct slice id)
{
    const struct topology_node *node = map_find(&topology->by_id, id);

    return node == NULL ? -1 : (int)(node - topology->nodes);
}

void
topology_slots_of(const struct topology *topology, int node,
                  struct slot_set *ret_set)
{
    *ret_set = (struct slot_set){ { 0 } };
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (topology->owner[slot] == node) {
            slot_set_add(ret_set, slot);
        }
    }
}
