# SPDX-License-Identifier: BSD-3-Clause
#
# SUBSCRIBE: one confirmation a channel, the count of channels and patterns
# together, messages as pushes, and what RESP2 still allows.
@oracle
> SUBSCRIBE
< -ERR wrong number of arguments for 'subscribe' command
> SUBSCRIBE one
< >3 | "subscribe" | "one" | :1
> SUBSCRIBE two one two
< >3 | "subscribe" | "two" | :2
@read
< >3 | "subscribe" | "one" | :2
@read
< >3 | "subscribe" | "two" | :2
> PSUBSCRIBE o*
< >3 | "psubscribe" | "o*" | :3
> SUBSCRIBE ""
< >3 | "subscribe" | "" | :4

# A message comes once for the channel and once for each pattern.
@on b
> PUBLISH one hello
< :2
> PUBLISH "" ""
< :1
> PUBLISH two "a\r\nb\x00c"
< :1
> PUBLISH none x
< :0
> SPUBLISH one x
< :0
@on a
@read
< >3 | "message" | "one" | "hello"
@read
< >4 | "pmessage" | "o*" | "one" | "hello"
@read
< >3 | "message" | "" | ""
@read
< >3 | "message" | "two" | "a\r\nb\x00c"

# What a subscriber may do.
> PING
2< *2 | "pong" | ""
3< +PONG
> PING hey
2< *2 | "pong" | "hey"
3< "hey"
> PING a b
< -ERR wrong number of arguments for 'ping' command
> ECHO x
2< -ERR Can't execute 'echo': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
3< "x"
> PUBSUB NUMPAT
2< -ERR Can't execute 'pubsub|numpat': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
3< :1
> NOSUCH
~ -ERR unknown command 'NOSUCH', with args beginning with: ?(\\x20)?
> MULTI x
< -ERR wrong number of arguments for 'multi' command
> UNSUBSCRIBE one
< >3 | "unsubscribe" | "one" | :3
> RESET
< +RESET
> ECHO x
< "x"
@on b
> PUBLISH two x
< :0
