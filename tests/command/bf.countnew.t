# SPDX-License-Identifier: BSD-3-Clause
#
# BF.COUNTNEW key item [item ...]: how many distinct items of these the filter
# does not have. Nothing is added.
> BF.COUNTNEW
< -ERR wrong number of arguments for 'BF.COUNTNEW' command
> BF.COUNTNEW k
< -ERR wrong number of arguments for 'BF.COUNTNEW' command
> BF.COUNTNEW missing a b a "" "" \x00 B
< :5
> EXISTS missing
< :0
> BF.MADD k a b
< *2 | :1 | :1
> BF.COUNTNEW k a b a
< :0
> BF.COUNTNEW k a c c d b c
< :2
> BF.COUNTNEW k c
< :1
> BF.CARD k
< :2
> MULTI
< +OK
> BF.COUNTNEW k c d
< +QUEUED
> BF.ADD k c
< +QUEUED
> BF.COUNTNEW k c d
< +QUEUED
> EXEC
< *3 | :2 | :1 | :1
> CONFIG SET dialect redis
< +OK
> BF.COUNTNEW k c d e
< :2
> BF.COUNTNEW k
< -ERR wrong number of arguments for 'bf.countnew' command
