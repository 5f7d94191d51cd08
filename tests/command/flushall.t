# SPDX-License-Identifier: BSD-3-Clause
#
# FLUSHALL [ASYNC|SYNC]: every database.
@oracle
@key a b
> SELECT 1
< +OK
@key c
> FLUSHALL
< +OK
> DBSIZE
< :0
> SELECT 0
< +OK
> DBSIZE
< :0
@key a
> FLUSHALL ASYNC
< +OK
> EXISTS a
< :0
@key a
> flushall sync
< +OK
> EXISTS a
< :0
> FLUSHALL nope
< -ERR syntax error
> FLUSHALL SYNC ASYNC
< -ERR syntax error
