# SPDX-License-Identifier: BSD-3-Clause
#
# SLOWLOG: what it keeps, with its trimming and without passwords; times,
# lengths and threads: tests/scenario/test_slowlog.py.
@oracle
> SLOWLOG
< -ERR wrong number of arguments for 'slowlog' command
> SLOWLOG NOPE
< -ERR unknown subcommand 'NOPE'. Try SLOWLOG HELP.
> SLOWLOG LEN x
< -ERR wrong number of arguments for 'slowlog|len' command
> SLOWLOG RESET x
< -ERR wrong number of arguments for 'slowlog|reset' command
> SLOWLOG GET 1 2
< -ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
> SLOWLOG GET x
< -ERR count should be greater than or equal to -1
> SLOWLOG GET -2
< -ERR count should be greater than or equal to -1
> CONFIG GET slowlog*
~ [%*][24] \| "slowlog-(max-len|log-slower-than)" \| "(128|10000)" \| "slowlog-(max-len|log-slower-than)" \| "(128|10000)"
> CONFIG SET slowlog-log-slower-than -2
~ -ERR .*argument must be between -1 and 9223372036854775807 inclusive
> CONFIG SET slowlog-max-len -1
~ -ERR .*argument must be between 0 and 9223372036854775807 inclusive
> SLOWLOG RESET
< +OK
> SLOWLOG LEN
< :0
> SLOWLOG GET
< *0
> CONFIG SET slowlog-log-slower-than 0
< +OK
> PING some
< "some"
> SLOWLOG LEN
< :2
> SLOWLOG GET 1
~ \*1 \| \*6 \| :2 \| :\d{10} \| :\d+ \| \*2 \| "SLOWLOG" \| "LEN" \| "127.0.0.1:\d+" \| ""
> CLIENT SETNAME me
< +OK
> slowlog get 2
~ \*2 \| \*6 \| :4 \| :\d+ \| :\d+ \| \*3 \| "CLIENT" \| "SETNAME" \| "me" \| "127.0.0.1:\d+" \| "me" \| \*6 \| :3 \| .*
# What is long is cut.
> ECHO 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789
< "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
> SLOWLOG GET 1
~ \*1 \| \*6 \| :6 \| :\d+ \| :\d+ \| \*2 \| "ECHO" \| "[0-9]{126}67\.\.\. \(2 more bytes\)" \| .*
> EXISTS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
< :0
> SLOWLOG GET 1
~ .* \| \*32 \| "EXISTS" .* "30" \| "31" \| "127.0.0.1:\d+" \| "me"
> EXISTS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33
< :0
> SLOWLOG GET 1
~ .* \| \*32 \| "EXISTS" .* "30" \| "\.\.\. \(3 more arguments\)" \| "127.0.0.1:\d+" \| "me"
# Passwords are not shown.
> AUTH default secret
~ .*
> SLOWLOG GET 1
~ .* \| \*3 \| "AUTH" \| "\(redacted\)" \| "\(redacted\)" \| .*
> AUTH secret
~ .*
> SLOWLOG GET 1
~ .* \| \*2 \| "AUTH" \| "\(redacted\)" \| "127.*
> HELLO 2 AUTH nobody secret SETNAME you
~ -WRONGPASS .*
> SLOWLOG GET 1
~ .* \| \*7 \| "HELLO" \| "2" \| "AUTH" \| "\(redacted\)" \| "\(redacted\)" \| "SETNAME" \| "you" \| .*
> CONFIG SET requirepass "" maxmemory 0
< +OK
> SLOWLOG GET 1
~ .* \| \*6 \| "CONFIG" \| "SET" \| "requirepass" \| "\(redacted\)" \| "maxmemory" \| "0" \| .*
# EXEC is not shown, but what it ran is.
> MULTI
< +OK
> PING a
< +QUEUED
> PING b
< +QUEUED
> EXEC
< *2 | "a" | "b"
> SLOWLOG GET 3
~ \*3 .* \| \*2 \| "PING" \| "b" .* \| \*2 \| "PING" \| "a" .* \| \*1 \| "MULTI" .*
# What is refused has not run.
> CONFIG SET slowlog-max-len 1
< +OK
> NOPE
~ -ERR unknown command 'NOPE'.*
> ECHO
< -ERR wrong number of arguments for 'echo' command
> SLOWLOG GET
~ \*1 .* \| "CONFIG" \| "SET" \| "slowlog-max-len" \| "1" .*
> SLOWLOG LEN
< :1
> CONFIG SET slowlog-log-slower-than -1
< +OK
> SLOWLOG RESET
< +OK
> PING
< +PONG
> SLOWLOG LEN
< :0
> CONFIG SET slowlog-max-len 0 slowlog-log-slower-than 0
< +OK
> PING
< +PONG
> SLOWLOG LEN
< :0
>! SLOWLOG HELP
~ \*9 \| \+SLOWLOG <subcommand> .*
