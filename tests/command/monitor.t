# SPDX-License-Identifier: BSD-3-Clause
#
# MONITOR: every command that runs, but what is for administrators, and no
# passwords. Who monitors may do nothing with keys.
@oracle
> MONITOR x
< -ERR wrong number of arguments for 'monitor' command
@on b
> PING
< +PONG
@on a
> MONITOR
< +OK
@on b
> PING "a \"b\"\\\r\n\t\x07\x08\x00\xff\x7f"
< "a \"b\"\\\r\n\t\x07\x08\x00\xff\x7f"
@on a
@read
~ \+\d{10}\.\d{6} \[0 127\.0\.0\.1:\d+\] "PING" "a \\\\"b\\\\"\\\\\\\\\\\\r\\\\n\\\\t\\\\a\\\\b\\\\x00\\\\xff\\\\x7f"
@on b
> SELECT 3
< +OK
@on a
@read
~ \+\d+\.\d+ \[3 127\.0\.0\.1:\d+\] "SELECT" "3"
@on b
> NOSUCH
~ -ERR unknown command .*
> CONFIG GET port
~ .*port.*
> AUTH user pass
< -WRONGPASS invalid username-password pair or user is disabled.
> HELLO 3 AUTH user pass
< -WRONGPASS invalid username-password pair or user is disabled.
> MULTI
< +OK
> EXISTS k
< +QUEUED
> EXEC
< *1 | :0
@on a
@read
~ \+\d+\.\d+ \[3 .*\] "AUTH" "\(redacted\)" "\(redacted\)"
@read
~ \+\d+\.\d+ \[3 .*\] "HELLO" "3" "AUTH" "\(redacted\)" "\(redacted\)"
@read
~ \+\d+\.\d+ \[3 .*\] "MULTI"
@read
~ \+\d+\.\d+ \[3 .*\] "EXISTS" "k"
@read
~ \+\d+\.\d+ \[3 .*\] "EXEC"

# Asked again it says nothing at all; keys are out of reach.
@send MONITOR
> EXISTS k
< -ERR Replica can't interact with the keyspace
> MULTI
< +OK
@read
~ \+\d+\.\d+ \[0 .*\] "MULTI"
> DISCARD
< +OK
@read
~ \+\d+\.\d+ \[0 .*\] "DISCARD"
@on b
> CLIENT LIST TYPE pubsub
2< ""
3< ="txt:"
> CLIENT LIST
~ .* flags=O( capa=)? db=0 .*
@on a
> RESET
< +RESET
> EXISTS k
< :0
> MULTI
< +OK
> MONITOR
< +QUEUED
> EXEC
< *1 | -ERR MONITOR isn't allowed for DENY BLOCKING client
> MONITOR
< +OK
> QUIT
< +OK
