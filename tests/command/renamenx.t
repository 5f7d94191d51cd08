# SPDX-License-Identifier: BSD-3-Clause
#
# RENAMENX key newkey.
@oracle
@key k
@key there
> RENAMENX
< -ERR wrong number of arguments for 'renamenx' command
> RENAMENX k
< -ERR wrong number of arguments for 'renamenx' command
> RENAMENX k x y
< -ERR wrong number of arguments for 'renamenx' command
> RENAMENX missing x
< -ERR no such key
> RENAMENX missing there
< -ERR no such key
> RENAMENX missing missing
< -ERR no such key
> RENAMENX k k
< :0
> RENAMENX k there
< :0
> EXISTS k there
< :2
> PEXPIREAT k 5000000000000
< :1
> RENAMENX k x
< :1
> EXISTS k
< :0
> PEXPIRETIME x
< :5000000000000
> DBSIZE
< :2

# What it leaves alone has not changed.
> WATCH x there
< +OK
@on b
> RENAMENX x there
< :0
> RENAMENX x x
< :0
@on a
@unchanged
> WATCH y
< +OK
@on b
> RENAMENX x y
< :1
@on a
@changed

# The name of an expired key is free.
> PEXPIRE there 1
< :1
@sleep_ms 20
> RENAMENX y there
< :1
> PEXPIRETIME there
< :5000000000000
> DBSIZE
< :1
