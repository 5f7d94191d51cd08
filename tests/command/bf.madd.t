# SPDX-License-Identifier: BSD-3-Clause
#
# BF.MADD key item...: one integer an item; the array ends at the first error.
> BF.MADD k a b a c
< *4 | :1 | :1 | :0 | :1
> BF.MADD k a d
< *2 | :0 | :1
> bf.madd k ""
< *1 | :1
> BF.CARD k
< :5

> BF.MADD
< -ERR wrong number of arguments for 'BF.MADD' command
> BF.MADD k
< -ERR wrong number of arguments for 'BF.MADD' command

# Processing stops at the failing item; what came before stays.
> BF.RESERVE full 1e-9 2 NONSCALING
< +OK
> BF.MADD full a b c d
< *3 | :1 | :1 | -ERR non scaling filter is full
> BF.MADD full a b
< *2 | :0 | :0
> BF.MADD full a c b
< *2 | :0 | -ERR non scaling filter is full
> BF.MADD full c
< *1 | -ERR non scaling filter is full
> BF.MEXISTS full a b c d
< *4 | :1 | :1 | :0 | :0

# Scale-out in the middle of a batch.
> BF.RESERVE grow 1e-9 2 EXPANSION 1
< +OK
> BF.MADD grow a b c d e
< *5 | :1 | :1 | :1 | :1 | :1
> BF.INFO grow FILTERS
< :3
> BF.MADD grow e d c b a
< *5 | :0 | :0 | :0 | :0 | :0

> BF.INSERT rate CAPACITY 1 ERROR 1e-300 TIGHTENING 1e-10 EXPANSION 1
< *0
> BF.MADD rate a b c
< *2 | :1 | -ERR false positive degrades to 0 on scale out

# A limit that is met at scale-out is an element, at creation the whole reply.
> BF.RESERVE limit 1e-9 1
< +OK
> CONFIG SET bf.bloom-memory-usage-limit 1
< +OK
> BF.MADD limit a b c
< *2 | :1 | -ERR operation exceeds bloom object memory limit
> BF.MADD missing a b
< -ERR operation exceeds bloom object memory limit
> BF.ADD missing a
< -ERR operation exceeds bloom object memory limit
> BF.ADD limit b
< -ERR operation exceeds bloom object memory limit
> EXISTS missing
< :0
> CONFIG SET bf.bloom-memory-usage-limit 134217728
< +OK
> BF.MADD limit a b c
< *3 | :0 | :1 | :1
