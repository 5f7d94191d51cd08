/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the replies of CLUSTER NODES, INFO and MYID, which NULs
 * separate. What is accepted is consistent, becomes a view, and the view's own
 * CLUSTER NODES is read again as the same cluster. What is refused has a
 * reason.
 */
#include "base/err.h"
#include "base/mem.h"
#include "cluster/view.h"
#include "target.h"

#include <stdio.h>
#include <string.h>

static void
check(const struct topology *t)
{
    CHECK(t->count > 0 && t->count <= t->nodes_known);
    CHECK(t->myself >= 0 && (size_t)t->myself < t->count);
    for (size_t i = 0; i < t->count; i++) {
        const struct topology_node *node = &t->nodes[i];

        CHECK(strlen(node->id) == TOPOLOGY_ID_LEN);
        CHECK(strspn(node->host,
                     "0123456789abcdefghijklmnopqrstuvwxyz"
                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ.:-_%") == strlen(node->host));
        CHECK(node->port <= 65535 && node->cport <= 65535);
        CHECK(node->primary < (int)t->count);
        CHECK(((node->flags & NODE_MYSELF) != 0) == ((int)i == t->myself));
        CHECK(topology_find(t, slice_of(node->id)) == (int)i);
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        CHECK(t->owner[slot] == TOPOLOGY_NOBODY ||
              (t->nodes[t->owner[slot]].flags & NODE_PRIMARY) != 0);
    }
    for (size_t i = 0; i < t->mark_count; i++) {
        CHECK(t->marks[i].slot < CLUSTER_SLOTS);
        CHECK(t->marks[i].node == TOPOLOGY_NOBODY ||
              t->marks[i].node < t->count);
    }
}

/* Cuts the body out of a bulk string. */
static struct slice
body_of(const struct view_text *text)
{
    struct slice all = buf_slice(&text->text);
    const char *end = memchr(all.data, '\n', all.len);
    size_t head;

    CHECK(end != NULL && all.data[0] == '$');
    head = (size_t)(end - all.data) + 1;
    return (struct slice){ all.data + head, all.len - head - 2 };
}

static void
check_again(const struct cluster_view *view, struct slice info,
            struct slice myid)
{
    const struct topology *t = view->topology;
    struct topology *again = NULL;
    char reason[TOPOLOGY_REASON_MAX];

    CHECK(topology_parse(body_of(view_text_for(view, VIEW_NODES, false, 2)),
                         info, myid, &again, reason));
    CHECK(again->count == t->count && again->myself == t->myself);
    CHECK(memcmp(again->owner, t->owner, sizeof(t->owner)) == 0);
    for (size_t i = 0; i < t->count; i++) {
        CHECK(strcmp(again->nodes[i].id, t->nodes[i].id) == 0);
        CHECK(strcmp(again->nodes[i].host, t->nodes[i].host) == 0);
        CHECK(strcmp(again->nodes[i].hostname, t->nodes[i].hostname) == 0);
        CHECK(again->nodes[i].flags == t->nodes[i].flags);
        CHECK(again->nodes[i].primary == t->nodes[i].primary);
        CHECK(again->nodes[i].epoch == t->nodes[i].epoch);
    }
    topology_free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t states[CLUSTER_SLOTS];
    struct slice part[3];
    const char *at = (const char *)data;
    size_t left = size;
    struct topology *topology = NULL;
    struct cluster_view *view;
    char reason[TOPOLOGY_REASON_MAX] = "";

    for (int i = 0; i < 3; i++) {
        const char *end = left > 0 ? memchr(at, '\0', left) : NULL;
        size_t len = end != NULL && i < 2 ? (size_t)(end - at) : left;

        part[i] = (struct slice){ at, len };
        len += end != NULL && i < 2;
        at += len;
        left -= len;
    }
    if (!topology_parse(part[0], part[1], part[2], &topology, reason)) {
        CHECK(topology == NULL && reason[0] != '\0');
        return 0;
    }
    check(topology);
    view = view_new(topology, &(struct view_options){ 0 }, states, NULL);
    CHECK(view != NULL);
    check_again(view, part[1], part[2]);
    view_free(view);
    return 0;
}

/* ---- inputs for replay.c ------------------------------------------------- */

static void
put_node(struct buf *out, uint64_t *random, unsigned index, unsigned nodes,
         unsigned *slot)
{
    static const char *const flags[] = { "master",       "slave",
                                         "master,fail?", "slave,fail",
                                         "handshake",    "master,noaddr" };
    uint64_t roll = fuzz_next(random);
    const char *flag = flags[roll % 16 < 12 ? 0 : roll % 6];
    unsigned end = *slot + (unsigned)(roll >> 8) % 5000;

    buf_printf(out, "%040x %s:%u@%u%s %s%s ", index,
               index % 3 == 2 ? "::1" : "10.0.0.1", 7000 + index, 17000 + index,
               roll % 5 == 0 ? ",name-1.example" : "",
               index == 0 ? "myself," : "", flag);
    if (strncmp(flag, "slave", 5) == 0) {
        buf_printf(out, "%040x ", (unsigned)(roll >> 20) % nodes);
    } else {
        buf_append_slice(out, slice_lit("- "));
    }
    buf_printf(out, "0 %u %u connected", (unsigned)(roll >> 30) % 100, index);
    if (strncmp(flag, "master", 6) == 0 && end < CLUSTER_SLOTS) {
        buf_printf(out, " %u-%u", *slot, end);
        *slot = end + (unsigned)(roll >> 40) % 3;
    }
    if (index == 0 && roll % 7 == 0) {
        buf_printf(out, " [%u->-%040x]", (unsigned)(roll >> 50) % CLUSTER_SLOTS,
                   1);
    }
    buf_append_slice(out, slice_lit("\n"));
}

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    unsigned nodes = 1 + (unsigned)(fuzz_next(&random) % 12);
    unsigned slot = 0;
    struct buf out = { 0 };
    size_t len;

    for (unsigned i = 0; i < nodes; i++) {
        put_node(&out, &random, i, nodes, &slot);
    }
    buf_append(&out, "", 1);
    buf_append_slice(&out, slice_lit("cluster_state:ok\r\n"
                                     "cluster_current_epoch:9\r\n"));
    buf_append(&out, "", 1);
    buf_printf(&out, "%040x", 0);
    if (fuzz_next(&random) % 3 == 0) {
        out.data[fuzz_next(&random) % out.len] ^=
            (char)(1U << fuzz_next(&random) % 8);
    }
    len = out.len < max ? out.len : max;
    memcpy(to, out.data, len);
    buf_free(&out);
    return len;
}
