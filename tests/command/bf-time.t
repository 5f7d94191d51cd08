# SPDX-License-Identifier: BSD-3-Clause
#
# BF.RESERVE and BF.INSERT ... EX s | PX ms | EXAT s | PXAT ms: the time to live
# of a filter that the command creates.
> BF.RESERVE a 0.01 100 EX 1000
< +OK
> TTL a
< :1000
> BF.RESERVE a 0.01 100 EX 5
< -ERR item exists
> TTL a
< :1000
> BF.RESERVE b 0.01 100 px 1000000 EXPANSION 3
< +OK
> TTL b
< :1000
> BF.INFO b EXPANSION
< :3
> BF.RESERVE c 0.01 100 NONSCALING EXAT 99999999999
< +OK
> EXPIRETIME c
< :99999999999
> BF.RESERVE d 0.01 100 PXAT 99999999999999
< +OK
> PEXPIRETIME d
< :99999999999999

# BF.INSERT: only when it creates.
> BF.INSERT e EX 1000 CAPACITY 5 ITEMS x y
< *2 | :1 | :1
> TTL e
< :1000
> BF.INSERT e EX 5 ITEMS x z
< *2 | :0 | :1
> TTL e
< :1000
> BF.INSERT f ITEMS EX 5
< *2 | :1 | :1
> TTL f
< :-1
> BF.INSERT f PX 5 ITEMS EX
< *1 | :0
> TTL f
< :-1

# A time that is past: the filter is made, and has expired, as with SET.
> BF.RESERVE past 0.01 100 EXAT 1
< +OK
> EXISTS past
< :0
> BF.INSERT past PXAT 1 ITEMS x y
< *2 | :1 | :1
> BF.CARD past
< :0

# The errors of SET, behind those of rate and capacity.
> BF.RESERVE g x 100 EX x
< -ERR bad error rate
> BF.RESERVE g 0.01 x EX x
< -ERR bad capacity
> BF.RESERVE g 0.01 100 EX x
< -ERR value is not an integer or out of range
> BF.RESERVE g 0.01 100 EX 0
< -ERR invalid expire time in 'BF.RESERVE' command
> BF.RESERVE g 0.01 100 PX 9223372036854775807
< -ERR invalid expire time in 'BF.RESERVE' command
> BF.INSERT g EXAT -5 ITEMS x
< -ERR invalid expire time in 'BF.INSERT' command
> BF.RESERVE g 0.01 100 EX
< -ERR syntax error
> BF.RESERVE g 0.01 100 EX 5 PX 5
< -ERR syntax error
> BF.INSERT g EX 5 EXAT 5 ITEMS x
< -ERR syntax error
> BF.RESERVE g 0.01 100 junk EX 5
< -ERROR
> EXISTS g
< :0

# In dialect redis, where EX was EXPANSION and BF.RESERVE ignores other words.
> CONFIG SET dialect redis
< +OK
> BF.RESERVE h 0.01 100 EXPANSION 4 x EX 1000
< +OK
> TTL h
< :1000
> BF.INFO h EXPANSION
2< *1 | :4
3< %1 | +Expansion rate | :4
> BF.INSERT i e 3 EX 1000 ITEMS x
2< *1 | :1
3< *1 | #t
> TTL i
< :1000
> BF.INFO i EXPANSION
2< *1 | :3
3< %1 | +Expansion rate | :3
> BF.RESERVE j 0.01 100 EXPANSION 4 x EX
< -ERR syntax error
> BF.RESERVE j 0.01 100 EX 5 a b c d
< -ERR wrong number of arguments for 'bf.reserve' command
> BF.RESERVE j 0.01 100 EX 0
< -ERR invalid expire time in 'BF.RESERVE' command
