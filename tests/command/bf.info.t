# SPDX-License-Identifier: BSD-3-Clause
#
# BF.INFO key [field].
> BF.INFO missing
< -ERR not found
> BF.INFO missing CAPACITY
< -ERR not found
> BF.INFO missing nope
< -ERR not found
> BF.INFO
< -ERR wrong number of arguments for 'BF.INFO' command
> BF.INFO k CAPACITY SIZE
< -ERR wrong number of arguments for 'BF.INFO' command

> BF.MADD k a b
< *2 | :1 | :1
> BF.INFO k
< *16 | +Capacity | :100 | +Size | :? | +Number of filters | :1 | +Number of items inserted | :2
< | +Error rate | ,0.01 | +Expansion rate | :2 | +Tightening ratio | ,0.5 | +Max scaled capacity | :26214300
> BF.INFO k CAPACITY
< :100
> bf.info k capacity
< :100
> BF.INFO k SIZE
< :?
> BF.INFO k FILTERS
< :1
> BF.INFO k ITEMS
< :2
> BF.INFO k error
< ,0.01
> BF.INFO k EXPANSION
< :2
> BF.INFO k Tightening
< ,0.5
> BF.INFO k MAXSCALEDCAPACITY
< :26214300
> BF.INFO k nope
< -ERR invalid information value
> BF.INFO k ""
< -ERR invalid information value
> BF.INFO k TIGHTENTING
< -ERR invalid information value

> BF.RESERVE ns 0.001 1000 NONSCALING
< +OK
> BF.INFO ns
< *12 | +Capacity | :1000 | +Size | :? | +Number of filters | :1 | +Number of items inserted | :0
< | +Error rate | ,0.001 | +Expansion rate | null
> BF.INFO ns EXPANSION
< null
> BF.INFO ns TIGHTENING
< -ERR invalid information value
> BF.INFO ns MAXSCALEDCAPACITY
< -ERR invalid information value

# The limit of now counts, not that of the creation.
> CONFIG SET bf.bloom-memory-usage-limit 1
< +OK
> BF.INFO k MAXSCALEDCAPACITY
< :0

# Error rate is that of the first layer, capacity that of all.
> CONFIG SET bf.bloom-memory-usage-limit 134217728
< +OK
> BF.INSERT grown CAPACITY 2 ERROR 0.000001 EXPANSION 2 ITEMS a b c
< *3 | :1 | :1 | :1
> BF.INFO grown
< *16 | +Capacity | :6 | +Size | :? | +Number of filters | :2 | +Number of items inserted | :3
< | +Error rate | ,0.000001 | +Expansion rate | :2 | +Tightening ratio | ,0.5 | +Max scaled capacity | :?
