# SPDX-License-Identifier: BSD-3-Clause
#
# BF.CARD key: items over all layers.
> BF.CARD missing
< :0
> EXISTS missing
< :0
> BF.RESERVE k 1e-9 2 EXPANSION 1
< +OK
> BF.CARD k
< :0
> BF.MADD k a b c d e a
< *6 | :1 | :1 | :1 | :1 | :1 | :0
> bf.card k
< :5
> BF.CARD
< -ERR wrong number of arguments for 'BF.CARD' command
> BF.CARD k x
< -ERR wrong number of arguments for 'BF.CARD' command
