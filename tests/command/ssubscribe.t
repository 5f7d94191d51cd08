# SPDX-License-Identifier: BSD-3-Clause
#
# SSUBSCRIBE: shard channels are a world of their own, and counted apart. Without
# a cluster there is one shard.
@oracle
> SSUBSCRIBE
< -ERR wrong number of arguments for 'ssubscribe' command
> SSUBSCRIBE a b a
< >3 | "ssubscribe" | "a" | :1
@read
< >3 | "ssubscribe" | "b" | :2
@read
< >3 | "ssubscribe" | "a" | :2
> SUBSCRIBE a
< >3 | "subscribe" | "a" | :1
> PSUBSCRIBE *
< >3 | "psubscribe" | "*" | :2
@on b
> SPUBLISH a shard
< :1
> PUBLISH a plain
< :2
> PUBSUB SHARDNUMSUB a b c
< *6 | "a" | :1 | "b" | :1 | "c" | :0
> PUBSUB NUMSUB a b
< *4 | "a" | :1 | "b" | :0
@on a
@read
< >3 | "smessage" | "a" | "shard"
@read
< >3 | "message" | "a" | "plain"
@read
< >4 | "pmessage" | "*" | "a" | "plain"
> SUNSUBSCRIBE a
< >3 | "sunsubscribe" | "a" | :1
> UNSUBSCRIBE
< >3 | "unsubscribe" | "a" | :1
> SUNSUBSCRIBE
< >3 | "sunsubscribe" | "b" | :0
@on b
> PUBSUB SHARDCHANNELS
< *0
