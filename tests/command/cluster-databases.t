# SPDX-License-Identifier: BSD-3-Clause
#
# A neighbour with cluster-databases (Valkey 9): so many may be used here.
@node a 17001 myself,master - 0-16383
@neighbour cluster-databases 4
> SELECT 3
< +OK
> BF.ADD bar x
< :1
> SELECT 4
< -ERR DB index is out of range
> CLUSTER COUNTKEYSINSLOT 5061
< :1
> MOVE bar 0
< :1
> CLUSTER COUNTKEYSINSLOT 5061
< :0
> MOVE bar 4
< -ERR DB index is out of range
> SELECT 0
< +OK
> CLUSTER COUNTKEYSINSLOT 5061
< :1
> COPY bar {bar}2 DB 3
< :1
