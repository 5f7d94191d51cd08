# SPDX-License-Identifier: BSD-3-Clause
#
# PUBSUB and its subcommands.
@oracle
> PUBSUB
< -ERR wrong number of arguments for 'pubsub' command
> PUBSUB NOSUCH
< -ERR unknown subcommand 'NOSUCH'. Try PUBSUB HELP.
> PUBSUB CHANNELS
< *0
> PUBSUB CHANNELS *
< *0
> PUBSUB CHANNELS a b
< -ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
> PUBSUB SHARDCHANNELS a b
< -ERR unknown subcommand or wrong number of arguments for 'SHARDCHANNELS'. Try PUBSUB HELP.
> PUBSUB NUMPAT
< :0
> PUBSUB NUMPAT x
< -ERR wrong number of arguments for 'pubsub|numpat' command
> PUBSUB NUMSUB
< *0
> PUBSUB SHARDNUMSUB
< *0
> PUBSUB NUMSUB a b a
< *6 | "a" | :0 | "b" | :0 | "a" | :0
@on b
> SUBSCRIBE abc
< >3 | "subscribe" | "abc" | :1
> SUBSCRIBE xyz
< >3 | "subscribe" | "xyz" | :2
> PSUBSCRIBE x*
< >3 | "psubscribe" | "x*" | :3
> SSUBSCRIBE shard
< >3 | "ssubscribe" | "shard" | :1
@on c
> SUBSCRIBE abc
< >3 | "subscribe" | "abc" | :1
> PSUBSCRIBE x*
< >3 | "psubscribe" | "x*" | :2
@on a
> PUBSUB CHANNELS a*
< *1 | "abc"
> PUBSUB CHANNELS [^a]*
< *1 | "xyz"
> PUBSUB CHANNELS shard
< *0
> PUBSUB SHARDCHANNELS
< *1 | "shard"
> PUBSUB SHARDCHANNELS a*
< *0
> PUBSUB NUMSUB abc xyz none
< *6 | "abc" | :2 | "xyz" | :1 | "none" | :0
> PUBSUB SHARDNUMSUB shard abc
< *4 | "shard" | :1 | "abc" | :0
> PUBSUB NUMPAT
< :1
> CLIENT LIST TYPE pubsub
~ ="txt:id=.* flags=P( capa=)? db=0 sub=2 psub=1 ssub=1 multi=-1 .*\\nid=.* flags=P( capa=)? db=0 sub=1 psub=1 ssub=0 multi=-1 .*|".*flags=P( capa=)? db=0 sub=2 psub=1 ssub=1 .*"
> CLIENT LIST TYPE normal
~ .* flags=N( capa=)? db=0 sub=0 psub=0 ssub=0 .*
> CLIENT KILL TYPE pubsub
< :2
@on b
@closed
@on c
@closed
@on a
> PUBSUB CHANNELS
< *0
> PUBSUB NUMPAT
< :0
>! PUBSUB HELP
~ \*\d+ \| \+PUBSUB <subcommand> .*NUMPAT.*
