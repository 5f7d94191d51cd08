# SPDX-License-Identifier: BSD-3-Clause
#
# SPUBLISH counts who listens to the shard channel.
@oracle
> SPUBLISH a
< -ERR wrong number of arguments for 'spublish' command
> SPUBLISH a b
< :0
@on b
> SSUBSCRIBE a
< >3 | "ssubscribe" | "a" | :1
@on c
> SUBSCRIBE a
< >3 | "subscribe" | "a" | :1
@on a
> SPUBLISH a b
< :1
@on b
@read
< >3 | "smessage" | "a" | "b"
> RESET
< +RESET
@on a
> SPUBLISH a b
< :0
> COMMAND GETKEYS SPUBLISH a b
< -ERR The command has no key arguments
