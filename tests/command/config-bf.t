# SPDX-License-Identifier: BSD-3-Clause
#
# CONFIG with the names that start with bf.
> CONFIG GET bf.bloom-capacity
< %1 | "bf.bloom-capacity" | "100"
> CONFIG GET BF.BLOOM-EXPANSION
< %1 | "BF.BLOOM-EXPANSION" | "2"
> CONFIG GET bf.bloom-memory-usage-limit
< %1 | "bf.bloom-memory-usage-limit" | "134217728"
> CONFIG GET bf.bloom-fp-rate
< %1 | "bf.bloom-fp-rate" | "0.01"
> CONFIG GET bf.bloom-tightening-ratio
< %1 | "bf.bloom-tightening-ratio" | "0.5"
> CONFIG GET bf.bloom-use-random-seed
< %1 | "bf.bloom-use-random-seed" | "yes"
> CONFIG GET bf.bloom-defrag-enabled
< %1 | "bf.bloom-defrag-enabled" | "yes"
> CONFIG GET bf.nope*
< %0

> CONFIG SET bf.bloom-capacity 500
< +OK
> CONFIG GET bf.bloom-capacity
< %1 | "bf.bloom-capacity" | "500"
> BF.ADD a x
< :1
> BF.INFO a CAPACITY
< :500
> CONFIG SET bf.bloom-capacity 0
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-capacity') - argument must be between 1 and 9223372036854775807 inclusive
> CONFIG SET bf.bloom-capacity -5
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-capacity') - argument must be between 1 and 9223372036854775807 inclusive
> CONFIG SET bf.bloom-capacity x
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-capacity') - argument couldn't be parsed into an integer
> CONFIG SET bf.bloom-capacity 9223372036854775808
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-capacity') - argument couldn't be parsed into an integer
> CONFIG SET bf.bloom-capacity 1.5
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-capacity') - argument couldn't be parsed into an integer
> CONFIG GET bf.bloom-capacity
< %1 | "bf.bloom-capacity" | "500"

> CONFIG SET bf.bloom-expansion 0
< +OK
> BF.ADD b x
< :1
> BF.INFO b EXPANSION
< null
> CONFIG SET bf.bloom-expansion 4294967296
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-expansion') - argument must be between 0 and 4294967295 inclusive
> CONFIG SET bf.bloom-expansion x
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-expansion') - argument couldn't be parsed into an integer
> CONFIG SET bf.bloom-expansion 2
< +OK

> CONFIG SET bf.bloom-fp-rate 0.1
< +OK
> CONFIG GET bf.bloom-fp-rate
< %1 | "bf.bloom-fp-rate" | "0.1"
> BF.ADD c x
< :1
> BF.INFO c ERROR
< ,0.1
> CONFIG SET bf.bloom-fp-rate 1e-3
< +OK
> CONFIG GET bf.bloom-fp-rate
< %1 | "bf.bloom-fp-rate" | "1e-3"
> CONFIG SET bf.bloom-fp-rate 0
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-fp-rate') - ERR (0 < error rate range < 1)
> CONFIG SET bf.bloom-fp-rate 1
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-fp-rate') - ERR (0 < error rate range < 1)
> CONFIG SET bf.bloom-fp-rate x
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-fp-rate') - Invalid floating-point value
> CONFIG GET bf.bloom-fp-rate
< %1 | "bf.bloom-fp-rate" | "1e-3"

> CONFIG SET bf.bloom-tightening-ratio 0.75
< +OK
> CONFIG SET bf.bloom-tightening-ratio 1
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-tightening-ratio') - ERR (0 < tightening ratio range < 1)
> CONFIG SET bf.bloom-tightening-ratio ""
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-tightening-ratio') - Invalid floating-point value
> BF.ADD d x
< :1
> BF.INFO d TIGHTENING
< ,0.75

> CONFIG SET bf.bloom-use-random-seed no
< +OK
> CONFIG GET bf.bloom-use-random-seed
< %1 | "bf.bloom-use-random-seed" | "no"
> CONFIG SET bf.bloom-use-random-seed false
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-use-random-seed') - argument must be 'yes' or 'no'

# Units are an extension: valkey-bloom takes bytes only.
> CONFIG SET bf.bloom-memory-usage-limit 256mb
< +OK
> CONFIG GET bf.bloom-memory-usage-limit
< %1 | "bf.bloom-memory-usage-limit" | "268435456"
> CONFIG SET bf.bloom-memory-usage-limit 1k
< +OK
> CONFIG GET bf.bloom-memory-usage-limit
< %1 | "bf.bloom-memory-usage-limit" | "1000"
> CONFIG SET bf.bloom-memory-usage-limit 268435456
< +OK
> CONFIG GET bf.bloom-memory-usage-limit
< %1 | "bf.bloom-memory-usage-limit" | "268435456"
> CONFIG SET bf.bloom-memory-usage-limit x
~ -ERR CONFIG SET failed \(possibly related to argument 'bf\.bloom-memory-usage-limit'\) - argument .*
> CONFIG SET bf.bloom-memory-usage-limit -1
~ -ERR CONFIG SET failed \(possibly related to argument 'bf\.bloom-memory-usage-limit'\) - argument .*
> CONFIG GET bf.bloom-memory-usage-limit
< %1 | "bf.bloom-memory-usage-limit" | "268435456"

# It needs activedefrag too.
> CONFIG SET bf.bloom-defrag-enabled no
< +OK
> CONFIG GET bf.bloom-defrag-enabled
< %1 | "bf.bloom-defrag-enabled" | "no"
> CONFIG SET bf.bloom-defrag-enabled yes
< +OK
> CONFIG GET activedefrag
< %1 | "activedefrag" | "yes"
> CONFIG SET active-defrag-cycle-max 100
~ -ERR CONFIG SET failed \(possibly related to argument 'active-defrag-cycle-max'\) - .+

# All or nothing.
> CONFIG SET bf.bloom-capacity 7 bf.bloom-fp-rate 2
< -ERR CONFIG SET failed (possibly related to argument 'bf.bloom-fp-rate') - ERR (0 < error rate range < 1)
> CONFIG GET bf.bloom-capacity
< %1 | "bf.bloom-capacity" | "500"
> CONFIG SET bf.bloom-capacity 7 bf.bloom-fp-rate 0.2
< +OK
> CONFIG GET bf.bloom-capacity
< %1 | "bf.bloom-capacity" | "7"
> CONFIG SET threads 2
< -ERR CONFIG SET failed (possibly related to argument 'threads') - can't set immutable config
