# SPDX-License-Identifier: BSD-3-Clause
#
# HELLO and subscriptions: RESP3 allows everything, and to go back to RESP2 is
# to be restricted. In a transaction nothing is.
@oracle
@proto 3
> SUBSCRIBE a
< >3 | "subscribe" | "a" | :1
> EXISTS x
< :0
> HELLO 2
~ .*"proto" \| :2.*
> EXISTS x
< -ERR Can't execute 'exists': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
@on b
> PUBLISH a hi
< :1
@on a
@raw "UNSUBSCRIBE\r\n"
~ \*3 \| "message" \| "a" \| "hi"
@read
~ \*3 \| "unsubscribe" \| "a" \| :0
> HELLO 3
~ .*"proto" \| :3.*
> EXISTS x
< :0
