# SPDX-License-Identifier: BSD-3-Clause
#
# CLIENT PAUSE, UNPAUSE and UNBLOCK; with many clients:
# tests/scenario/test_pause.py.
@oracle
> CLIENT PAUSE
< -ERR wrong number of arguments for 'client|pause' command
> CLIENT PAUSE x
< -ERR timeout is not an integer or out of range
> CLIENT PAUSE 1.5
< -ERR timeout is not an integer or out of range
> CLIENT PAUSE -1
< -ERR timeout is negative
> CLIENT PAUSE x nope
< -ERR CLIENT PAUSE mode must be WRITE or ALL
> CLIENT PAUSE 1 WRITE x
< -ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
> CLIENT PAUSE 0
< +OK
> DEL x
< :0
> CLIENT UNPAUSE
< +OK
> CLIENT UNPAUSE x
< -ERR wrong number of arguments for 'client|unpause' command
# Reads go on, and so does what only asks.
> CLIENT PAUSE 60000 WRITE
< +OK
> EXISTS x
< :0
> PING
< +PONG
> MULTI
< +OK
> EXISTS x
< +QUEUED
> EXEC
< *1 | :0
> CLIENT UNPAUSE
< +OK
# Writes wait for the end. A second pause makes none shorter.
> CLIENT PAUSE 80 write
< +OK
> CLIENT PAUSE 1 WRITE
< +OK
> DEL x
< :0
# All commands: this one, too.
> CLIENT PAUSE 50
< +OK
> CLIENT UNPAUSE
< +OK
> CLIENT PAUSE 50 all
< +OK
> PING
< +PONG
> CLIENT UNBLOCK
< -ERR wrong number of arguments for 'client|unblock' command
> CLIENT UNBLOCK x
< -ERR value is not an integer or out of range
> CLIENT UNBLOCK x nope
< -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
> CLIENT UNBLOCK 1 ERROR x
< -ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.
> CLIENT UNBLOCK 99999
< :0
> CLIENT UNBLOCK 99999 timeout
< :0
> CLIENT UNBLOCK 0 ERROR
< :0
> CLIENT UNBLOCK -5
< :0
# In a transaction it begins with what follows it.
> MULTI
< +OK
> CLIENT PAUSE 50 WRITE
< +QUEUED
> DEL x
< +QUEUED
> EXEC
< *2 | +OK | :0
> CLIENT UNPAUSE
< +OK
