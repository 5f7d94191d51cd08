# SPDX-License-Identifier: BSD-3-Clause
#
# BF.MERGE destination source [source ...]: the union of filters of equal
# properties and seed, into one that is there or that is made like the first.
@server --bf.bloom-use-random-seed no
> BF.MERGE
< -ERR wrong number of arguments for 'BF.MERGE' command
> BF.MERGE d
< -ERR wrong number of arguments for 'BF.MERGE' command
> BF.MERGE d a
< -ERR not found
> EXISTS d
< :0
> BF.MADD a 1 2 3
< *3 | :1 | :1 | :1
> BF.MADD b 3 4
< *2 | :1 | :1
> BF.MADD c 5
< *1 | :1
> BF.MERGE d a b missing
< -ERR not found
> EXISTS d
< :0

# Into a new one, and then into it.
> PEXPIREAT a 33000000000000
< :1
> BF.MERGE d a b
< +OK
> BF.MEXISTS d 1 2 3 4 5
< *5 | :1 | :1 | :1 | :1 | :0
> BF.CARD d
< :4
> PTTL d
< :-1
> BF.MERGE d c c d
< +OK
> BF.MEXISTS d 1 2 3 4 5
< *5 | :1 | :1 | :1 | :1 | :1
> BF.CARD d
< :5
> BF.MERGE d a b c
< +OK
> BF.CARD d
< :5
> BF.MERGE d d
< +OK
> BF.MERGE nothing nothing
< -ERR not found
# A destination keeps its time.
> BF.MERGE a b
< +OK
> PEXPIRETIME a
< :33000000000000
> BF.CARD a
< :4
# The sources stay as they are.
> BF.CARD b
< :2

# What differs is named, and nothing is changed.
> BF.INSERT seed SEED 01234567890123456789012345678901 ITEMS x
< *1 | :1
> BF.MERGE d seed
< -ERR cannot merge filters of different seeds
> BF.RESERVE capacity 0.01 101
< +OK
> BF.MERGE d a capacity
< -ERR cannot merge filters of different capacities
> BF.RESERVE rate 0.02 100
< +OK
> BF.MERGE d rate
< -ERR cannot merge filters of different error rates
> BF.INSERT tightening TIGHTENING 0.6
< *0
> BF.MERGE d tightening
< -ERR cannot merge filters of different tightening ratios
> BF.RESERVE expansion 0.01 100 EXPANSION 3
< +OK
> BF.MERGE d expansion
< -ERR cannot merge filters of different expansions
> BF.MERGE new a expansion
< -ERR cannot merge filters of different expansions
> EXISTS new
< :0
> BF.CARD d
< :5

# No layer gets more than its capacity.
> BF.INSERT full CAPACITY 4 NONSCALING ITEMS 1 2 3 4
< *4 | :1 | :1 | :1 | :1
> BF.INSERT more CAPACITY 4 NONSCALING ITEMS 5 6
< *2 | :1 | :1
> BF.MERGE full more
< -ERR cannot merge: the union would hold more items than the capacity of a layer
> BF.MERGE both full more
< -ERR cannot merge: the union would hold more items than the capacity of a layer
> BF.MEXISTS full 5 6
< *2 | :0 | :0
> EXISTS both
< :0
> BF.INSERT some CAPACITY 4 NONSCALING ITEMS 2 3
< *2 | :1 | :1
> BF.MERGE full some
< +OK
> BF.CARD full
< :4
> BF.MERGE some more
< +OK
> BF.CARD some
< :4
> BF.ADD some 7
< -ERR non scaling filter is full

# Copies that grew on: the longer chain is what comes out.
> BF.INSERT one CAPACITY 3 ITEMS 1 2 3
< *3 | :1 | :1 | :1
> COPY one two
< :1
> BF.MADD two 4 5
< *2 | :1 | :1
> BF.MERGE one two
< +OK
> BF.MEXISTS one 1 2 3 4 5
< *5 | :1 | :1 | :1 | :1 | :1
> BF.INFO one FILTERS
< :2
> BF.CARD one
< :5

# Limits come before memory is asked for.
> CONFIG SET bf.bloom-memory-usage-limit 200
< +OK
> BF.MERGE three one
< -ERR operation exceeds bloom object memory limit
> EXISTS three
< :0
> CONFIG SET maxmemory 1
< +OK
> BF.MERGE one two
< -OOM command not allowed when used memory > 'maxmemory'.
