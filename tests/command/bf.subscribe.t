# SPDX-License-Identifier: BSD-3-Clause
#
# BF.SUBSCRIBE key [key ...]: the answer to each key, and then what writers do.
# In RESP2 the connection only listens.
@server --bf.bloom-use-random-seed no --bf.bloom-capacity 5
> BF.SUBSCRIBE
< -ERR wrong number of arguments for 'BF.SUBSCRIBE' command
> MULTI
< +OK
> BF.SUBSCRIBE k
< -ERR Command not allowed inside a transaction
> DISCARD
< +OK
> BF.SUBSCRIBE k m
< >5 | "bf.message" | "k" | "is" | "1" | "missing"
@read
< >5 | "bf.message" | "m" | "is" | "1" | "missing"

# A creation is a change, with the items that came with it.
@on b
> BF.ADD k a
< :1
@on a
@read
< >3 | "bf.message" | "k" | "changed"
@read
< >4 | "bf.message" | "k" | "add" | "\xa5\x89\xf7\x88\xd3\x1ctR\xf2i\xb5#\"JI\xa5"
> BF.SUBSCRIBE k
~ [>*]8 \| "bf\.message" \| "k" \| "is" \| "1" \| "\d+" \| "1" \| "1" \| "\d{13}"

# What is there already, and a time to live, are no change. Items of one command
# are one frame.
@on b
> BF.ADD k a
< :0
> EXPIRE k 1000
< :1
> BF.MADD k a b c
< *3 | :0 | :1 | :1
@on a
@read
~ [>*]4 \| "bf\.message" \| "k" \| "add" \| ".+"
@on b
> RENAME k m
< +OK
@on a
@read
~ [>*]3 \| "bf\.message" \| "(k" \| "gone|m" \| "changed)"
@read
~ [>*]3 \| "bf\.message" \| "(k" \| "gone|m" \| "changed)"
@on b
> DEL m
< :1
@on a
@read
< >3 | "bf.message" | "m" | "gone"

# Deletions are counted.
@on b
> BF.INSERT k DELETABLE ITEMS a b c
< *3 | :1 | :1 | :1
> BF.MDEL k a b x
< *3 | :1 | :1 | :0
@on a
@read
< >3 | "bf.message" | "k" | "changed"
@read
~ [>*]4 \| "bf\.message" \| "k" \| "add" \| ".+"
@read
< >4 | "bf.message" | "k" | "deleted" | "2"

# Adds to an ageing filter have their time; one that renews an item, too.
@on b
> DEL k
< :1
> BF.RESERVE k 0.01 100 AGEING 1000
< +OK
> BF.ADD k a
< :1
@on a
@read
< >3 | "bf.message" | "k" | "gone"
@read
< >3 | "bf.message" | "k" | "changed"
@read
~ [>*]5 \| "bf\.message" \| "k" \| "add" \| ".+" \| "\d{13}"

# Another database has other filters.
@on b
> SELECT 1
< +OK
> BF.ADD k z
< :1
> FLUSHDB
< +OK
> FLUSHALL
< +OK
@on a
@read
~ [>*]3 \| "bf\.message" \| "[km]" \| "gone"
@read
~ [>*]3 \| "bf\.message" \| "[km]" \| "gone"

# Keyed filters have no subscribers.
@on b
> SELECT 0
< +OK
> BF.RESERVE k 0.01 100 HASH keyed
< +OK
@on a
@read
< >3 | "bf.message" | "k" | "changed"
@on b
> BF.ADD k a
< :1
@on a
@read
< >3 | "bf.message" | "k" | "changed"
> BF.SUBSCRIBE m k
< -ERR keyed filters have no subscribers: without the secret a copy could not hash an item
> BF.UNSUBSCRIBE k
< >3 | "bf.unsubscribe" | "k" | :1
@on b
> CONFIG SET pubsub-max-subscriptions 1
< +OK
@on a
> BF.SUBSCRIBE m x
~ -ERR .*
> BF.SUBSCRIBE m
< >5 | "bf.message" | "m" | "is" | "1" | "missing"

# One command is one step.
@on b
> CONFIG SET bf.max-keys-per-subscribe 2
< +OK
> CONFIG SET pubsub-max-subscriptions 100
< +OK
@on a
> BF.SUBSCRIBE m x y
< -ERR too many keys in one command (bf.max-keys-per-subscribe)
> BF.SUBSCRIBE m
< >5 | "bf.message" | "m" | "is" | "1" | "missing"
