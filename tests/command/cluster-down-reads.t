# SPDX-License-Identifier: BSD-3-Clause
#
# A cluster that is down, with cluster-allow-reads-when-down.
@node a 17001 myself,master - 0-8191
@node b 17002 master,fail - 8192-16383
@neighbour state fail
@neighbour cluster-allow-reads-when-down yes
> BF.ADD bar x
< -CLUSTERDOWN The cluster is down and only accepts read commands
> BF.EXISTS bar x
< :0
> BF.EXISTS foo x
< -MOVED 12182 127.0.0.1:17002
> MULTI
< +OK
> BF.EXISTS bar x
< +QUEUED
> BF.ADD bar x
< -CLUSTERDOWN The cluster is down and only accepts read commands
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> CONFIG GET cluster-allow-reads-when-down
< %1 | "cluster-allow-reads-when-down" | "yes"
