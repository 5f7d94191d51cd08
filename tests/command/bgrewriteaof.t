# SPDX-License-Identifier: BSD-3-Clause
#
# BGREWRITEAOF. Redis writes a file that nothing reads when appendonly is off.
@oracle
@server --appendonly no
> BGREWRITEAOF x
< -ERR wrong number of arguments for 'bgrewriteaof' command
>! BGREWRITEAOF
< -ERR There is no journal to rewrite: appendonly is disabled.
> CONFIG SET appendonly yes
< +OK
@sleep_ms 1500
> BGREWRITEAOF
< +Background append only file rewriting started
@sleep_ms 1500
> MULTI
< +OK
> BGREWRITEAOF
< +QUEUED
> EXEC
< *1 | +Background append only file rewriting scheduled
> CONFIG SET appendonly no
< +OK
