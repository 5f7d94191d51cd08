# SPDX-License-Identifier: BSD-3-Clause
#
# REPLICAOF host port | NO ONE, and SLAVEOF: the role holds at once, whether
# there is somebody at that address (nobody listens on port 1) or not.
@oracle
> REPLICAOF
< -ERR wrong number of arguments for 'replicaof' command
> REPLICAOF 127.0.0.1
< -ERR wrong number of arguments for 'replicaof' command
> SLAVEOF 127.0.0.1 1 2
< -ERR wrong number of arguments for 'slaveof' command
> REPLICAOF 127.0.0.1 x
< -ERR Invalid master port
> REPLICAOF 127.0.0.1 65536
< -ERR Invalid master port
> SLAVEOF 127.0.0.1 -1
< -ERR Invalid master port
> REPLICAOF NO TWO
< -ERR Invalid master port
# Where Redis would try for ever:
>! REPLICAOF 127.0.0.1 0
< -ERR Invalid master port
>! REPLICAOF "a host" 1
< -ERR Invalid master host
>! REPLICAOF "" 1
< -ERR Invalid master host
>! REPLICAOF "a\r\nb" 1
< -ERR Invalid master host
> CONFIG GET replicaof
2< *2 | "replicaof" | ""
3< %1 | "replicaof" | ""
> REPLICAOF NO ONE
< +OK
> slaveof no one
< +OK
>! BF.ADD k a
< :1
> REPLICAOF 127.0.0.1 1
< +OK
> REPLICAOF 127.0.0.1 1
< +OK Already connected to specified master
> SLAVEOF 127.0.0.1 1
< +OK Already connected to specified master
> CONFIG GET replicaof
2< *2 | "replicaof" | "127.0.0.1 1"
3< %1 | "replicaof" | "127.0.0.1 1"
> CONFIG GET slaveof
2< *2 | "slaveof" | "127.0.0.1 1"
3< %1 | "slaveof" | "127.0.0.1 1"
> ROLE
~ \*5 \| "slave" \| "127.0.0.1" \| :1 \| "(connect|connecting)" \| :-1
# It serves what it has, and takes nothing.
>! BF.EXISTS k a
< :1
>! BF.ADD k b
< -READONLY You can't write against a read only replica.
>! BF.MADD k b c
< -READONLY You can't write against a read only replica.
> DEL k
< -READONLY You can't write against a read only replica.
> FLUSHALL
< -READONLY You can't write against a read only replica.
> EXPIRE k 1
< -READONLY You can't write against a read only replica.
> PING
< +PONG
> PUBLISH channel message
< :0
> WAIT 0 0
< -ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.
>! WAITAOF 0 0 0
< -ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.
> FAILOVER
< -ERR FAILOVER is not valid when server is a replica.
> MULTI
< +OK
> EXISTS nothing
< +QUEUED
> DEL k
< -READONLY You can't write against a read only replica.
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
# Memory is the primary's affair.
> CONFIG SET maxmemory 1
< +OK
> EXISTS nothing
< :0
> DEL k
< -READONLY You can't write against a read only replica.
> CONFIG SET maxmemory 0
< +OK
# Stale data may be withheld.
> CONFIG SET replica-serve-stale-data no
< +OK
> PING
< -MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
> EXISTS nothing
< -MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
>! BF.EXISTS k a
< -MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
> DEL k
< -READONLY You can't write against a read only replica.
> KEYS *
< -MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
> MULTI
< +OK
> EXISTS nothing
< -MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
> DISCARD
< +OK
> SELECT 0
< +OK
> PUBLISH channel message
< :0
> CONFIG SET slave-serve-stale-data yes
< +OK
> MULTI
< +OK
> EXISTS nothing
< +QUEUED
> CONFIG SET replica-serve-stale-data no
< +QUEUED
> EXEC
< *2 | :0 | +OK
> REPLICAOF NO ONE
< +OK
> EXISTS nothing
< :0
> DEL nothing
< :0
> ROLE
~ \*3 \| "master" \| :\d+ \| \*0
> CONFIG GET replicaof
2< *2 | "replicaof" | ""
3< %1 | "replicaof" | ""
