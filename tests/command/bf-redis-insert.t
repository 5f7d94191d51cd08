# SPDX-License-Identifier: BSD-3-Clause
#
# BF.INSERT in dialect redis: words are told apart by single letters, a value
# that is wrong has no ERR in front, and the options of a key that is there are
# read and forgotten.
@server --dialect redis
> BF.INSERT k
< -ERR wrong number of arguments for 'bf.insert' command
> BF.INSERT k ITEMS
< -ERR wrong number of arguments for 'bf.insert' command
> BF.INSERT k CAPACITY 10
< -ERR wrong number of arguments for 'bf.insert' command
> BF.INSERT k NX ITEMS
< -ERR wrong number of arguments for 'bf.insert' command
> BF.INSERT k ERROR 0.1 CAPACITY
< -ERR wrong number of arguments for 'bf.insert' command
> BF.INSERT k CAPACITY x
< -Bad capacity
> BF.INSERT k CAPACITY 0 ITEMS a
< -Bad capacity
> BF.INSERT k CAPACITY 1073741825 ITEMS a
< -Bad capacity
> BF.INSERT k CAPACITY 010 ITEMS a
< -Bad capacity
> BF.INSERT k ERROR 0 ITEMS a
< -Bad error rate
> BF.INSERT k ERROR nan ITEMS a
< -Bad error rate
> BF.INSERT k EXPANSION -1 ITEMS a
< -Bad expansion
> BF.INSERT k EXPANSION 32769 ITEMS a
< -Bad expansion
> BF.INSERT k FOO ITEMS a
< -Unknown argument received
> BF.INSERT k "" ITEMS a
< -Unknown argument received
> BF.INSERT k TIGHTENING 0.5 ITEMS a
< -Unknown argument received
> BF.INSERT k SEED 01234567890123456789012345678901 ITEMS a
< -Unknown argument received
> BF.INSERT k NOCREATE ITEMS a
< -ERR not found
> BF.INSERT k NOCREATE CAPACITY 0 ITEMS a
< -Bad capacity
> EXISTS k
< :0

> BF.INSERT k ITEMS a b a
2< *3 | :1 | :1 | :0
3< *3 | #t | #t | #f
> BF.INSERT k items ITEMS items
2< *2 | :1 | :1
3< *2 | #t | #t
> BF.INSERT k NOCREATE CAPACITY 7 ERROR 0.9 EXPANSION 0 NONSCALING ITEMS a
2< *1 | :0
3< *1 | #f
> BF.INFO k
2< *10 | +Capacity | :100 | +Size | :264 | +Number of filters | :1
2< | +Number of items inserted | :4 | +Expansion rate | :2
3< %5 | +Capacity | :100 | +Size | :264 | +Number of filters | :1
3< | +Number of items inserted | :4 | +Expansion rate | :2

# i, er, e, c, n with a c in the third place, n.
> BF.INSERT w CAP 7 ER 0.9 E 3 i x
2< *1 | :1
3< *1 | #t
> BF.DEBUG w
< *2 | "size:1 layout:native" | "bytes:64 bits:512 hashes:8 hashwidth:64 capacity:7 size:1 ratio:0.125"
> BF.INFO w EXPANSION
2< *1 | :3
3< %1 | +Expansion rate | :3
> BF.INSERT v NX ITEM x
2< *1 | :1
3< *1 | #t
> BF.INFO v EXPANSION
2< *1 | null
3< %1 | +Expansion rate | null
> BF.INSERT u NoC i x
< -ERR not found

# NONSCALING wins, wherever it stands; the last of equal words wins.
> BF.INSERT t NONSCALING EXPANSION 4 CAPACITY 10 CAPACITY 1 ITEMS a b
2< *2 | :1 | -ERR non scaling filter is full
3< *2 | #t | -ERR non scaling filter is full
> BF.INSERT t ITEMS a c d
2< *2 | :0 | -ERR non scaling filter is full
3< *2 | #f | -ERR non scaling filter is full
> BF.CARD t
< :1
> BF.INSERT s EXPANSION 0 ITEMS a
2< *1 | :1
3< *1 | #t
> BF.INFO s EXPANSION
2< *1 | null
3< %1 | +Expansion rate | null
