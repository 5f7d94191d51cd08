# SPDX-License-Identifier: BSD-3-Clause
#
# FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT ms], as far as it goes
# without replicas.
@oracle
> FAILOVER
< -ERR FAILOVER requires connected replicas.
> FAILOVER ABORT
< -ERR No failover in progress.
> FAILOVER ABORT x
< -ERR syntax error
> FAILOVER TIMEOUT
< -ERR syntax error
> FAILOVER TIMEOUT x
< -ERR value is not an integer or out of range
> FAILOVER TIMEOUT 0
< -ERR FAILOVER timeout must be greater than 0
> FAILOVER TIMEOUT -1
< -ERR FAILOVER timeout must be greater than 0
> FAILOVER TIMEOUT 1 TIMEOUT 2
< -ERR syntax error
> FAILOVER TO
< -ERR syntax error
> FAILOVER TO 127.0.0.1
< -ERR syntax error
> FAILOVER TO 127.0.0.1 x
< -ERR value is not an integer or out of range
> FAILOVER TO a 1 TO b 2
< -ERR syntax error
> FAILOVER FORCE
< -ERR FAILOVER requires connected replicas.
> FAILOVER TO 127.0.0.1 1 FORCE TIMEOUT 10
< -ERR FAILOVER requires connected replicas.
> FAILOVER x
< -ERR syntax error
