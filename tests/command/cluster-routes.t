# SPDX-License-Identifier: BSD-3-Clause
#
# Commands on keys in sidecar mode. foo is in slot 12182, bar in 5061, f19217 in
# 12301, which nobody owns; {user} in 5474.
@node a 17001 myself,master - 0-8191
@node b 17002 master - 8192-12300 12302-16383
@node c 17003 slave b
> BF.ADD bar x
< :1
> BF.ADD foo x
< -MOVED 12182 127.0.0.1:17002
> BF.EXISTS foo x
< -MOVED 12182 127.0.0.1:17002
> BF.EXISTS f19217 x
< -CLUSTERDOWN Hash slot not served
> EXISTS f19217 foo
< -CLUSTERDOWN Hash slot not served
> EXISTS bar foo
< -CROSSSLOT Keys in request don't hash to the same slot
> EXISTS foo bar
< -CROSSSLOT Keys in request don't hash to the same slot
> EXISTS bar {bar}2
< :1
> BF.MERGE {bar}m bar
< +OK
> RENAME bar foo
< -CROSSSLOT Keys in request don't hash to the same slot
# Not keys.
> PING
< +PONG
> DBSIZE
< :2
> KEYS *
~ \*2 .*
# Before the arguments, behind the arity.
> BF.ADD foo
< -ERR wrong number of arguments for 'BF.ADD' command
> BF.INSERT foo NONSENSE
< -MOVED 12182 127.0.0.1:17002
# Transactions: a refusal at queueing aborts.
> MULTI
< +OK
> BF.ADD bar y
< +QUEUED
> BF.ADD foo y
< -MOVED 12182 127.0.0.1:17002
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
# All keys of a transaction share a slot.
> MULTI
< +OK
> BF.ADD bar y
< +QUEUED
> BF.ADD {user}.a y
< +QUEUED
> EXEC
< -CROSSSLOT Keys in request don't hash to the same slot
> MULTI
< +OK
> BF.ADD bar y
< +QUEUED
> PING
< +QUEUED
> BF.EXISTS {bar}m y
< +QUEUED
> EXEC
< *3 | :1 | +PONG | :0
> WATCH foo
< -MOVED 12182 127.0.0.1:17002
> WATCH bar
< +OK
> UNWATCH
< +OK
# One database.
> SELECT 0
< +OK
> SELECT 1
< -ERR DB index is out of range
> MOVE bar 1
< -ERR DB index is out of range
> COPY bar {bar}3 DB 1
< -ERR DB index is out of range
> COPY bar {bar}3 DB 0
< :1
> SWAPDB 0 1
< -ERR SWAPDB is not allowed in cluster mode
# Flags of the connection.
> ASKING
< +OK
> BF.EXISTS bar x
< :1
> ASKING
< +OK
> BF.EXISTS foo x
< -MOVED 12182 127.0.0.1:17002
> READONLY
< +OK
> BF.EXISTS foo x
< -MOVED 12182 127.0.0.1:17002
> CLIENT LIST
~ .* flags=r .*
> READWRITE
< +OK
> CLIENT LIST
~ .* flags=N .*
> READONLY
< +OK
> RESET
< +RESET
@on b
> CLIENT LIST
~ (?!.*flags=r).*
# Shard channels have a slot.
> SPUBLISH bar hi
< :0
> SPUBLISH foo hi
< -MOVED 12182 127.0.0.1:17002
> REPLICAOF NO ONE
< -ERR REPLICAOF not allowed in cluster mode.
> REPLICAOF 127.0.0.1 1
< -ERR REPLICAOF not allowed in cluster mode.
> FAILOVER
< -ERR FAILOVER not allowed in cluster mode.
> CONFIG GET cluster-enabled
< %1 | "cluster-enabled" | "yes"
> CONFIG GET cluster-require-full-coverage cluster-node-timeout
< %2 | "cluster-node-timeout" | "4000" | "cluster-require-full-coverage" | "yes"
