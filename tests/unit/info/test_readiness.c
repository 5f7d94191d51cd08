/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a reply to INFO says about readiness.
 */
#include "info/readiness.h"

#include "../test.h"

#include <string.h>

static void
refuses(const char *info, const char *why)
{
    const char *got = readiness_refusal(slice_of(info));

    assert_non_null(got);
    assert_non_null(strstr(got, why));
}

static void
accepts(const char *info)
{
    assert_null(readiness_refusal(slice_of(info)));
}

TEST(a_primary_is_ready)
{
    accepts("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
            "# Cluster\r\ncluster_enabled:0\r\n");
}

TEST(a_replica_is_ready_when_it_has_had_the_data)
{
    refuses("role:slave\r\nmaster_link_status:down\r\nslave_repl_offset:0\r\n",
            "primary's data");
    accepts("role:slave\r\nmaster_link_status:down\r\nslave_repl_offset:7\r\n");
    accepts("role:slave\r\nmaster_link_status:up\r\nslave_repl_offset:0\r\n");
    accepts(
        "role:slave\r\nmaster_link_status:down\r\nslave_repl_offset:07\r\n");
}

TEST(a_sidecar_is_ready_with_a_lease_of_a_cluster_that_is_up)
{
    refuses("role:master\r\ncluster_enabled:1\r\ncluster_lease_left_ms:0\r\n",
            "no lease");
    refuses("cluster_enabled:1\r\ncluster_lease_left_ms:0\r\ncluster_state:ok",
            "no lease");
    refuses(
        "cluster_enabled:1\r\ncluster_lease_left_ms:9\r\ncluster_state:fail",
        "is down");
    accepts("cluster_enabled:1\r\ncluster_lease_left_ms:9\r\ncluster_state:ok");
}

TEST(a_sidecar_is_ready_while_it_serves_a_slot_of_its_node)
{
    refuses("cluster_enabled:1\r\ncluster_role:master\r\n"
            "cluster_slots_served:0\r\ncluster_slots_owned:5461\r\n",
            "none of its node's slots");
    accepts("cluster_enabled:1\r\ncluster_role:master\r\n"
            "cluster_slots_served:1\r\ncluster_slots_owned:5461\r\n");
    accepts("cluster_enabled:1\r\ncluster_role:master\r\n"
            "cluster_slots_served:0\r\ncluster_slots_owned:0\r\n");
    accepts("cluster_enabled:1\r\ncluster_role:slave\r\n"
            "cluster_slots_served:0\r\ncluster_slots_owned:5461\r\n");
}

static void
lacks(const char *info, const char *why)
{
    const char *got = readiness_incomplete(slice_of(info));

    assert_null(readiness_refusal(slice_of(info)));
    assert_non_null(got);
    assert_non_null(strstr(got, why));
}

#define CLUSTER                                                                \
    "cluster_enabled:1\r\ncluster_lease_left_ms:9\r\ncluster_state:ok\r\n"
#define SERVES                                                                 \
    CLUSTER "cluster_role:master\r\ncluster_slots_served:5461\r\n"             \
            "cluster_slots_owned:5461\r\ncluster_replicas:1\r\n"
#define REPLICA(state, offset)                                                 \
    "role:master\r\nmaster_repl_offset:100000\r\nslave0:ip=10.0.0.2,"          \
    "port=8001,state=" state ",offset=" offset ",lag=0\r\n"

TEST(a_server_is_complete_when_nothing_is_missing_at_it)
{
    static const char *const complete[] = {
        "", "role:master\r\n", "role:slave\r\nmaster_link_status:up\r\n",
        SERVES "cluster_silent_servers:0\r\n" REPLICA("online", "99000"),
        CLUSTER "role:slave\r\nmaster_link_status:up\r\n"
                "cluster_role:slave\r\ncluster_slots_served:7\r\n"
                "cluster_slots_owned:7\r\n"
    };

    for (size_t i = 0; i < sizeof(complete) / sizeof(complete[0]); i++) {
        assert_null(readiness_incomplete(slice_of(complete[i])));
    }
    lacks("role:slave\r\nmaster_link_status:down\r\nslave_repl_offset:7\r\n",
          "without a link");
    lacks(SERVES, "a replica is not connected");
    lacks(SERVES REPLICA("wait_bgsave", "99000"), "a replica is not connected");
    lacks(SERVES REPLICA("online", "100"), "not up to date");
    lacks(SERVES "cluster_silent_servers:1\r\n" REPLICA("online", "99000"),
          "are silent");
    lacks(CLUSTER "cluster_role:master\r\ncluster_slots_served:5460\r\n"
                  "cluster_slots_owned:5461\r\n",
          "all slots of its node");
    lacks(CLUSTER "cluster_role:slave\r\ncluster_slots_served:0\r\n"
                  "cluster_slots_owned:5461\r\n",
          "slots of its primary");
}

TEST(what_is_not_ready_is_not_complete)
{
    const char *info = "cluster_enabled:1\r\ncluster_state:fail\r\n";

    assert_string_equal(readiness_incomplete(slice_of(info)),
                        readiness_refusal(slice_of(info)));
}

TEST(a_text_without_the_fields_says_nothing)
{
    accepts("");
    accepts("\r\n\n");
    accepts("role\r\ncluster_enabled:");
    accepts("xrole:slave\r\nxmaster_link_status:down\r\n");
}
