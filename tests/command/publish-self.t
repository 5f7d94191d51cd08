# SPDX-License-Identifier: BSD-3-Clause
#
# A client that publishes to itself: the count, and then the message.
@proto 3
>! SUBSCRIBE a
< >3 | "subscribe" | "a" | :1
>! PUBLISH a x
< :1
@read!
< >3 | "message" | "a" | "x"
>! MULTI
< +OK
>! PUBLISH a y
< +QUEUED
>! EXEC
< *1 | :1
@read!
< >3 | "message" | "a" | "y"

# CLIENT REPLY silences replies; pushes are none.
@send! CLIENT REPLY OFF
@send! PUBLISH a z
@read!
< >3 | "message" | "a" | "z"
>! SUBSCRIBE b
< >3 | "subscribe" | "b" | :2
>! UNSUBSCRIBE b
< >3 | "unsubscribe" | "b" | :1
>! CLIENT REPLY ON
< +OK
@send! CLIENT REPLY SKIP
@send! PUBLISH a q
@read!
< >3 | "message" | "a" | "q"
