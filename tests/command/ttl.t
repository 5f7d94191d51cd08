# SPDX-License-Identifier: BSD-3-Clause
#
# TTL key.
@oracle
@key k
> TTL missing
< :-2
> TTL k
< :-1
> EXPIRE k 1000
< :1
> TTL k
~ :(1000|999)
> EXPIREAT k 4000000000
< :1
> TTL k
< :?
> PERSIST k
< :1
> TTL k
< :-1
> TTL
< -ERR wrong number of arguments for 'ttl' command
> TTL k x
< -ERR wrong number of arguments for 'ttl' command
> PEXPIRE k 1
< :1
@sleep_ms 30
> TTL k
< :-2
> EXISTS k
< :0
