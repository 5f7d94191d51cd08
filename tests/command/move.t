# SPDX-License-Identifier: BSD-3-Clause
#
# MOVE key db.
@oracle
@server --databases 16
@key k
> MOVE
< -ERR wrong number of arguments for 'move' command
> MOVE k
< -ERR wrong number of arguments for 'move' command
> MOVE k 1 2
< -ERR wrong number of arguments for 'move' command
> MOVE k 0
< -ERR source and destination objects are the same
> MOVE missing 0
< -ERR source and destination objects are the same
> MOVE k 16
< -ERR DB index is out of range
> MOVE missing 16
< -ERR DB index is out of range
> MOVE k -1
< -ERR DB index is out of range
> MOVE k x
< -ERR value is not an integer or out of range
> MOVE k 1.0
< -ERR value is not an integer or out of range
> MOVE k 99999999999
< -ERR value is out of range, value must between -2147483648 and 2147483647
> MOVE k -99999999999
< -ERR value is out of range, value must between -2147483648 and 2147483647
> MOVE k 99999999999999999999
< -ERR value is not an integer or out of range
> MOVE missing 1
< :0

# With its time to live.
> PEXPIREAT k 5000000000000
< :1
> MOVE k 1
< :1
> EXISTS k
< :0
> DBSIZE
< :0
> SELECT 1
< +OK
> PEXPIRETIME k
< :5000000000000
> DBSIZE
< :1
> SELECT 0
< +OK

# Not over what is there.
@key k
> MOVE k 1
< :0
> PEXPIRETIME k
< :-1
> SELECT 1
< +OK
> PEXPIRETIME k
< :5000000000000
> PEXPIRE k 1
< :1
> SELECT 0
< +OK
@sleep_ms 20
> MOVE k 1
< :1
> SELECT 1
< +OK
> PEXPIRETIME k
< :-1
> SELECT 0
< +OK
> EXISTS k
< :0

>! BF.MADD f a b
< *2 | :1 | :1
>! MOVE f 3
< :1
>! SELECT 3
< +OK
>! BF.MEXISTS f a b c
< *3 | :1 | :1 | :0
>! DEL f
< :1
>! SELECT 0
< +OK

# Both have changed for who watches them; what was left alone has not.
@key k
> SELECT 2
< +OK
> WATCH k
< +OK
@on b
> MOVE k 2
< :1
@on a
@changed
> WATCH k
< +OK
@on b
@key k
> MOVE k 2
< :0
@on a
@unchanged
@on b
> WATCH k
< +OK
@on a
> SELECT 0
< +OK
> MOVE k 4
< :1
@on b
@changed
