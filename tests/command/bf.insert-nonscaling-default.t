# SPDX-License-Identifier: BSD-3-Clause
#
# BF.INSERT when the default is a nonscaling filter (bf.bloom-expansion 0).
@server --bf.bloom-expansion 0 --bf.bloom-capacity 2 --bf.bloom-fp-rate 1e-9
> BF.INSERT k VALIDATESCALETO 5
< -ERR cannot use NONSCALING and VALIDATESCALETO options together
> BF.INSERT k VALIDATESCALETO 5 EXPANSION 2
< *0
> BF.ADD d a
< :1
> BF.INFO d EXPANSION
< null
> BF.MADD d b c
< *2 | :1 | -ERR non scaling filter is full
> BF.RESERVE r 0.01 10
< +OK
> BF.INFO r EXPANSION
< null
> BF.MADD new a b c d
< *3 | :1 | :1 | -ERR non scaling filter is full
