# SPDX-License-Identifier: BSD-3-Clause
#
# PUNSUBSCRIBE: one confirmation for each name, whether it was there or not; without
# names for all there were, and for nothing if there were none.
@oracle
> PUNSUBSCRIBE
< >3 | "punsubscribe" | null | :0
> PUNSUBSCRIBE a b
< >3 | "punsubscribe" | "a" | :0
@read
< >3 | "punsubscribe" | "b" | :0
> PSUBSCRIBE a b
< >3 | "psubscribe" | "a" | :1
@read
< >3 | "psubscribe" | "b" | :2
> PUNSUBSCRIBE x
< >3 | "punsubscribe" | "x" | :2
> PUNSUBSCRIBE a
< >3 | "punsubscribe" | "a" | :1
> PUNSUBSCRIBE
< >3 | "punsubscribe" | "b" | :0
> PUNSUBSCRIBE
< >3 | "punsubscribe" | null | :0
> PING
< +PONG
