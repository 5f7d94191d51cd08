# SPDX-License-Identifier: BSD-3-Clause
#
# PEXPIRE key when [NX|XX|GT|LT].
@oracle
@key k
> PEXPIRE missing 100000
< :0
> PEXPIRE k 100000
< :1
> PEXPIRE k
< -ERR wrong number of arguments for 'pexpire' command
> PEXPIRE
< -ERR wrong number of arguments for 'pexpire' command
> PEXPIRE k x
< -ERR value is not an integer or out of range
> PEXPIRE k ""
< -ERR value is not an integer or out of range
> PEXPIRE k 1.5
< -ERR value is not an integer or out of range
> PEXPIRE k 99999999999999999999
< -ERR value is not an integer or out of range
> PEXPIRE k 9223372036854775807
< -ERR invalid expire time in 'pexpire' command
> PEXPIRE k -9223372036854775808
< :1
> EXISTS k
< :0
@key k
> PERSIST k
< :0
> PEXPIRE k 100000 NX
< :1
> PEXPIRE k 100000 nx
< :0
> PEXPIRE k 1000000 GT
< :1
> PEXPIRE k 100000 GT
< :0
> PEXPIRE k 100000 LT
< :1
> PEXPIRE k 1000000 LT
< :0
> PEXPIRE k 100000 XX
< :1
> PERSIST k
< :1
> PEXPIRE k 100000 XX
< :0
> PEXPIRE k 100000 GT
< :0
> PEXPIRE k 100000 LT
< :1
> PEXPIRE k 100000 NX XX
< -ERR NX and XX, GT or LT options at the same time are not compatible
> PEXPIRE k 100000 NX GT
< -ERR NX and XX, GT or LT options at the same time are not compatible
> PEXPIRE k 100000 GT LT
< -ERR GT and LT options at the same time are not compatible
> PEXPIRE k 1000000 XX GT
< :1
> PEXPIRE k 100000 LT LT
< :1
> PEXPIRE k 100000 NOPE
< -ERR Unsupported option NOPE
> PEXPIRE k 100000 NX NOPE
< -ERR Unsupported option NOPE
> PEXPIRE k x NOPE
< -ERR Unsupported option NOPE
> PEXPIRE missing 100000 NX
< :0
# In the past: the key is gone at once.
> PEXPIRE k -1
< :1
> EXISTS k
< :0
> TTL k
< :-2
@key k
> PEXPIRE k 0
< :1
> EXISTS k
< :0
