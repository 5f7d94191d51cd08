# SPDX-License-Identifier: BSD-3-Clause
#
# SUNSUBSCRIBE: one confirmation for each name, whether it was there or not; without
# names for all there were, and for nothing if there were none.
@oracle
> SUNSUBSCRIBE
< >3 | "sunsubscribe" | null | :0
> SUNSUBSCRIBE a b
< >3 | "sunsubscribe" | "a" | :0
@read
< >3 | "sunsubscribe" | "b" | :0
> SSUBSCRIBE a b
< >3 | "ssubscribe" | "a" | :1
@read
< >3 | "ssubscribe" | "b" | :2
> SUNSUBSCRIBE x
< >3 | "sunsubscribe" | "x" | :2
> SUNSUBSCRIBE a
< >3 | "sunsubscribe" | "a" | :1
> SUNSUBSCRIBE
< >3 | "sunsubscribe" | "b" | :0
> SUNSUBSCRIBE
< >3 | "sunsubscribe" | null | :0
> PING
< +PONG
