# SPDX-License-Identifier: BSD-3-Clause
#
# COPY source destination [DB n] [REPLACE].
@oracle
@server --databases 16
@key k
> COPY
< -ERR wrong number of arguments for 'copy' command
> COPY k
< -ERR wrong number of arguments for 'copy' command
> COPY k k
< -ERR source and destination objects are the same
> COPY missing missing
< -ERR source and destination objects are the same
> COPY k k DB 0
< -ERR source and destination objects are the same
> COPY missing x
< :0
> EXISTS x
< :0
> COPY k x
< :1
> COPY k x
< :0
> COPY k x REPLACE
< :1
> EXISTS k x
< :2
> TTL x
< :-1

# The time to live goes along, and so does its absence.
> PEXPIREAT k 5000000000000
< :1
> COPY k x
< :0
> COPY k x replace
< :1
> PEXPIRETIME x
< :5000000000000
> COPY k y
< :1
> PEXPIRETIME y
< :5000000000000
> PERSIST k
< :1
> COPY k y REPLACE
< :1
> PEXPIRETIME y
< :-1

> COPY k k DB 1
< :1
> COPY k k DB 1
< :0
> COPY k k db 1 Replace
< :1
> COPY k z DB 1 DB 2
< :1
> DBSIZE
< :3
> SELECT 1
< +OK
> DBSIZE
< :1
> COPY k k DB 0
< :0
> SELECT 2
< +OK
> EXISTS z
< :1
> SELECT 0
< +OK
> COPY k k DB 16
< -ERR DB index is out of range
> COPY k k DB -1
< -ERR DB index is out of range
> COPY k y DB 99 NOPE
< -ERR DB index is out of range
> COPY k k DB x
< -ERR value is not an integer or out of range
> COPY k k DB 99999999999
< -ERR value is out of range, value must between -2147483648 and 2147483647
> COPY k k DB
< -ERR syntax error
> COPY k k NOPE
< -ERR syntax error
> COPY k k REPLACE INCARNATION 5
< -ERR syntax error

# The copy has the items, and a life of its own.
>! BF.MADD source a b
< *2 | :1 | :1
>! COPY source copy
< :1
>! BF.MEXISTS copy a b c
< *3 | :1 | :1 | :0
>! BF.ADD copy c
< :1
>! BF.CARD copy
< :3
>! BF.CARD source
< :2

# A watched destination has changed, a watched source has not.
> WATCH x
< +OK
@on b
> COPY k x REPLACE
< :1
@on a
@changed
> WATCH k
< +OK
@on b
> COPY k x REPLACE
< :1
@on a
@unchanged
