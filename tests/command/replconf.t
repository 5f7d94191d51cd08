# SPDX-License-Identifier: BSD-3-Clause
#
# REPLCONF: what a replica says before PSYNC; of a Redis, what comes first.
@oracle
> REPLCONF
< +OK
> REPLCONF x
< -ERR syntax error
> REPLCONF listening-port 7000
< +OK
> REPLCONF listening-port x
< -ERR value is not an integer or out of range
> REPLCONF ip-address 127.0.0.1
< +OK
> REPLCONF listening-port 7000 ip-address ""
< +OK
>! REPLCONF ip-address "a,b"
< -ERR REPLCONF ip-address is neither an address nor a name
>! REPLCONF ip-address "a\r\nslave_priority:1"
< -ERR REPLCONF ip-address is neither an address nor a name
> REPLCONF capa eof capa psync2
< +OK
> REPLCONF nonsense 1
< -ERR Unrecognized REPLCONF option: nonsense
# Only a link is asked how far it is, and only a link says so.
@send REPLCONF ACK 0
@send REPLCONF GETACK *
> PING
< +PONG
>! REPLCONF rdb-only 1
< -ERR Only another Bloomery can follow this server (REPLICAOF there), because it streams its own journal, not the commands or RDB files of Redis. Use DUMP and RESTORE to copy filters to other servers, and SAVE or BGSAVE for a backup.
>! REPLCONF bloomery 1 run 0123456789abcdef0123456789abcdef01234567
~ \+BLOOMERY 1 [0-9a-f]{40} -
>! REPLCONF BLOOMERY 2 run 0123456789abcdef0123456789abcdef01234567
< -ERR this server replicates in version 1 and not 2: a newer Bloomery cannot follow an older one
>! REPLCONF bloomery 0 run 0123456789abcdef0123456789abcdef01234567
< -ERR syntax error
>! REPLCONF bloomery x run 0123456789abcdef0123456789abcdef01234567
< -ERR syntax error
>! REPLCONF bloomery 1 run 0123456789abcdef0123456789abcdef0123456
< -ERR syntax error
>! REPLCONF bloomery 1 ran 0123456789abcdef0123456789abcdef01234567
< -ERR syntax error
>! REPLCONF bloomery 1
< -ERR syntax error
# What the log says of itself nobody else does.
>! REPLCONF HISTORY 0123456789abcdef0123456789abcdef01234567
< -ERR REPLCONF HISTORY belongs into the log
> MULTI
< +OK
> REPLCONF listening-port 1
< +QUEUED
>! REPLCONF ACK 1
< +QUEUED
>! EXEC
< *2 | +OK | +OK
