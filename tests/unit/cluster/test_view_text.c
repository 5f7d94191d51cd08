/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes of the replies, as Redis 7.0.15 sends them for such a cluster.
 */
#include "cluster/view_text.h"

#include "../test.h"
#include "cluster/view.h"
#include "cluster_rig.h"

#include <string.h>

#define ID(id) "$40\r\n" id "\r\n"

static const char two_nodes[] = RIG_A
    " 10.0.0.1:7000@17000,a.example myself,master - 0 0 1 connected 0-5 "
    "9\n" RIG_R " 10.0.0.4:7003@17003 slave " RIG_A " 3 4 1 connected\n" RIG_B
    " 10.0.0.2:7001@17001 slave,fail " RIG_A " 3 4 1 disconnected\n" RIG_C
    " 10.0.0.3:7002@17002 master - 0 0 3 connected\n";

static struct cluster_view *
make_view(const struct view_options *options)
{
    static const uint8_t states[CLUSTER_SLOTS];
    struct topology *t = rig_topology(two_nodes, RIG_INFO, RIG_A);
    struct cluster_view *view = view_new(t, options, states, NULL);

    assert_non_null(view);
    return view;
}

static void
assert_reply(const struct view_text *text, const char *bytes)
{
    if (text->text.len != strlen(bytes) ||
        memcmp(text->text.data, bytes, text->text.len) != 0) {
        fail_msg("%.*s\n--- instead of\n%s", (int)text->text.len,
                 text->text.data, bytes);
    }
}

#define SLOTS_NODES(map)                                                       \
    "*4\r\n$8\r\n10.0.0.1\r\n:8000\r\n" ID(RIG_A) map                          \
        "$8\r\nhostname\r\n$9\r\na.example\r\n"                                \
        "*4\r\n$8\r\n10.0.0.4\r\n:8003\r\n" ID(RIG_R)

TEST(slots_leave_out_failed_replicas)
{
    struct cluster_view *view =
        make_view(&(struct view_options){ .port_offset = 1000 });

    assert_reply(
        view_text_for(view, VIEW_SLOTS, false, 2),
        "*2\r\n*4\r\n:0\r\n:5\r\n" SLOTS_NODES(
            "*2\r\n") "*0\r\n"
                      "*4\r\n:9\r\n:9\r\n" SLOTS_NODES("*2\r\n") "*0\r\n");
    assert_reply(
        view_text_for(view, VIEW_SLOTS, true, 3),
        "*2\r\n*4\r\n:0\r\n:5\r\n" SLOTS_NODES(
            "%1\r\n") "%0\r\n"
                      "*4\r\n:9\r\n:9\r\n" SLOTS_NODES("%1\r\n") "%0\r\n");
    view_free(view);
}

TEST(slots_follow_the_preferred_endpoint)
{
    struct cluster_view *view = make_view(
        &(struct view_options){ .settings.endpoint = VIEW_ENDPOINT_UNKNOWN });
    const struct buf *text = &view_text_for(view, VIEW_SLOTS, false, 2)->text;
    static const char begins[] =
        "*2\r\n*4\r\n:0\r\n:5\r\n*4\r\n$-1\r\n:7000\r\n" ID(
            RIG_A) "*4\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n"
                   "$8\r\nhostname\r\n$9\r\na.example\r\n"
                   "*4\r\n$-1\r\n:7003\r\n" ID(RIG_R) "*2\r\n$2\r\nip\r\n";

    assert_true(text->len > sizeof(begins));
    assert_memory_equal(text->data, begins, sizeof(begins) - 1);
    view_free(view);
}

/* Returns whether the reply has these bytes at `at`. */
static bool
has_at(const struct view_text *text, size_t at, const char *bytes)
{
    size_t len = strlen(bytes);

    return at + len <= text->text.len &&
           memcmp(text->text.data + at, bytes, len) == 0;
}

static bool
has(const struct view_text *text, const char *bytes)
{
    return memmem(text->text.data, text->text.len, bytes, strlen(bytes)) !=
           NULL;
}

#define OFFSET_NAME  "$18\r\nreplication-offset\r\n"
#define ONLINE       "$6\r\nhealth\r\n$6\r\nonline\r\n"
#define FAIL         "$6\r\nhealth\r\n$4\r\nfail\r\n"
#define ROLE_PRIMARY "$4\r\nrole\r\n$6\r\nmaster\r\n" OFFSET_NAME
#define ROLE_REPLICA "$4\r\nrole\r\n$7\r\nreplica\r\n" OFFSET_NAME
#define PLACE(ip)    "$2\r\nip\r\n" ip "$8\r\nendpoint\r\n" ip
#define PORT         "$4\r\nport\r\n"
#define NODE_A                                                                 \
    "*16\r\n$2\r\nid\r\n" ID(RIG_A) PORT ":7001\r\n" PLACE(                    \
        "$8\r\n10.0.0.1\r\n") "$8\r\nhostname\r\n$9\r\na."                     \
                              "example\r\n" ROLE_PRIMARY ONLINE
#define NODE_R                                                                 \
    "*14\r\n$2\r\nid\r\n" ID(RIG_R) PORT                                       \
        ":7004\r\n" PLACE("$8\r\n10.0.0.4\r\n") ROLE_REPLICA ":0\r\n" ONLINE
#define NODE_B                                                                 \
    "*14\r\n$2\r\nid\r\n" ID(RIG_B) PORT                                       \
        ":7002\r\n" PLACE("$8\r\n10.0.0.2\r\n") ROLE_REPLICA ":0\r\n" FAIL
#define NODE_C                                                                 \
    "*14\r\n$2\r\nid\r\n" ID(RIG_C) PORT                                       \
        ":7003\r\n" PLACE("$8\r\n10.0.0.3\r\n") ROLE_PRIMARY ":0\r\n" ONLINE
#define SHARD(slots) "*4\r\n$5\r\nslots\r\n" slots "$5\r\nnodes\r\n"

TEST(shards_have_all_nodes_and_a_gap_for_the_own_offset)
{
    static const char expected[] =
        "*2\r\n" SHARD("*4\r\n:0\r\n:5\r\n:9\r\n:9\r\n") "*3\r\n" NODE_A NODE_R
            NODE_B SHARD("*0\r\n") "*1\r\n" NODE_C;
    struct cluster_view *view =
        make_view(&(struct view_options){ .port_offset = 1 });
    const struct view_text *text = view_text_for(view, VIEW_SHARDS, false, 2);

    assert_reply(text, expected);
    assert_true(has_at(text, text->gap, "$6\r\nhealth"));
    assert_true(
        has_at(text, text->gap - strlen(OFFSET_NAME), OFFSET_NAME ONLINE));
    text = view_text_for(view, VIEW_SHARDS, false, 3);
    assert_true(has_at(text, 0, "*2\r\n%2\r\n$5\r\nslots\r\n*4\r\n"));
    assert_true(has_at(text, text->gap, "$6\r\nhealth"));
    view_free(view);
}

TEST(shards_have_the_ports_that_are_open)
{
    struct cluster_view *view =
        make_view(&(struct view_options){ .tls_offset = 10 });

    assert_true(has(view_text_for(view, VIEW_SHARDS, true, 2),
                    PORT ":7000\r\n$8\r\ntls-port\r\n:7010\r\n"));
    assert_ptr_not_equal(view_text_for(view, VIEW_SLOTS, true, 2),
                         view_text_for(view, VIEW_SLOTS, false, 2));
    view_free(view);
    view = make_view(&(struct view_options){ .tls_only = true });
    assert_true(has(view_text_for(view, VIEW_SHARDS, true, 2),
                    "$8\r\ntls-port\r\n:7000\r\n"));
    assert_false(has(view_text_for(view, VIEW_SHARDS, true, 2), PORT));
    assert_ptr_equal(view_text_for(view, VIEW_SLOTS, true, 2),
                     view_text_for(view, VIEW_SLOTS, false, 2));
    view_free(view);
}

#define NODES_TEXT                                                             \
    RIG_A " 10.0.0.1:8000@17000,a.example myself,master - 0 0 1 connected "    \
          "0-5 9\n" RIG_R " 10.0.0.4:8003@17003 slave " RIG_A                  \
          " 0 0 1 connected\n" RIG_B " 10.0.0.2:8001@17001 slave,fail " RIG_A  \
          " 0 0 1 disconnected\n" RIG_C                                        \
          " 10.0.0.3:8002@17002 master - 0 0 3 connected\n"

TEST(nodes_have_the_daemons_ports_and_no_times)
{
    struct cluster_view *view =
        make_view(&(struct view_options){ .port_offset = 1000 });
    struct slice body = slice_lit(NODES_TEXT "\r\n");
    const struct buf *text = &view_text_for(view, VIEW_NODES, false, 2)->text;

    assert_true(text->len > body.len);
    assert_int_equal(text->data[0], '$');
    assert_memory_equal(text->data + text->len - body.len, body.data, body.len);
    text = &view_text_for(view, VIEW_NODES, false, 3)->text;
    assert_int_equal(text->data[0], '=');
    assert_memory_equal(text->data + text->len - body.len - 4, "txt:", 4);
    view_free(view);
}
