# SPDX-License-Identifier: BSD-3-Clause
#
# PING [message].
@oracle
> PING
< +PONG
> ping
< +PONG
> PING hello
< "hello"
> PING ""
< ""
> PING "a\r\nb"
< "a\r\nb"
> PING a b
< -ERR wrong number of arguments for 'ping' command
@raw "PING\r\n"
< +PONG
@raw "*1\r\n$4\r\nping\r\n"
< +PONG
