# SPDX-License-Identifier: BSD-3-Clause
#
# BF.RESET key: empties the filter and keeps its properties, its seed and its
# time to live; it has one layer again.
> BF.RESET
< -ERR wrong number of arguments for 'BF.RESET' command
> BF.RESET k x
< -ERR wrong number of arguments for 'BF.RESET' command
> BF.RESET missing
< -ERR not found
> BF.INSERT k CAPACITY 2 ERROR 1e-5 EXPANSION 3 TIGHTENING 0.25 ITEMS a b c d
< *4 | :1 | :1 | :1 | :1
> PEXPIREAT k 33000000000000
< :1
> BF.INFO k FILTERS
< :2
> BF.RESET k
< +OK
> BF.MEXISTS k a b c d
< *4 | :0 | :0 | :0 | :0
> BF.INFO k
< *16 | +Capacity | :2 | +Size | :240 | +Number of filters | :1 | +Number of items inserted | :0
< | +Error rate | ,0.00001 | +Expansion rate | :3 | +Tightening ratio | ,0.25
< | +Max scaled capacity | :?
> PEXPIRETIME k
< :33000000000000
> BF.MADD k a b c
< *3 | :1 | :1 | :1
> BF.INFO k FILTERS
< :2
> BF.RESET k
< +OK
> BF.RESET k
< +OK
> BF.CARD k
< :0

# Also where memory is short.
> BF.RESERVE large 0.01 2000000
< +OK
> BF.ADD large a
< :1
> CONFIG SET maxmemory 1
< +OK
> BF.ADD large b
< -OOM command not allowed when used memory > 'maxmemory'.
> BF.RESET large
< +OK
> BF.EXISTS large a
< :0
> CONFIG SET maxmemory 0
< +OK
> BF.ADD large a
< :1
> BF.RESET large
< +OK
> BF.CARD large
< :0
> BF.INFO large CAPACITY
< :2000000
