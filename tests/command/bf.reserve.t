# SPDX-License-Identifier: BSD-3-Clause
#
# BF.RESERVE key error_rate capacity [EXPANSION n | NONSCALING]. The checks
# come in this order: arity, error rate, capacity, option, existence, limit.
> BF.RESERVE k 0.01 100
< +OK
> BF.RESERVE k 0.01 100
< -ERR item exists
> BF.INFO k EXPANSION
< :2
> bf.reserve e3 .5 1000 expansion 3
< +OK
> BF.INFO e3 EXPANSION
< :3
> BF.RESERVE ns 1e-3 1000 nonscaling
< +OK
> BF.INFO ns EXPANSION
< null
> BF.INFO ns ERROR
< ,0.001
> BF.INFO ns CAPACITY
< :1000

> BF.RESERVE
< -ERR wrong number of arguments for 'BF.RESERVE' command
> BF.RESERVE k
< -ERR wrong number of arguments for 'BF.RESERVE' command
> BF.RESERVE k 0.01
< -ERR wrong number of arguments for 'BF.RESERVE' command
> BF.RESERVE n 0.01 100 NONSCALING EXPANSION 2
< -ERR wrong number of arguments for 'BF.RESERVE' command

# The option slot: anything unexpected is a bare ERROR.
> BF.RESERVE n 0.01 100 EXPANSION
< -ERROR
> BF.RESERVE n 0.01 100 NONSCALING x
< -ERROR
> BF.RESERVE n 0.01 100 junk
< -ERROR
> BF.RESERVE n 0.01 100 junk 2
< -ERROR
> BF.RESERVE n 0.01 100 SCALING 2
< -ERROR
> BF.RESERVE n 0.01 100 EXPANSION 0
< -ERR bad expansion
> BF.RESERVE n 0.01 100 EXPANSION -0
< -ERR bad expansion
> BF.RESERVE n 0.01 100 EXPANSION -1
< -ERR bad expansion
> BF.RESERVE n 0.01 100 EXPANSION 1.5
< -ERR bad expansion
> BF.RESERVE n 0.01 100 EXPANSION 4294967296
< -ERR bad expansion
> BF.RESERVE n 0.01 100 EXPANSION ""
< -ERR bad expansion
> BF.RESERVE n 0.01 100 EXPANSION x
< -ERR bad expansion

# Error rate: what does not parse, what is out of range.
> BF.RESERVE n x 100
< -ERR bad error rate
> BF.RESERVE n "" 100
< -ERR bad error rate
> BF.RESERVE n " 0.01" 100
< -ERR bad error rate
> BF.RESERVE n "0.01 " 100
< -ERR bad error rate
> BF.RESERVE n 0x1 100
< -ERR bad error rate
> BF.RESERVE n 0x1p-3 100
< -ERR bad error rate
> BF.RESERVE n 0.01f 100
< -ERR bad error rate
> BF.RESERVE n . 100
< -ERR bad error rate
> BF.RESERVE n 1e 100
< -ERR bad error rate
> BF.RESERVE n 0,01 100
< -ERR bad error rate
> BF.RESERVE n "0.01\x00" 100
< -ERR bad error rate
> BF.RESERVE n nan(1) 100
< -ERR bad error rate
> BF.RESERVE n 0 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n -0.0 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n 1 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n 5. 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n -0.5 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n 0.99999999999999999 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n 1e-400 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n 1e999 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n inf 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n -Infinity 100
< -ERR (0 < error rate range < 1)
> BF.RESERVE n NaN 100
< -ERR (0 < error rate range < 1)

# Capacity.
> BF.RESERVE n 0.01 0
< -ERR (capacity should be larger than 0)
> BF.RESERVE n 0.01 -0
< -ERR (capacity should be larger than 0)
> BF.RESERVE n 0.01 -1
< -ERR bad capacity
> BF.RESERVE n 0.01 1.5
< -ERR bad capacity
> BF.RESERVE n 0.01 1e3
< -ERR bad capacity
> BF.RESERVE n 0.01 9223372036854775808
< -ERR bad capacity
> BF.RESERVE n 0.01 99999999999999999999999999
< -ERR bad capacity
> BF.RESERVE n 0.01 ""
< -ERR bad capacity
> BF.RESERVE n 0.01 " 5"
< -ERR bad capacity
> BF.RESERVE n 0.01 "5 "
< -ERR bad capacity
> BF.RESERVE n 0.01 +
< -ERR bad capacity
> BF.RESERVE n 0.01 ++5
< -ERR bad capacity
> BF.RESERVE n 0.01 0x10
< -ERR bad capacity

# The order of the checks.
> BF.RESERVE k x y z
< -ERR bad error rate
> BF.RESERVE k 0.01 y z
< -ERR bad capacity
> BF.RESERVE k 0.01 100 z
< -ERROR
> BF.RESERVE k 0.01 100 EXPANSION z
< -ERR bad expansion
> BF.RESERVE k 0.01 9223372036854775807
< -ERR item exists

# Too large for the object limit: an error and no key.
> BF.RESERVE n 0.01 9223372036854775807
< -ERR operation exceeds bloom object memory limit
> BF.RESERVE n 0.01 200000000 NONSCALING
< -ERR operation exceeds bloom object memory limit
> EXISTS n
< :0

# Written in other ways, but fine.
> BF.RESERVE a +0.5 +5
< +OK
> BF.INFO a CAPACITY
< :5
> BF.RESERVE b 1E-3 05
< +OK
> BF.INFO b ERROR
< ,0.001
> BF.RESERVE c 0.0000001 5 EXPANSION +4294967295
< +OK
> BF.INFO c ERROR
< ,1e-7
> BF.INFO c EXPANSION
< :4294967295
> BF.RESERVE d 0.0000125 5
< +OK
> BF.INFO d ERROR
< ,1.25e-5
> BF.RESERVE e 0.000001 5
< +OK
> BF.INFO e ERROR
< ,0.000001
> BF.RESERVE f 0.1 1
< +OK
> BF.INFO f ERROR
< ,0.1

# Filters that forget by the clock. The new words match whole, and stand outside of
# the modules' numbers of words.
> CONFIG SET dialect valkey
< +OK
> BF.RESERVE aged 0.01 800 AGEING 86400
< +OK
> BF.RESERVE aged 0.01 800 AGEING 86400
< -ERR item exists
> BF.RESERVE aged1 0.01 800 EXPANSION 4 GENERATIONS 2
< -ERR GENERATIONS stands behind AGEING and takes 1 to 64
> BF.RESERVE aged1 0.01 800 AGEING 0
< -ERR AGEING takes 1 to 4294967295 seconds
> BF.RESERVE aged1 0.01 800 AGEING 60 GENERATIONS 65
< -ERR GENERATIONS stands behind AGEING and takes 1 to 64
> BF.RESERVE aged1 0.01 800 AGEING
< -ERR syntax error
> BF.RESERVE aged1 0.01 800 AGEING 60 DELETABLE
< -ERR a filter cannot be both AGEING and DELETABLE
> BF.RESERVE aged1 0.01 800 AGEING 60 GENERATIONS 2 EXPANSION 4 EX 100
< +OK
> BF.MADD aged a b a
< *3 | :1 | :1 | :0
> BF.ADD aged a
< :0
> BF.MEXISTS aged a b c
< *3 | :1 | :1 | :0
> BF.WHICH a aged aged1
< *2 | :1 | :0
> BF.COUNTNEW aged a b c
< :1
> BF.CARD aged
< :2
> BF.INFO aged CAPACITY
< :800
> OBJECT ENCODING aged
< "ageing"
> BF.DEL aged a
< -ERR items of this filter cannot be deleted: it was made without DELETABLE
> BF.DEBUG aged
~ .*"size:2 layout:ageing" . "bytes:.* capacity:100 size:2 ratio:0.00111111 age:0"
> BF.STATS aged
~ .*"kind" . "ageing" . "items" . :2 . "capacity" . :800 .*"items-until-next-layer" . :98 .*"seconds" . :86400 . "generations" . :8 .*"layers" . \*1 .*"age" . :\d+
> BF.SCANDUMP aged 0
< -ERR a filter that ages cannot be dumped in chunks: use DUMP
> COPY aged copied
< :1
> BF.ADD copied c
< :1
> BF.MERGE aged copied
< +OK
> BF.MEXISTS aged a b c
< *3 | :1 | :1 | :1
> BF.MERGE aged aged1
< -ERR cannot merge filters of different ageing times
> BF.RESET aged
< +OK
> BF.MEXISTS aged a b c
< *3 | :0 | :0 | :0
> BF.ADD aged a
< :1
> BF.INSERT inserted CAPACITY 8 AGEING 60 NONSCALING ITEMS a b a
< *2 | :1 | -ERR non scaling filter is full
> CONFIG SET dialect redis
< +OK
> BF.RESERVE aged2 0.01 800 EXPANSION 2 AGEING 60 GENERATIONS 4
< +OK
> BF.INSERT aged3 ITEMS
~ -.*
> BF.INSERT aged3 AGEING 60 GENERATIONS 4 CAPACITY 100 ERROR 0.01 ITEMS a
~ \*1 . .*
> BF.INFO aged3 Capacity
~ .*:100
> CONFIG SET bloom-layout redisbloom
< +OK
> BF.RESERVE aged4 0.01 800 AGEING 60
< -ERR DELETABLE and AGEING need the option bloom-layout to be native
