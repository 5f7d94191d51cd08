# SPDX-License-Identifier: BSD-3-Clause
#
# BF.WHICH item key...: in which filters an item is.
> BF.WHICH
< -ERR wrong number of arguments for 'BF.WHICH' command
> BF.WHICH a
< -ERR wrong number of arguments for 'BF.WHICH' command
> BF.WHICH a k
< *1 | :0
> BF.MADD k a b
< *2 | :1 | :1
> BF.MADD l b c
< *2 | :1 | :1
> COPY l m
< :1
> BF.ADD m a
< :1
> BF.WHICH a k l m none
< *4 | :1 | :0 | :1 | :0
> bf.which b m k l k
< *4 | :1 | :1 | :1 | :1
> BF.WHICH c none none k l m
< *5 | :0 | :0 | :0 | :1 | :1

# Of every layout, each with its own hash.
> CONFIG SET bloom-layout valkeybloom
< +OK
> BF.MADD v a b
< *2 | :1 | :1
> CONFIG SET bloom-layout redisbloom
< +OK
> BF.MADD r b c
< *2 | :1 | :1
> BF.WHICH a k l m v r
< *5 | :1 | :0 | :1 | :1 | :0
> BF.WHICH b r v r m v
< *5 | :1 | :1 | :1 | :1 | :1

# Limits, and keys that are missing.
> CONFIG SET bf.max-keys-per-which 2
< +OK
> BF.WHICH a k l
< *2 | :1 | :0
> BF.WHICH a k l m
< -ERR too many keys in one command (bf.max-keys-per-which)
> CONFIG SET bf.missing-key error
< +OK
> BF.WHICH a k none
< -ERR not found
> BF.WHICH a k l
< *2 | :1 | :0
> CONFIG SET dialect redis
< +OK
> BF.WHICH a k l
2< *2 | :1 | :0
3< *2 | #t | #f
> MULTI
< +OK
> BF.WHICH a k l
< +QUEUED
> EXEC
2< *1 | *2 | :1 | :0
3< *1 | *2 | #t | #f
> COMMAND GETKEYS BF.WHICH a k l m
< *3 | "k" | "l" | "m"
> ACL SETUSER reader on nopass ~k +bf.which
< +OK
> ACL DRYRUN reader BF.WHICH a k
< +OK
> ACL DRYRUN reader BF.WHICH a k l
~ .*no permissions to access.*
