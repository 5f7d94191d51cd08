# SPDX-License-Identifier: BSD-3-Clause
#
# HASH plain|keyed and bf.hash: which hash a new filter has. Both dialects have the
# word, which does not count in the seven that a BF.RESERVE may have.
> BF.RESERVE k 0.01 100 HASH keyed
< +OK
> BF.MADD k a b c
< *3 | :1 | :1 | :1
> BF.MEXISTS k a b c d
< *4 | :1 | :1 | :1 | :0
> BF.DEBUG k
~ .*"size:3 layout:native hash:keyed".*
> BF.STATS k
~ .*"hash" \| "keyed" \| "layers".*
> OBJECT ENCODING k
< "native"
> BF.RESERVE p 0.01 100 HASH plain
< +OK
> BF.DEBUG p
~ .*"size:0 layout:native".*
> BF.INSERT i CAPACITY 10 hash KEYED NONSCALING EX 100 ITEMS a
< *1 | :1
> BF.DEBUG i
~ .*hash:keyed.*

# What is wrong.
> BF.RESERVE x 0.01 100 HASH
< -ERR syntax error
> BF.RESERVE x 0.01 100 HASH sip
< -ERR HASH must be plain or keyed
> BF.RESERVE x 0.01 100 HASH keyed HASH plain
< -ERR syntax error
> BF.INSERT x HASH keyed FINGERPRINT 0123456789abcdef ITEMS a
< -ERR unknown argument received
> EXISTS x
< :0

# With other properties; nothing of it is in a projection but the bytes.
> BF.RESERVE d 0.01 100 EX 100 HASH keyed DELETABLE 4 EXPANSION 2
< +OK
> BF.MADD d a b
< *2 | :1 | :1
> BF.DEL d a
< :1
> BF.MEXISTS d a b
< *2 | :0 | :1
> BF.DEBUG d
~ .*layout:deletable hash:keyed.*
> BF.PLAN 0.01 100 HASH keyed
~ .*"capacity" \| :100 .*

# Only filters with equal hashes are merged; copies keep theirs.
> COPY k copy
< :1
> BF.DEBUG copy
~ .*hash:keyed.*
> BF.MERGE union k copy
< +OK
> BF.DEBUG union
~ .*hash:keyed.*
> BF.MERGE union p
< -ERR cannot merge filters of different hashes
> BF.RESET k
< +OK
> BF.DEBUG k
~ .*"size:0 layout:native hash:keyed".*
> BF.WHICH a k copy p d
< *4 | :0 | :1 | :0 | :0
> BF.COUNTNEW copy a b z
< :1

# The option.
> CONFIG SET bf.hash keyed
< +OK
> BF.ADD auto a
< :1
> BF.DEBUG auto
~ .*hash:keyed.*
> BF.RESERVE auto2 0.01 100 HASH plain
< +OK
> BF.DEBUG auto2
~ .*"size:0 layout:native".*
> CONFIG SET bf.hash other
~ -ERR.*

# The modules' layouts have hashes of their own.
> CONFIG SET bloom-layout valkeybloom
< +OK
> BF.ADD foreign a
< -ERR keyed filters need the option bloom-layout to be native (bf.hash, HASH)
> BF.RESERVE foreign 0.01 100 HASH keyed
< -ERR keyed filters need the option bloom-layout to be native (bf.hash, HASH)
> BF.RESERVE foreign 0.01 100 HASH plain
< +OK
> CONFIG SET bloom-layout native
< +OK
> CONFIG SET bf.hash plain
< +OK

# The other dialect, whose words may be abbreviated: HASH matches whole.
> CONFIG SET dialect redis
< +OK
> BF.RESERVE r 0.01 100 EXPANSION 2 HASH keyed
< +OK
> BF.DEBUG r
~ .*hash:keyed.*
> BF.INSERT r2 CAPACITY 100 HASH keyed EX 100 ITEMS a b
~ \*2 \| .*
> BF.DEBUG r2
~ .*hash:keyed.*
> BF.INSERT r3 HASH sip ITEMS a
< -ERR HASH must be plain or keyed
> BF.INSERT r3 HAS keyed ITEMS a
< -Unknown argument received

# A filter of RedisBloom's layout is not made plain because it does not scale.
> CONFIG SET bloom-layout redisbloom
< +OK
> BF.RESERVE r4 0.01 100 HASH keyed EXPANSION 0
< -ERR keyed filters need the option bloom-layout to be native (bf.hash, HASH)
> BF.INSERT r4 EXPANSION 0 HASH keyed ITEMS a
< -ERR keyed filters need the option bloom-layout to be native (bf.hash, HASH)
> CONFIG SET bf.hash keyed
< +OK
> BF.RESERVE r4 0.01 100 EXPANSION 0
< -ERR keyed filters need the option bloom-layout to be native (bf.hash, HASH)
> CONFIG SET bf.bloom-expansion 0
< +OK
> BF.INSERT r4 ITEMS a
< -ERR keyed filters need the option bloom-layout to be native (bf.hash, HASH)
> BF.RESERVE r4 0.01 100 HASH plain
< +OK
