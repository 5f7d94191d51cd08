# SPDX-License-Identifier: BSD-3-Clause
#
# EXPIREAT key when [NX|XX|GT|LT].
@oracle
@key k
> EXPIREAT missing 4000000000
< :0
> EXPIREAT k 4000000000
< :1
> EXPIREAT k
< -ERR wrong number of arguments for 'expireat' command
> EXPIREAT
< -ERR wrong number of arguments for 'expireat' command
> EXPIREAT k x
< -ERR value is not an integer or out of range
> EXPIREAT k ""
< -ERR value is not an integer or out of range
> EXPIREAT k 1.5
< -ERR value is not an integer or out of range
> EXPIREAT k 99999999999999999999
< -ERR value is not an integer or out of range
> EXPIREAT k 9223372036854775807
< -ERR invalid expire time in 'expireat' command
> EXPIREAT k -9223372036854775808
< -ERR invalid expire time in 'expireat' command
> EXISTS k
< :1
@key k
> PERSIST k
< :0
> EXPIREAT k 4000000000 NX
< :1
> EXPIREAT k 4000000000 nx
< :0
> EXPIREAT k 40000000000 GT
< :1
> EXPIREAT k 4000000000 GT
< :0
> EXPIREAT k 4000000000 LT
< :1
> EXPIREAT k 40000000000 LT
< :0
> EXPIREAT k 4000000000 XX
< :1
> PERSIST k
< :1
> EXPIREAT k 4000000000 XX
< :0
> EXPIREAT k 4000000000 GT
< :0
> EXPIREAT k 4000000000 LT
< :1
> EXPIREAT k 4000000000 NX XX
< -ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIREAT k 4000000000 NX GT
< -ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIREAT k 4000000000 GT LT
< -ERR GT and LT options at the same time are not compatible
> EXPIREAT k 40000000000 XX GT
< :1
> EXPIREAT k 4000000000 LT LT
< :1
> EXPIREAT k 4000000000 NOPE
< -ERR Unsupported option NOPE
> EXPIREAT k 4000000000 NX NOPE
< -ERR Unsupported option NOPE
> EXPIREAT k x NOPE
< -ERR Unsupported option NOPE
> EXPIREAT missing 4000000000 NX
< :0
# In the past: the key is gone at once.
> EXPIREAT k -1
< :1
> EXISTS k
< :0
> TTL k
< :-2
@key k
> EXPIREAT k 0
< :1
> EXISTS k
< :0
