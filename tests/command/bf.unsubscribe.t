# SPDX-License-Identifier: BSD-3-Clause
#
# BF.UNSUBSCRIBE [key ...]: filters are counted apart from channels.
> BF.UNSUBSCRIBE
< >3 | "bf.unsubscribe" | null | :0
> BF.UNSUBSCRIBE x
< >3 | "bf.unsubscribe" | "x" | :0
> BF.SUBSCRIBE a b a
< >5 | "bf.message" | "a" | "is" | "1" | "missing"
@read
< >5 | "bf.message" | "b" | "is" | "1" | "missing"
@read
< >5 | "bf.message" | "a" | "is" | "1" | "missing"
> SUBSCRIBE a
< >3 | "subscribe" | "a" | :1
@on b
> CLIENT LIST
~ .*sub=1 psub=0 ssub=0 .* filters=2 .*
> INFO stats
~ .*pubsub_filters:2\\r\\n.*pubsub_channels:1\\r\\n.*
> PUBSUB CHANNELS
< *1 | "a"
@on a
> BF.UNSUBSCRIBE a x
< >3 | "bf.unsubscribe" | "a" | :1
@read
< >3 | "bf.unsubscribe" | "x" | :1
@on b
> BF.ADD a 1
< :1
> BF.ADD b 1
< :1
@on a
@read
< >3 | "bf.message" | "b" | "changed"
@read
~ [>*]4 \| "bf\.message" \| "b" \| "add" \| ".+"
> BF.UNSUBSCRIBE
< >3 | "bf.unsubscribe" | "b" | :0
@on b
> INFO stats
~ .*pubsub_filters:0\\r\\n.*
