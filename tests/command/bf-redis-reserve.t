# SPDX-License-Identifier: BSD-3-Clause
#
# BF.RESERVE in dialect redis. The checks come in this order: number of words,
# error rate, capacity, EXPANSION, NONSCALING, the key.
@server --dialect redis
> BF.RESERVE
< -ERR wrong number of arguments for 'bf.reserve' command
> bf.Reserve k 0.01
< -ERR wrong number of arguments for 'bf.reserve' command
> BF.RESERVE k 0.01 100 a b c d
< -ERR wrong number of arguments for 'bf.reserve' command
> BF.RESERVE k x y EXPANSION z
< -ERR bad error rate
> BF.RESERVE k 0.01 y EXPANSION z
< -ERR bad capacity
> BF.RESERVE k 0.01 100 EXPANSION z NONSCALING
< -ERR bad expansion
> BF.RESERVE k 0.01 100 NONSCALING EXPANSION
< -ERR no expansion
> BF.RESERVE k 0.01 100 NONSCALING EXPANSION 2
< -Nonscaling filters cannot expand
> BF.RESERVE k 0.01 100
< +OK
> BF.RESERVE k 0.01 100 NONSCALING EXPANSION 2
< -Nonscaling filters cannot expand
> BF.RESERVE k 0.01 100 junk
< -ERR item exists

# Rates as strtod reads them; what is above 0.25 is cut to it.
> BF.RESERVE a 0 1
< -ERR error rate must be in the range (0.000000, 1.000000)
> BF.RESERVE a 1 1
< -ERR error rate must be in the range (0.000000, 1.000000)
> BF.RESERVE a inf 1
< -ERR error rate must be in the range (0.000000, 1.000000)
> BF.RESERVE a nan 1
< -ERR bad error rate
> BF.RESERVE a 1e-400 1
< -ERR bad error rate
> BF.RESERVE a "" 1
< -ERR bad error rate
> BF.RESERVE a " 0.1" 1
< -ERR bad error rate
> BF.RESERVE a 0.1x 1
< -ERR bad error rate
> BF.RESERVE a "0.1\x00" 1
< -ERR bad error rate
> BF.RESERVE a 0.9 1000
< +OK
> BF.RESERVE b 0x1p-2 1000
< +OK
> BF.DEBUG a
< *2 | "size:0 layout:native" | "bytes:704 bits:5632 hashes:8 hashwidth:64 capacity:1000 size:0 ratio:0.125"
> BF.DEBUG b
< *2 | "size:0 layout:native" | "bytes:704 bits:5632 hashes:8 hashwidth:64 capacity:1000 size:0 ratio:0.125"

# The first layer of a filter that scales has half the rate, the only one of a
# filter that does not has all of it. Half of the least number is none.
> BF.RESERVE half 0.01 1000
< +OK
> BF.DEBUG half
~ .* ratio:0\.005"
> BF.RESERVE whole 0.01 1000 NONSCALING
< +OK
> BF.DEBUG whole
~ .* ratio:0\.01"
> BF.RESERVE least 5e-324 1
< -ERR could not create filter
> BF.INSERT least ERROR 5e-324 CAPACITY 1 ITEMS a
< -ERR could not create filter
> EXISTS least
< :0
> BF.RESERVE least 5e-324 1 NONSCALING
< +OK

# Whole numbers in Redis's way.
> BF.RESERVE c 0.01 0
< -ERR capacity must be in the range [1, 1073741824]
> BF.RESERVE c 0.01 -9223372036854775808
< -ERR capacity must be in the range [1, 1073741824]
> BF.RESERVE c 0.01 1073741825
< -ERR capacity must be in the range [1, 1073741824]
> BF.RESERVE c 0.01 9223372036854775808
< -ERR bad capacity
> BF.RESERVE c 0.01 +5
< -ERR bad capacity
> BF.RESERVE c 0.01 05
< -ERR bad capacity
> BF.RESERVE c 0.01 "5 "
< -ERR bad capacity
> BF.RESERVE c 0.01 1.5
< -ERR bad capacity
> BF.RESERVE c 0.01 100 EXPANSION -1
< -ERR expansion must be in the range [0, 32768]
> BF.RESERVE c 0.01 100 EXPANSION 32769
< -ERR expansion must be in the range [0, 32768]
> BF.RESERVE c 0.01 100 EXPANSION 32769 NONSCALING
< -Nonscaling filters cannot expand
> BF.RESERVE c 0.01 100 NONSCALING EXPANSION -1
< -Nonscaling filters cannot expand
> BF.RESERVE c 0.01 100 EXPANSION NONSCALING
< -ERR bad expansion
> BF.RESERVE c 0.01 100 EXPANSION 32768
< +OK
> BF.INFO c EXPANSION
2< *1 | :32768
3< %1 | +Expansion rate | :32768
> EXISTS d
< :0

# EXPANSION 0 is NONSCALING, and both together are fine.
> BF.RESERVE d 0.01 100 EXPANSION 0
< +OK
> BF.INFO d EXPANSION
2< *1 | null
3< %1 | +Expansion rate | null
> BF.RESERVE e 0.01 100 nonscaling expansion 0
< +OK
> BF.INFO e EXPANSION
2< *1 | null
3< %1 | +Expansion rate | null

# Words that it does not know are passed over; a key is no option.
> BF.RESERVE f 0.01 100 lots of junk
< +OK
> BF.RESERVE NONSCALING 0.01 100
< +OK
> BF.INFO NONSCALING EXPANSION
2< *1 | :2
3< %1 | +Expansion rate | :2
> BF.RESERVE EXPANSION 0.01 100
< +OK

# A limit that RedisBloom does not have has a text of its own.
> BF.RESERVE g 0.01 1073741824
< -ERR operation exceeds bloom object memory limit
> CONFIG SET bf.bloom-memory-usage-limit 2gb
< +OK
> CONFIG SET maxmemory 64mb
< +OK
> BF.RESERVE g 0.01 1073741824
< -OOM command not allowed when used memory > 'maxmemory'.
> EXISTS g
< :0
