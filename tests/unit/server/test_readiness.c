/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a reply to INFO says about readiness.
 */
#include "server/readiness.h"

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

TEST(a_text_without_the_fields_says_nothing)
{
    accepts("");
    accepts("\r\n\n");
    accepts("role\r\ncluster_enabled:");
    accepts("xrole:slave\r\nxmaster_link_status:down\r\n");
}
