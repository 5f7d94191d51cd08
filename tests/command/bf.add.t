# SPDX-License-Identifier: BSD-3-Clause
#
# BF.ADD key item: arity, creation with defaults, duplicates, binary items,
# a full nonscaling filter.
> BF.ADD k a
< :1
> BF.ADD k a
< :0
> bf.aDD k b
< :1
> BF.CARD k
< :2
> BF.INFO k CAPACITY
< :100

# Any bytes are an item and a key, the empty string too.
> BF.ADD k ""
< :1
> BF.ADD k ""
< :0
> BF.ADD k "\x00\xff\r\n"
< :1
> BF.ADD k "\x00\xff\r\n"
< :0
> BF.ADD k "\x00\xff\r"
< :1
> BF.ADD "" item
< :1
> BF.ADD "\x00\r\n" item
< :1

> BF.ADD
< -ERR wrong number of arguments for 'BF.ADD' command
> BF.ADD k
< -ERR wrong number of arguments for 'BF.ADD' command
> bf.add k a b
< -ERR wrong number of arguments for 'BF.ADD' command

# A duplicate is not refused by a full filter, a new item is.
> BF.RESERVE full 1e-9 2 NONSCALING
< +OK
> BF.ADD full one
< :1
> BF.ADD full two
< :1
> BF.ADD full one
< :0
> BF.ADD full three
< -ERR non scaling filter is full
> BF.CARD full
< :2
> BF.EXISTS full three
< :0

# Scaling: the item after the last that fits opens the second layer.
> BF.RESERVE two 1e-9 1 EXPANSION 3
< +OK
> BF.ADD two a
< :1
> BF.INFO two FILTERS
< :1
> BF.ADD two a
< :0
> BF.ADD two b
< :1
> BF.INFO two FILTERS
< :2
> BF.INFO two CAPACITY
< :4
> BF.ADD two a
< :0

# The rate of the next layer would fall to zero.
> BF.INSERT rate CAPACITY 1 ERROR 1e-300 TIGHTENING 1e-10 EXPANSION 1 ITEMS a
< *1 | :1
> BF.ADD rate b
< -ERR false positive degrades to 0 on scale out
> BF.ADD rate a
< :0
