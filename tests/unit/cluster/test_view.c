/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses, counts and the map.
 */
#include "cluster/view.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster_rig.h"

#include <string.h>

static struct cluster_view *
make_view(const struct view_options *options)
{
    struct topology *t = rig_topology(RIG_NODES, RIG_INFO, RIG_A);
    uint8_t states[CLUSTER_SLOTS] = { SLOT_AWAY };
    struct cluster_view *view;

    memset(states, SLOT_SERVED, 5461);
    view = view_new(t, options, states, NULL);
    assert_non_null(view);
    return view;
}

static void
assert_redirect(const struct cluster_view *view, unsigned slot, bool tls,
                const char *text)
{
    const struct view_node *owner = view_owner(view, slot);
    struct slice redirect;

    assert_non_null(owner);
    if (owner == NULL) {
        return; /* gcc does not know that the assertion ends the test */
    }
    redirect = view_redirect(owner, tls);
    assert_int_equal(redirect.len, strlen(text));
    assert_memory_equal(redirect.data, text, redirect.len);
}

TEST(daemons_are_at_the_port_of_their_node_and_the_offset)
{
    struct cluster_view *view =
        make_view(&(struct view_options){ .port_offset = 1000 });

    assert_redirect(view, 0, false, "10.0.0.1:8000");
    assert_redirect(view, 5461, false, "10.0.0.2:8001");
    assert_redirect(view, 16383, true, "2001:db8::3:8002");
    assert_true(view->primary);
    assert_int_equal(view->leader, 0);
    assert_int_equal(view->nodes[0].first_replica, 3);
    assert_int_equal(view->nodes[3].next_replica, -1);
    assert_int_equal(view->count[SLOT_SERVED], 5461);
    assert_int_equal(view->count[SLOT_AWAY], 16384 - 5461);
    assert_int_equal(view->assigned, 16384);
    assert_int_equal(view->shards, 3);
    view_free(view);
    view_free(NULL);
}

TEST(the_map_overrides_an_address_and_tls_ports_have_an_offset)
{
    struct view_address addresses[2];
    struct view_options options = { .port_offset = -1000,
                                    .tls_offset = 500,
                                    .settings.endpoint = VIEW_ENDPOINT_HOSTNAME,
                                    .addresses = addresses,
                                    .address_count = 2 };
    struct cluster_view *view;

    assert_true(
        view_parse_address(slice_of(RIG_A "=[fd00::1]:9"), &addresses[0]));
    assert_true(
        view_parse_address(slice_of(RIG_R "=r.example:10"), &addresses[1]));
    view = make_view(&options);
    assert_redirect(view, 0, false, "fd00::1:9");
    assert_redirect(view, 0, true, "fd00::1:509");
    assert_redirect(view, 5461, false, "b.example:6001");
    assert_redirect(view, 16383, false, "?:6002");
    assert_string_equal(view->nodes[3].host, "r.example");
    view_free(view);
    options.settings.endpoint = VIEW_ENDPOINT_UNKNOWN;
    view = make_view(&options);
    assert_redirect(view, 0, false, "fd00::1:9");
    assert_redirect(view, 5461, true, ":6501");
    view_free(view);
}

TEST(a_port_that_cannot_be_is_0)
{
    struct cluster_view *view =
        make_view(&(struct view_options){ .port_offset = 60000 });

    assert_int_equal(view->nodes[0].port[0], 0);
    view_free(view);
    view = make_view(&(struct view_options){ .port_offset = -7001 });
    assert_int_equal(view->nodes[0].port[0], 0);
    assert_int_equal(view->nodes[1].port[0], 0);
    assert_int_equal(view->nodes[2].port[0], 1);
    view_free(view);
}

TEST(slots_of_failing_nodes_are_counted)
{
    uint8_t states[CLUSTER_SLOTS] = { SLOT_AWAY };
    struct topology *t = rig_topology(
        RIG_A " 1.1.1.1:1@2 myself,slave " RIG_C " 0 0 1 connected\n" RIG_B
              " 1.1.1.2:1@2 master,fail? - 0 0 1 connected 0-9\n" RIG_C
              " 1.1.1.3:1@2 master,fail - 0 0 1 connected 10-12\n",
        RIG_INFO, RIG_A);
    struct cluster_view *view =
        view_new(t, &(struct view_options){ 0 }, states, NULL);

    assert_non_null(view);
    assert_false(view->primary);
    assert_int_equal(view->leader, 2);
    assert_int_equal(view->assigned, 13);
    assert_int_equal(view->failing, 10);
    assert_int_equal(view->failed, 3);
    assert_int_equal(view->shards, 2);
    assert_null(view_owner(view, 13));
    view_free(view);
}

TEST(words_of_the_map_are_checked)
{
    static const char *const bad[] = {
        "",
        "=",
        RIG_A,
        RIG_A "=",
        RIG_A "=h",
        RIG_A "=:1",
        RIG_A "=h:",
        RIG_A "=h:0",
        RIG_A "=h:65536",
        RIG_A "=h:x",
        RIG_A "=[]:1",
        RIG_A "=a b:1",
        "x=h:1",
        "G111111111111111111111111111111111111111=h:1",
    };
    struct view_address address = { .port = 7 };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(view_parse_address(slice_of(bad[i]), &address));
        assert_int_equal(address.port, 7);
    }
    assert_true(
        view_parse_address(slice_of(RIG_A "=10.0.0.1:65535"), &address));
    assert_int_equal(address.port, 65535);
    assert_true(slice_equal(address.host, slice_of("10.0.0.1")));
    assert_true(slice_equal(address.id, slice_of(RIG_A)));
}

TEST(without_memory_there_is_no_view)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct topology *t = rig_topology(RIG_NODES, RIG_INFO, RIG_A);
        static const uint8_t states[CLUSTER_SLOTS];
        struct cluster_view *view;

        mem_fail_at(nth);
        view = view_new(t, &(struct view_options){ 0 }, states, NULL);
        fired = mem_fail_clear();
        assert_int_equal(view == NULL, fired);
        if (view == NULL) {
            topology_free(t);
        }
        view_free(view);
    }
}
