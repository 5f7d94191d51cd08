# SPDX-License-Identifier: BSD-3-Clause
#
# BF.INSERT key [options] [ITEMS item...].
# The key alone is enough: a default filter, and an empty array.
> BF.INSERT k
< *0
> BF.INFO k CAPACITY
< :100
> BF.INSERT k ITEMS a b a
< *3 | :1 | :1 | :0
> bf.insert k items a c
< *2 | :0 | :1
> BF.INSERT k
< *0

> BF.INSERT
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n ITEMS
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n CAPACITY 10 ITEMS
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n CAPACITY
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n ERROR
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n EXPANSION
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n TIGHTENING
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n SEED
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n VALIDATESCALETO
< -ERR wrong number of arguments for 'BF.INSERT' command
> BF.INSERT n junk
< -ERR unknown argument received
> BF.INSERT n NONSCALING 5 ITEMS a
< -ERR unknown argument received
> BF.INSERT n "" ITEMS a
< -ERR unknown argument received
> EXISTS n
< :0

# Everything behind ITEMS is an item.
> BF.INSERT all ITEMS 1 2 3 EXPANSION 2
< *5 | :1 | :1 | :1 | :1 | :0
> BF.INSERT all2 ITEMS 1 2 3 EXPANSION x
< *5 | :1 | :1 | :1 | :1 | :1

# Any order, any case, the last of each wins.
> BF.INSERT o nonscaling capacity 5 error 0.5 capacity 7 error 0.001 EXPANSION 3
< *0
> BF.INFO o
< *16 | +Capacity | :7 | +Size | :? | +Number of filters | :1 | +Number of items inserted | :0
< | +Error rate | ,0.001 | +Expansion rate | :3 | +Tightening ratio | ,0.5 | +Max scaled capacity | :?
> BF.INSERT o2 EXPANSION 3 NONSCALING
< *0
> BF.INFO o2 EXPANSION
< null
> BF.INSERT o3 TIGHTENING 0.25 tightening 0.75
< *0
> BF.INFO o3 TIGHTENING
< ,0.75
> BF.INSERT n EXPANSION x NONSCALING
< -ERR bad expansion

# Values.
> BF.INSERT n CAPACITY 0
< -ERR (capacity should be larger than 0)
> BF.INSERT n CAPACITY -1
< -ERR bad capacity
> BF.INSERT n CAPACITY x
< -ERR bad capacity
> BF.INSERT n ERROR x
< -ERR bad error rate
> BF.INSERT n ERROR 1
< -ERR (0 < error rate range < 1)
> BF.INSERT n ERROR 0
< -ERR (0 < error rate range < 1)
> BF.INSERT n ERROR nan
< -ERR (0 < error rate range < 1)
> BF.INSERT n EXPANSION 0
< -ERR bad expansion
> BF.INSERT n EXPANSION 4294967296
< -ERR bad expansion
> BF.INSERT n TIGHTENING x
< -ERR bad tightening ratio
> BF.INSERT n TIGHTENING 0
< -ERR (0 < tightening ratio range < 1)
> BF.INSERT n TIGHTENING 1
< -ERR (0 < tightening ratio range < 1)
> BF.INSERT n TIGHTENING inf
< -ERR (0 < tightening ratio range < 1)
> BF.INSERT n SEED short
< -ERR invalid seed
> BF.INSERT n SEED ""
< -ERR invalid seed
> BF.INSERT n SEED 0123456789abcdef0123456789abcdefX
< -ERR invalid seed
> BF.INSERT n VALIDATESCALETO 0
< -ERR (capacity should be larger than 0)
> BF.INSERT n VALIDATESCALETO x
< -ERR bad capacity
> BF.INSERT n VALIDATESCALETO -5
< -ERR bad capacity

# Errors come in the order of the arguments.
> BF.INSERT n CAPACITY x ERROR y
< -ERR bad capacity
> BF.INSERT n ERROR y CAPACITY x
< -ERR bad error rate
> BF.INSERT n junk CAPACITY x
< -ERR unknown argument received
> BF.INSERT n CAPACITY x junk
< -ERR bad capacity
> EXISTS n
< :0

# SEED is 32 bytes, binary safe.
> BF.INSERT s SEED "\x00\r\n\xff9abcdef0123456789abcdef0123" ITEMS a
< -ERR invalid seed
> BF.INSERT s SEED "\x00\r\n\xff456789abcdef0123456789abcdef" ITEMS a b
< *2 | :1 | :1

# NOCREATE.
> BF.INSERT n NOCREATE
< -ERR not found
> BF.INSERT n nocreate ITEMS a
< -ERR not found
> BF.INSERT k NOCREATE ITEMS a new
< *2 | :0 | :1
> EXISTS n
< :0

# An existing filter: the options are checked and then ignored.
> BF.INSERT k CAPACITY 5 ERROR 0.5 EXPANSION 9 ITEMS a
< *1 | :0
> BF.INFO k CAPACITY
< :100
> BF.INSERT k NONSCALING ITEMS a
< *1 | :0
> BF.INFO k EXPANSION
< :2
> BF.INSERT k CAPACITY x ITEMS a
< -ERR bad capacity

# VALIDATESCALETO is judged before the key is looked at.
> BF.INSERT n VALIDATESCALETO 26214301
< -ERR provided VALIDATESCALETO causes bloom object to exceed memory limit
> BF.INSERT k VALIDATESCALETO 26214301 ITEMS a
< -ERR provided VALIDATESCALETO causes bloom object to exceed memory limit
> BF.INSERT n NOCREATE VALIDATESCALETO 26214301
< -ERR provided VALIDATESCALETO causes bloom object to exceed memory limit
> BF.INSERT n NOCREATE VALIDATESCALETO 26214300
< -ERR not found
> BF.INSERT n VALIDATESCALETO 100 NONSCALING
< -ERR cannot use NONSCALING and VALIDATESCALETO options together
> BF.INSERT n NONSCALING VALIDATESCALETO 100 EXPANSION 2
< *0
> BF.INSERT n2 CAPACITY 100 EXPANSION 1 VALIDATESCALETO 101601
< -ERR provided VALIDATESCALETO causes false positive to degrade to 0
> BF.INSERT n2 CAPACITY 100 EXPANSION 1 VALIDATESCALETO 101600
< *0
> BF.INFO n2 MAXSCALEDCAPACITY
< :101600
> BF.INSERT v1 CAPACITY 10000 ERROR 0.001 VALIDATESCALETO 20470001
< -ERR provided VALIDATESCALETO causes bloom object to exceed memory limit
> BF.INSERT v1 CAPACITY 10000 ERROR 0.001 VALIDATESCALETO 20470000
< *0
> BF.INFO v1 MAXSCALEDCAPACITY
< :20470000
> BF.INSERT v2 CAPACITY 100 ERROR 1e-8
< *0
> BF.INFO v2 MAXSCALEDCAPACITY
< :13107100
> BF.INSERT v3 CAPACITY 2000 ERROR .5
< *0
> BF.INFO v3 MAXSCALEDCAPACITY
< :32766000
> BF.INSERT v4 CAPACITY 1000
< *0
> BF.INFO v4 MAXSCALEDCAPACITY
< :32767000
> BF.INSERT v5 CAPACITY 100000
< *0
> BF.INFO v5 MAXSCALEDCAPACITY
< :51100000
> BF.INSERT v6 CAPACITY 1000 EXPANSION 4
< *0
> BF.INFO v6 MAXSCALEDCAPACITY
< :21845000

# Halfway: what came before the failure stays, the array ends there.
> BF.INSERT full CAPACITY 2 ERROR 1e-9 NONSCALING ITEMS a b c d
< *3 | :1 | :1 | -ERR non scaling filter is full
> BF.INSERT full ITEMS b c
< *2 | :0 | -ERR non scaling filter is full
> BF.INSERT rate CAPACITY 1 ERROR 1e-300 TIGHTENING 1e-10 EXPANSION 1 ITEMS a b c
< *2 | :1 | -ERR false positive degrades to 0 on scale out
> BF.INFO rate MAXSCALEDCAPACITY
< :1

# Too large: one error, no key.
> BF.INSERT big CAPACITY 9223372036854775807 ITEMS a
< -ERR operation exceeds bloom object memory limit
> BF.INSERT big CAPACITY 200000000
< -ERR operation exceeds bloom object memory limit
> EXISTS big
< :0

# IFINCARNATION adds only to the same life of a key, and never creates.
> BF.INSERT none IFINCARNATION 5 ITEMS a
< -ERR not found
> EXISTS none
< :0
> BF.INSERT k IFINCARNATION 5 ITEMS z
< -ERR the incarnation of the key is another one: it was created anew
> BF.EXISTS k z
< :0
> BF.INSERT k IFINCARNATION 0 ITEMS z
< -ERR an incarnation is a number from 1 to 18446744073709551615
> BF.INSERT k IFINCARNATION x ITEMS z
< -ERR an incarnation is a number from 1 to 18446744073709551615
> BF.INSERT k IFINCARNATION
< -ERR syntax error
> BF.RESERVE reserved 0.01 100 IFINCARNATION 5
< -ERR syntax error
> EXISTS reserved
< :0
