# SPDX-License-Identifier: BSD-3-Clause
#
# UNSUBSCRIBE: one confirmation for each name, whether it was there or not; without
# names for all there were, and for nothing if there were none.
@oracle
> UNSUBSCRIBE
< >3 | "unsubscribe" | null | :0
> UNSUBSCRIBE a b
< >3 | "unsubscribe" | "a" | :0
@read
< >3 | "unsubscribe" | "b" | :0
> SUBSCRIBE a b
< >3 | "subscribe" | "a" | :1
@read
< >3 | "subscribe" | "b" | :2
> UNSUBSCRIBE x
< >3 | "unsubscribe" | "x" | :2
> UNSUBSCRIBE a
< >3 | "unsubscribe" | "a" | :1
> UNSUBSCRIBE
< >3 | "unsubscribe" | "b" | :0
> UNSUBSCRIBE
< >3 | "unsubscribe" | null | :0
> PING
< +PONG
