# SPDX-License-Identifier: BSD-3-Clause
#
# PERSIST key.
@oracle
@key k
> PERSIST missing
< :0
> PERSIST k
< :0
> EXPIRE k 1000
< :1
> PERSIST k
< :1
> PERSIST k
< :0
> PERSIST
< -ERR wrong number of arguments for 'persist' command
> PERSIST k x
< -ERR wrong number of arguments for 'persist' command
