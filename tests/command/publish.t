# SPDX-License-Identifier: BSD-3-Clause
#
# PUBLISH counts who will hear it. (A client that hears itself gets the message
# behind the count, as in Redis from 7.2 on.)
@oracle
> PUBLISH
< -ERR wrong number of arguments for 'publish' command
> PUBLISH a
< -ERR wrong number of arguments for 'publish' command
> PUBLISH a b c
< -ERR wrong number of arguments for 'publish' command
> PUBLISH a b
< :0
@on b
> SUBSCRIBE a
< >3 | "subscribe" | "a" | :1
@on c
> PSUBSCRIBE a *
< >3 | "psubscribe" | "a" | :1
@read
< >3 | "psubscribe" | "*" | :2
@on a
> PUBLISH a b
< :3
@on b
@read
< >3 | "message" | "a" | "b"

# In a transaction it waits for EXEC.
@on a
> MULTI
< +OK
> PUBLISH a 1
< +QUEUED
> PUBLISH a 2
< +QUEUED
> EXEC
< *2 | :3 | :3
@on b
@read
< >3 | "message" | "a" | "1"
@read
< >3 | "message" | "a" | "2"
> QUIT
< +OK
@closed
@on a
> PUBLISH a b
< :2
