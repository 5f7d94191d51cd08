# SPDX-License-Identifier: BSD-3-Clause
#
# RESET ends a transaction, WATCH, the name, the database and RESP3.
@oracle
> CLIENT SETNAME me
< +OK
> SELECT 3
< +OK
> MULTI
< +OK
> PING
< +QUEUED
> RESET
< +RESET
> EXEC
< -ERR EXEC without MULTI
> CLIENT GETNAME
< $-1
@key k
> EXISTS k
< :1
> SELECT 0
< +OK
> EXISTS k
< :1
> RESET x
< -ERR wrong number of arguments for 'reset' command
