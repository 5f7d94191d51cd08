# SPDX-License-Identifier: BSD-3-Clause
#
# MULTI, EXEC, DISCARD, WATCH and UNWATCH on one connection; between several
# clients: tests/scenario/test_transactions.py.
@oracle
> EXEC
< -ERR EXEC without MULTI
> DISCARD
< -ERR DISCARD without MULTI
> MULTI
< +OK
> EXEC
< *0
> MULTI
< +OK
> PING
< +QUEUED
> ECHO a
< +QUEUED
> EXISTS k
< +QUEUED
> EXEC
< *3 | +PONG | "a" | :0
> MULTI
< +OK
> MULTI
< -ERR MULTI calls can not be nested
> WATCH k
< -ERR WATCH inside MULTI is not allowed
> PING
< +QUEUED
> EXEC
< *1 | +PONG
> MULTI
< +OK
> DISCARD
< +OK
> EXEC
< -ERR EXEC without MULTI
> MULTI x
< -ERR wrong number of arguments for 'multi' command
> EXEC x
< -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
> DISCARD x
< -ERR wrong number of arguments for 'discard' command
> UNWATCH x
< -ERR wrong number of arguments for 'unwatch' command
> WATCH
< -ERR wrong number of arguments for 'watch' command
> UNWATCH
< +OK
> WATCH a b c
< +OK
> UNWATCH
< +OK

# A mistake while queueing refuses the whole transaction.
> MULTI
< +OK
> PING
< +QUEUED
> NOPE
< -ERR unknown command 'NOPE', with args beginning with:\x20
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> MULTI
< +OK
> ECHO
< -ERR wrong number of arguments for 'echo' command
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> MULTI
< +OK
> CLIENT NOPE
< -ERR unknown subcommand 'NOPE'. Try CLIENT HELP.
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> MULTI
< +OK
> EXEC extra
< -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
> PING
< +PONG
> EXEC
< -ERR EXEC without MULTI

# An error at run time is an element.
@key k
> MULTI
< +OK
> EXPIRE k x
< +QUEUED
> EXISTS k
< +QUEUED
> SELECT 99
< +QUEUED
> DEL k
< +QUEUED
> EXISTS k
< +QUEUED
> EXEC
< *5 | -ERR value is not an integer or out of range | :1 | -ERR DB index is out of range | :1 | :0

# SELECT inside.
> MULTI
< +OK
> SELECT 2
< +QUEUED
> DBSIZE
< +QUEUED
> EXEC
< *2 | +OK | :0
> SELECT 0
< +OK

# WATCH of a key that this connection changes itself.
@key w
> WATCH w
< +OK
> DEL w
< :1
@changed
@unchanged
> WATCH w
< +OK
> EXISTS w
< :0
@unchanged
> WATCH w
< +OK
> UNWATCH
< +OK
> WATCH missing
< +OK
> DEL missing
< :0
@unchanged

# DISCARD forgets the watched keys too.
@key z
> WATCH z
< +OK
> MULTI
< +OK
> DISCARD
< +OK
> DEL z
< :1
@unchanged

> MULTI
< +OK
> QUIT
< +OK
@closed
