# SPDX-License-Identifier: BSD-3-Clause
#
# EXPIRE key when [NX|XX|GT|LT].
@oracle
@key k
> EXPIRE missing 100
< :0
> EXPIRE k 100
< :1
> EXPIRE k
< -ERR wrong number of arguments for 'expire' command
> EXPIRE
< -ERR wrong number of arguments for 'expire' command
> EXPIRE k x
< -ERR value is not an integer or out of range
> EXPIRE k ""
< -ERR value is not an integer or out of range
> EXPIRE k 1.5
< -ERR value is not an integer or out of range
> EXPIRE k 99999999999999999999
< -ERR value is not an integer or out of range
> EXPIRE k 9223372036854775807
< -ERR invalid expire time in 'expire' command
> EXPIRE k -9223372036854775808
< -ERR invalid expire time in 'expire' command
> EXISTS k
< :1
@key k
> PERSIST k
< :0
> EXPIRE k 100 NX
< :1
> EXPIRE k 100 nx
< :0
> EXPIRE k 1000 GT
< :1
> EXPIRE k 100 GT
< :0
> EXPIRE k 100 LT
< :1
> EXPIRE k 1000 LT
< :0
> EXPIRE k 100 XX
< :1
> PERSIST k
< :1
> EXPIRE k 100 XX
< :0
> EXPIRE k 100 GT
< :0
> EXPIRE k 100 LT
< :1
> EXPIRE k 100 NX XX
< -ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE k 100 NX GT
< -ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE k 100 GT LT
< -ERR GT and LT options at the same time are not compatible
> EXPIRE k 1000 XX GT
< :1
> EXPIRE k 100 LT LT
< :1
> EXPIRE k 100 NOPE
< -ERR Unsupported option NOPE
> EXPIRE k 100 NX NOPE
< -ERR Unsupported option NOPE
> EXPIRE k x NOPE
< -ERR Unsupported option NOPE
> EXPIRE missing 100 NX
< :0
# In the past: the key is gone at once.
> EXPIRE k -1
< :1
> EXISTS k
< :0
> TTL k
< :-2
@key k
> EXPIRE k 0
< :1
> EXISTS k
< :0
