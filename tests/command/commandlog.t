# SPDX-License-Identifier: BSD-3-Clause
#
# Valkey's name of SLOWLOG; the logs of large requests and replies do not exist.
>! CONFIG SET commandlog-execution-slower-than 0
< +OK
>! CONFIG GET slowlog-log-slower-than
< %1 | "slowlog-log-slower-than" | "0"
>! COMMANDLOG RESET slow
< +OK
>! PING
< +PONG
>! CONFIG SET commandlog-execution-slower-than -1
< +OK
>! COMMANDLOG LEN slow
< :2
>! SLOWLOG LEN
< :2
>! COMMANDLOG GET 1 SLOW
~ \*1 \| \*6 \| :\d+ \| :\d+ \| :\d+ \| \*1 \| "PING" \| .*
>! COMMANDLOG GET -2 slow
< -ERR count should be greater than or equal to -1
>! COMMANDLOG GET 1 large-request
< -ERR this server keeps no log of type large-request, only slow
>! COMMANDLOG LEN large-reply
< -ERR this server keeps no log of type large-reply, only slow
>! COMMANDLOG RESET fast
< -ERR type should be one of the following: slow, large-request, large-reply
>! COMMANDLOG GET 1
< -ERR wrong number of arguments for 'commandlog|get' command
