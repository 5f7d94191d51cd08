# SPDX-License-Identifier: BSD-3-Clause
#
# BF.DEL key item: 1 gone, 0 was not there, -1 is there still.
> BF.DEL
< -ERR wrong number of arguments for 'BF.DEL' command
> BF.DEL k a b
< -ERR wrong number of arguments for 'BF.DEL' command
> BF.DEL k a
< :0
> EXISTS k
< :0
> BF.RESERVE k 0.01 100 DELETABLE
< +OK
> BF.MADD k a b c
< *3 | :1 | :1 | :1
> BF.DEL k a
< :1
> BF.DEL k a
< :0
> bf.del k x
< :0
> BF.MEXISTS k a b c
< *3 | :0 | :1 | :1
> BF.CARD k
< :2

# Added twice, so its bits may be another item's.
> BF.ADD k b
< :0
> BF.DEL k b
< :-1
> BF.EXISTS k b
< :1
> BF.CARD k
< :2
> OBJECT ENCODING k
< "deletable"

# Not of every filter.
> BF.ADD plain a
< :1
> BF.DEL plain a
< -ERR items of this filter cannot be deleted: it was made without DELETABLE
> CONFIG SET bf.missing-key error
< +OK
> BF.DEL none a
< -ERR not found
> CONFIG SET bf.missing-key zero
< +OK

# Integers in every protocol and dialect.
> BF.DEL k c
< :1
> CONFIG SET dialect redis
< +OK
> BF.DEL k c
< :0
> BF.DEL none c
< :0
> BF.DEL
< -ERR wrong number of arguments for 'bf.del' command

# How they are made.
> CONFIG SET dialect valkey
< +OK
> BF.PLAN 0.01 1000000 DELETABLE 4
~ .*"kind" . "deletable" . "capacity" . :1000000 .*"bytes" . :1595032 .*
> BF.STATS k
~ .*"kind" . "deletable" . "items" . :1 .*
> BF.INFO k
~ .*Capacity"* . :100 .*
> BF.RESERVE r 0.01 100 DELETABLE 3
< -ERR the region of DELETABLE must be 1, 2, 4 or 8
> BF.INSERT r DELETABLE 8 NONSCALING ITEMS a
< *1 | :1
> BF.DEL r a
< :1
> BF.INSERT r DELETABLE DELETABLE ITEMS a
< -ERR syntax error
> CONFIG SET bloom-layout valkeybloom
< +OK
> BF.RESERVE s 0.01 100 DELETABLE
< -ERR DELETABLE and AGEING need the option bloom-layout to be native
> BF.PLAN 0.01 100 DELETABLE
< -ERR DELETABLE and AGEING need the option bloom-layout to be native
