/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See cluster_rig.h.
 */
#include "cluster_rig.h"

#include "../test.h"

struct topology *
rig_topology(const char *nodes, const char *info, const char *myid)
{
    struct topology *topology = NULL;
    char reason[TOPOLOGY_REASON_MAX] = "";
    bool good = topology_parse(slice_of(nodes), slice_of(info), slice_of(myid),
                               &topology, reason);

    assert_string_equal(reason, "");
    assert_true(good);
    return topology;
}
