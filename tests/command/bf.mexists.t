# SPDX-License-Identifier: BSD-3-Clause
#
# BF.MEXISTS key item...
> BF.MEXISTS missing a
< *1 | :0
> BF.MEXISTS missing a b c
< *3 | :0 | :0 | :0
> EXISTS missing
< :0
> BF.MADD k a b
< *2 | :1 | :1
> BF.MEXISTS k a nope b a
< *4 | :1 | :0 | :1 | :1
> bf.mexists k "\x00"
< *1 | :0
> BF.MEXISTS
< -ERR wrong number of arguments for 'BF.MEXISTS' command
> BF.MEXISTS k
< -ERR wrong number of arguments for 'BF.MEXISTS' command
