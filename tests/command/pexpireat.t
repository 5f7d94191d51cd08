# SPDX-License-Identifier: BSD-3-Clause
#
# PEXPIREAT key when [NX|XX|GT|LT].
@oracle
@key k
> PEXPIREAT missing 4000000000000
< :0
> PEXPIREAT k 4000000000000
< :1
> PEXPIREAT k
< -ERR wrong number of arguments for 'pexpireat' command
> PEXPIREAT
< -ERR wrong number of arguments for 'pexpireat' command
> PEXPIREAT k x
< -ERR value is not an integer or out of range
> PEXPIREAT k ""
< -ERR value is not an integer or out of range
> PEXPIREAT k 1.5
< -ERR value is not an integer or out of range
> PEXPIREAT k 99999999999999999999
< -ERR value is not an integer or out of range
> PEXPIREAT k 9223372036854775807
< :1
> PEXPIREAT k -9223372036854775808
< :1
> EXISTS k
< :0
@key k
> PERSIST k
< :0
> PEXPIREAT k 4000000000000 NX
< :1
> PEXPIREAT k 4000000000000 nx
< :0
> PEXPIREAT k 40000000000000 GT
< :1
> PEXPIREAT k 4000000000000 GT
< :0
> PEXPIREAT k 4000000000000 LT
< :1
> PEXPIREAT k 40000000000000 LT
< :0
> PEXPIREAT k 4000000000000 XX
< :1
> PERSIST k
< :1
> PEXPIREAT k 4000000000000 XX
< :0
> PEXPIREAT k 4000000000000 GT
< :0
> PEXPIREAT k 4000000000000 LT
< :1
> PEXPIREAT k 4000000000000 NX XX
< -ERR NX and XX, GT or LT options at the same time are not compatible
> PEXPIREAT k 4000000000000 NX GT
< -ERR NX and XX, GT or LT options at the same time are not compatible
> PEXPIREAT k 4000000000000 GT LT
< -ERR GT and LT options at the same time are not compatible
> PEXPIREAT k 40000000000000 XX GT
< :1
> PEXPIREAT k 4000000000000 LT LT
< :1
> PEXPIREAT k 4000000000000 NOPE
< -ERR Unsupported option NOPE
> PEXPIREAT k 4000000000000 NX NOPE
< -ERR Unsupported option NOPE
> PEXPIREAT k x NOPE
< -ERR Unsupported option NOPE
> PEXPIREAT missing 4000000000000 NX
< :0
# In the past: the key is gone at once.
> PEXPIREAT k -1
< :1
> EXISTS k
< :0
> TTL k
< :-2
@key k
> PEXPIREAT k 0
< :1
> EXISTS k
< :0
