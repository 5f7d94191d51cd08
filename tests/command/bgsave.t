# SPDX-License-Identifier: BSD-3-Clause
#
# BGSAVE [SCHEDULE]. In a transaction it can only be scheduled.
@oracle
@server --auto-aof-rewrite-percentage 0
@key k
> BGSAVE x
< -ERR syntax error
> BGSAVE SCHEDULE x
< -ERR syntax error
> BGSAVE
< +Background saving started
@sleep_ms 500
> bgsave schedule
< +Background saving started
@sleep_ms 500
> MULTI
< +OK
> BGSAVE
< +QUEUED
> EXEC
< *1 | +Background saving scheduled
> PING
< +PONG
