# SPDX-License-Identifier: BSD-3-Clause
#
# BF.DEBUG key: RedisBloom's, in both dialects. bytes and bits are those of a
# layer's lines, hashes the bits that an item sets, capacity and size its items,
# ratio the error rate that it was made for.
> BF.DEBUG
< -ERR wrong number of arguments for 'BF.DEBUG' command
> BF.DEBUG k x
< -ERR wrong number of arguments for 'BF.DEBUG' command
> BF.DEBUG missing
< -ERR not found
> BF.MADD k a b c
< *3 | :1 | :1 | :1
> BF.DEBUG k
< *2 | "size:3 layout:native" | "bytes:128 bits:1024 hashes:8 hashwidth:64 capacity:100 size:3 ratio:0.01"
> BF.INSERT chain CAPACITY 2 ERROR 1e-5 SEED 01234567890123456789012345678901 ITEMS a b c d e f g
< *7 | :1 | :1 | :1 | :1 | :1 | :1 | :1
> BF.DEBUG chain
< *4 | "size:7 layout:native" | "bytes:128 bits:1024 hashes:16 hashwidth:64 capacity:2 size:2 ratio:1e-05"
< | "bytes:128 bits:1024 hashes:16 hashwidth:64 capacity:4 size:4 ratio:5e-06"
< | "bytes:128 bits:1024 hashes:16 hashwidth:64 capacity:8 size:1 ratio:2.5e-06"
> CONFIG SET dialect redis
< +OK
> BF.DEBUG
< -ERR wrong number of arguments for 'bf.debug' command
> BF.DEBUG k
< *2 | "size:3 layout:native" | "bytes:128 bits:1024 hashes:8 hashwidth:64 capacity:100 size:3 ratio:0.01"
