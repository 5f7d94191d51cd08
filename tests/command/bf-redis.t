# SPDX-License-Identifier: BSD-3-Clause
#
# The other BF commands in dialect redis, which is switched on and off while
# the server runs: booleans and maps in RESP3, names in lower case, RedisBloom's
# options.
> BF.ADD k a
< :1
> TYPE k
< +bloomfltr
> CONFIG SET dialect redis
< +OK
> CONFIG GET dialect
< %1 | "dialect" | "redis"
> TYPE k
< +MBbloom--
> TYPE missing
< +none
> BF.ADD
< -ERR wrong number of arguments for 'bf.add' command
> BF.ADD k a
2< :0
3< #f
> BF.ADD k b
2< :1
3< #t
> BF.MADD k b c d
2< *3 | :0 | :1 | :1
3< *3 | #f | #t | #t
> BF.EXISTS k a
2< :1
3< #t
> BF.EXISTS k nope
2< :0
3< #f
> BF.EXISTS missing a
2< :0
3< #f
> BF.MEXISTS k a nope d
2< *3 | :1 | :0 | :1
3< *3 | #t | #f | #t
> BF.MEXISTS missing a b
2< *2 | :0 | :0
3< *2 | #f | #f
> BF.CARD k
< :4
> BF.CARD missing
< :0
> BF.CARD
< -ERR wrong number of arguments for 'bf.card' command
> BF.INFO k
2< *10 | +Capacity | :100 | +Size | :200 | +Number of filters | :1
2< | +Number of items inserted | :4 | +Expansion rate | :2
3< %5 | +Capacity | :100 | +Size | :200 | +Number of filters | :1
3< | +Number of items inserted | :4 | +Expansion rate | :2
> BF.INFO k capacity
2< *1 | :100
3< %1 | +Capacity | :100
> BF.INFO k ITEMS
2< *1 | :4
3< %1 | +Number of items inserted | :4
> BF.INFO k FILTERS
2< *1 | :1
3< %1 | +Number of filters | :1
> BF.INFO k ERROR
< -Invalid information value
> BF.INFO k MAXSCALEDCAPACITY
< -Invalid information value
> BF.INFO missing ERROR
< -ERR not found
> BF.INFO k CAPACITY SIZE
< -ERR wrong number of arguments for 'bf.info' command

# In a transaction, too.
> MULTI
< +OK
> BF.INSERT k
< -ERR wrong number of arguments for 'bf.insert' command
> DISCARD
< +OK
> MULTI
< +OK
> BF.ADD k e
< +QUEUED
> BF.EXISTS k e
< +QUEUED
> EXEC
2< *2 | :1 | :1
3< *2 | #t | #t

# Its options are other names of ours.
> CONFIG GET bf-*
< %3 | "bf-error-rate" | "0.01" | "bf-initial-size" | "100" | "bf-expansion-factor" | "2"
> CONFIG SET bf-error-rate 0.5 bf-initial-size 7 bf-expansion-factor 0
< +OK
> CONFIG GET bf-*
< %3 | "bf-error-rate" | "0.25" | "bf-initial-size" | "7" | "bf-expansion-factor" | "0"
> CONFIG GET bf.bloom-fp-rate bf.bloom-capacity bf.bloom-expansion
< %3 | "bf.bloom-capacity" | "7" | "bf.bloom-expansion" | "0" | "bf.bloom-fp-rate" | "0.25"
> CONFIG SET bf-error-rate x
< -ERR CONFIG SET failed (possibly related to argument 'bf-error-rate') - Invalid value for `bf-error-rate`
> CONFIG SET bf-error-rate 1
< -ERR CONFIG SET failed (possibly related to argument 'bf-error-rate') - Value for `bf-error-rate` must be in the range (0.000000, 1.000000)
> CONFIG SET bf-initial-size 0
< -ERR CONFIG SET failed (possibly related to argument 'bf-initial-size') - Value for `bf-initial-size` must be in the range [1, 1073741824]
> CONFIG SET bf-expansion-factor 32769
< -ERR CONFIG SET failed (possibly related to argument 'bf-expansion-factor') - Value for `bf-expansion-factor` must be in the range [0, 32768]
> CONFIG SET bf-initial-size 5 bf.bloom-capacity 6
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-capacity') - duplicate parameter
> BF.ADD made a
2< :1
3< #t
> BF.INFO made
2< *10 | +Capacity | :7 | +Size | :136 | +Number of filters | :1
2< | +Number of items inserted | :1 | +Expansion rate | null
3< %5 | +Capacity | :7 | +Size | :136 | +Number of filters | :1
3< | +Number of items inserted | :1 | +Expansion rate | null

# bf-expansion-factor 0: filters do not scale, whatever EXPANSION says, and
# BF.RESERVE refuses to be told otherwise.
> BF.RESERVE never 0.01 10 EXPANSION 2
< -Nonscaling filters cannot expand
> BF.RESERVE never 0.01 10 EXPANSION 32769
< -Nonscaling filters cannot expand
> BF.RESERVE never 0.01 10 EXPANSION 0
< +OK
> BF.INSERT made2 EXPANSION 4 ITEMS a
2< *1 | :1
3< *1 | #t
> BF.INFO made2 EXPANSION
2< *1 | null
3< %1 | +Expansion rate | null
> CONFIG SET bf-expansion-factor 2
< +OK

> CONFIG SET bf.bloom-fp-rate 0.9
< +OK
> BF.ADD rate a
2< :1
3< #t
> BF.DEBUG rate
< *2 | "size:1 layout:native" | "bytes:64 bits:512 hashes:8 hashwidth:64 capacity:7 size:1 ratio:0.125"

# COMMAND shows RedisBloom's rows.
> COMMAND INFO BF.insert
2< *1 | *10 | "bf.insert" | :-4 | *3 | +write | +denyoom | +module | :1 | :1 | :1
2< | *2 | +@write | +@bloom | *0 | *1 | *6 | "flags" | *1 | +RW
2< | "begin_search" | *4 | "type" | "index" | "spec" | *2 | "index" | :1
2< | "find_keys" | *4 | "type" | "range" | "spec" | *6 | "lastkey" | :0 | "keystep" | :1 | "limit" | :0 | *0
3< *1 | *10 | "bf.insert" | :-4 | ~3 | +write | +denyoom | +module | :1 | :1 | :1
3< | ~2 | +@write | +@bloom | ~0 | ~1 | %3 | "flags" | ~1 | +RW
3< | "begin_search" | %2 | "type" | "index" | "spec" | %1 | "index" | :1
3< | "find_keys" | %2 | "type" | "range" | "spec" | %3 | "lastkey" | :0 | "keystep" | :1 | "limit" | :0 | ~0
> COMMAND LIST FILTERBY PATTERN bf.re*
< *2 | "bf.reserve" | "bf.reset"
> COMMAND LIST FILTERBY ACLCAT bloom
~ .*"bf\.add".*
> ACL CAT bloom
~ \*\d+ \| "bf\.add" \| "bf\.card" \| .*"bf\.scandump".*
> ACL DRYRUN default bf.insert k
< -ERR wrong number of arguments for 'bf.insert' command
> INFO commandstats
~ .*cmdstat_bf\.add:calls=.*cmdstat_bf\.mexists:calls=.*
> INFO errorstats
~ .*errorstat_ERR:count=.*errorstat_Invalid:count=2.*
> COMMAND GETKEYS BF.INSERT k
< -ERR Invalid number of arguments specified for command

# A filter that cannot grow, since no smaller rate exists: the array ends there,
# as it does for a full one.
> BF.RESERVE tiny 1e-323 1 EXPANSION 2
< +OK
> BF.MADD tiny a b c a
2< *2 | :1 | -ERR problem inserting into filter
3< *2 | #t | -ERR problem inserting into filter
> BF.ADD tiny b
< -ERR problem inserting into filter
> BF.ADD tiny a
2< :0
3< #f

> CONFIG SET dialect valkey
< +OK
> BF.ADD k
< -ERR wrong number of arguments for 'BF.ADD' command
> BF.ADD k a
< :0
> BF.INSERT k
< *0
> BF.MEXISTS k a
< *1 | :1
> BF.INFO k EXPANSION
< :2
> COMMAND LIST FILTERBY PATTERN bf.re*
< *2 | "BF.RESERVE" | "BF.RESET"
> CONFIG SET dialect other
< -ERR CONFIG SET failed (possibly related to argument 'dialect') - argument(s) must be one of the following: valkey, redis
