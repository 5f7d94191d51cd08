# SPDX-License-Identifier: BSD-3-Clause
#
# BF.EXISTS key item.
> BF.EXISTS missing a
< :0
> EXISTS missing
< :0
> BF.ADD k a
< :1
> BF.EXISTS k a
< :1
> bf.exists k b
< :0
> BF.EXISTS k ""
< :0
> BF.EXISTS
< -ERR wrong number of arguments for 'BF.EXISTS' command
> BF.EXISTS k
< -ERR wrong number of arguments for 'BF.EXISTS' command
> BF.EXISTS k a b
< -ERR wrong number of arguments for 'BF.EXISTS' command
