# SPDX-License-Identifier: BSD-3-Clause
#
# BF.MDEL key item...: an integer for each, as BF.DEL.
> BF.MDEL k
< -ERR wrong number of arguments for 'BF.MDEL' command
> BF.MDEL k a b
< *2 | :0 | :0
> BF.INSERT k CAPACITY 100 DELETABLE ITEMS a b c d a
< *5 | :1 | :1 | :1 | :1 | :0
> BF.MDEL k b x b a
< *4 | :1 | :0 | :0 | :-1
> BF.MEXISTS k a b c d
< *4 | :1 | :0 | :1 | :1
> BF.MDEL k PLACED 0:8 c
< *3 | :0 | :0 | :1
> BF.CARD k
< :2
> BF.ADD plain a
< :1
> BF.MDEL plain a b
< -ERR items of this filter cannot be deleted: it was made without DELETABLE
> CONFIG SET bf.max-items-per-command 2
< +OK
> BF.MDEL k a b c
< -ERR too many items in one command (bf.max-items-per-command)
> BF.MDEL k c d
< *2 | :0 | :1
