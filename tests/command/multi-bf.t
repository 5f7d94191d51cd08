# SPDX-License-Identifier: BSD-3-Clause
#
# BF.* inside MULTI. The real arities refuse while queueing: an intended
# difference from valkey-bloom.
> MULTI
< +OK
> BF.ADD k a
< +QUEUED
> BF.MADD k a b
< +QUEUED
> BF.EXISTS k a
< +QUEUED
> BF.INSERT k ITEMS c
< +QUEUED
> BF.RESERVE k 0.01 100
< +QUEUED
> BF.INFO k ITEMS
< +QUEUED
> BF.CARD k
< +QUEUED
> DEL k
< +QUEUED
> BF.CARD k
< +QUEUED
> EXEC
< *9 | :1 | *2 | :0 | :1 | :1 | *1 | :1 | -ERR item exists | :3 | :3 | :1 | :0
> MULTI
< +OK
> BF.ADD k
< -ERR wrong number of arguments for 'BF.ADD' command
> BF.ADD k a
< +QUEUED
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> EXISTS k
< :0
# A full filter inside: the array in the array carries the error.
> BF.RESERVE full 1e-9 1 NONSCALING
< +OK
> MULTI
< +OK
> BF.MADD full a b c
< +QUEUED
> BF.ADD full b
< +QUEUED
> EXEC
< *2 | *2 | :1 | -ERR non scaling filter is full | -ERR non scaling filter is full
