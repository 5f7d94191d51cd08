# SPDX-License-Identifier: BSD-3-Clause
#
# SWAPDB: the keys of two databases change places as one step.
@oracle
@server --databases 16
@key one two
> SWAPDB 0 3
< +OK
> DBSIZE
< :0
> SELECT 3
< +OK
> EXISTS one two
< :2
@key three
> SWAPDB 3 0
< +OK
> DBSIZE
< :0
> SELECT 0
< +OK
> EXISTS one two three
< :3
> SWAPDB 0 0
< +OK
> DBSIZE
< :3

> swapdb a 1
< -ERR invalid first DB index
> SWAPDB 0 b
< -ERR invalid second DB index
> SWAPDB 0 4294967296
< -ERR invalid second DB index
> SWAPDB -9223372036854775808 0
< -ERR invalid first DB index
> SWAPDB 0 16
< -ERR DB index is out of range
> SWAPDB -1 0
< -ERR DB index is out of range
> SWAPDB 0
< -ERR wrong number of arguments for 'swapdb' command

# A watched key that went to the other database changed.
> WATCH one
< +OK
> SWAPDB 0 5
< +OK
@changed
