# SPDX-License-Identifier: BSD-3-Clause
#
# RENAME key newkey.
@oracle
@key k
> RENAME
< -ERR wrong number of arguments for 'rename' command
> RENAME k
< -ERR wrong number of arguments for 'rename' command
> RENAME k x y
< -ERR wrong number of arguments for 'rename' command
> RENAME missing x
< -ERR no such key
> RENAME missing missing
< -ERR no such key
> RENAME k k
< +OK
> RENAME k x
< +OK
> EXISTS k
< :0
> EXISTS x
< :1
> DBSIZE
< :1
> RENAME k x
< -ERR no such key
> RENAME x ""
< +OK
> KEYS *
< *1 | ""
> RENAME "" k
< +OK

# What has the name goes; the time to live goes along, and so does its absence.
@key old
> PEXPIREAT k 5000000000000
< :1
> RENAME k old
< +OK
> DBSIZE
< :1
> PEXPIRETIME old
< :5000000000000
@key fresh
> RENAME fresh old
< +OK
> PEXPIRETIME old
< :-1
> DBSIZE
< :1

# It is the same filter.
>! BF.MADD source a b
< *2 | :1 | :1
>! RENAME source moved
< +OK
>! BF.MEXISTS moved a b c
< *3 | :1 | :1 | :0
>! BF.CARD source
< :0
>! DEL moved
< :1

# Both names have changed for who watches them, a name that stayed has not.
@key k
> WATCH k
< +OK
@on b
> RENAME k l
< +OK
@on a
@changed
> WATCH l
< +OK
@on b
@key k
> RENAME k l
< +OK
@on a
@changed
> WATCH k
< +OK
@on b
> RENAME l k
< +OK
@on a
@changed
> WATCH k
< +OK
@on b
> RENAME k k
< +OK
> RENAME missing k
< -ERR no such key
@on a
@unchanged

# An expired key counts as missing.
> PEXPIRE k 1
< :1
@sleep_ms 20
> RENAME k x
< -ERR no such key
@key k
@key x
> PEXPIRE x 1
< :1
@sleep_ms 20
> RENAME k x
< +OK
> TTL x
< :-1

> MULTI
< +OK
> RENAME x y
< +QUEUED
> RENAME x y
< +QUEUED
> EXISTS x y
< +QUEUED
> EXEC
< *3 | +OK | -ERR no such key | :1
