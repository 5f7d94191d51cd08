# SPDX-License-Identifier: BSD-3-Clause
#
# FLUSHDB [ASYNC|SYNC]: this database only.
@oracle
@key a b
> SELECT 1
< +OK
@key c
> FLUSHDB
< +OK
> DBSIZE
< :0
> SELECT 0
< +OK
> DBSIZE
< :2
> FLUSHDB ASYNC
< +OK
> DBSIZE
< :0
@key a
> flushdb sync
< +OK
> DBSIZE
< :0
> FLUSHDB nope
< -ERR syntax error
> FLUSHDB SYNC ASYNC
< -ERR syntax error
