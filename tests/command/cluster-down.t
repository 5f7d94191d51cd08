# SPDX-License-Identifier: BSD-3-Clause
#
# A cluster that is down. Commands without keys run.
@node a 17001 myself,master - 0-8191
@node b 17002 master,fail - 8192-12181
@neighbour state fail
> BF.ADD bar x
< -CLUSTERDOWN The cluster is down
> BF.EXISTS bar x
< -CLUSTERDOWN The cluster is down
> BF.EXISTS foo x
< -CLUSTERDOWN Hash slot not served
> EXISTS bar {user}
< -CROSSSLOT Keys in request don't hash to the same slot
> PING
< +PONG
> MULTI
< +OK
> PING
< +QUEUED
> EXEC
< *1 | +PONG
> CLUSTER INFO
< ="txt:cluster_state:fail\r\ncluster_slots_assigned:12182\r\ncluster_slots_ok:8192\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:3990\r\ncluster_known_nodes:2\r\ncluster_size:2\r\ncluster_current_epoch:7\r\ncluster_my_epoch:3\r\ncluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n"
