# SPDX-License-Identifier: BSD-3-Clause
#
# Databases in sidecar mode, in the words of Redis 7.0.15.
@server --dialect redis
@node a 17001 myself,master - 0-16383
> BF.ADD bar x
< #t
> SELECT 0
< +OK
> SELECT 1
< -ERR SELECT is not allowed in cluster mode
> SELECT 99
< -ERR SELECT is not allowed in cluster mode
> MOVE bar 0
< -ERR MOVE is not allowed in cluster mode
> COPY bar {bar}2 DB 1
< -ERR Copying to another database is not allowed in cluster mode
> SWAPDB 0 0
< -ERR SWAPDB is not allowed in cluster mode
