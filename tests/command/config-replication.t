# SPDX-License-Identifier: BSD-3-Clause
#
# CONFIG: the options of replication, under their newer and older names.
@oracle
> CONFIG SET min-replicas-to-write 1 min-slaves-max-lag 7
< +OK
> CONFIG GET min-slaves-to-write
2< *2 | "min-slaves-to-write" | "1"
3< %1 | "min-slaves-to-write" | "1"
> CONFIG GET min-replicas-max-lag
2< *2 | "min-replicas-max-lag" | "7"
3< %1 | "min-replicas-max-lag" | "7"
> CONFIG SET min-slaves-to-write 0
< +OK
> CONFIG SET slave-priority -1
< -ERR CONFIG SET failed (possibly related to argument 'slave-priority') - argument must be between 0 and 2147483647 inclusive
> CONFIG SET replica-priority x
< -ERR CONFIG SET failed (possibly related to argument 'replica-priority') - argument couldn't be parsed into an integer
> CONFIG SET replica-announce-ip 10.0.0.1 slave-announce-port 7000
< +OK
> CONFIG GET replica-announce-port
2< *2 | "replica-announce-port" | "7000"
3< %1 | "replica-announce-port" | "7000"
> CONFIG SET replicaof "127.0.0.1 1"
< -ERR CONFIG SET failed (possibly related to argument 'replicaof') - can't set immutable config
> CONFIG GET replica-read-only
2< *2 | "replica-read-only" | "yes"
3< %1 | "replica-read-only" | "yes"
> CONFIG GET slave-read-only
2< *2 | "slave-read-only" | "yes"
3< %1 | "slave-read-only" | "yes"
>! CONFIG SET replica-read-only no
< -ERR CONFIG SET failed (possibly related to argument 'replica-read-only') - only 'yes' is accepted: a replica has the data of its primary and no other
> CONFIG SET masteruser me masterauth secret
< +OK
> CONFIG GET masteruser
2< *2 | "masteruser" | "me"
3< %1 | "masteruser" | "me"
>! CONFIG GET masterauth
2< *2 | "masterauth" | "********"
3< %1 | "masterauth" | "********"
> CONFIG SET client-output-buffer-limit "replica 1mb 2mb 3"
< +OK
> CONFIG SET client-output-buffer-limit "slave 4mb 5mb 6 normal 7 8 9 pubsub 1 2 3"
< +OK
> CONFIG GET client-output-buffer-limit
2< *2 | "client-output-buffer-limit" | "normal 7 8 9 slave 4194304 5242880 6 pubsub 1 2 3"
3< %1 | "client-output-buffer-limit" | "normal 7 8 9 slave 4194304 5242880 6 pubsub 1 2 3"
