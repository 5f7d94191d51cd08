# SPDX-License-Identifier: BSD-3-Clause
#
# EXPIRETIME key.
@oracle
@key k
> EXPIRETIME missing
< :-2
> EXPIRETIME k
< :-1
> EXPIREAT k 4000000000
< :1
> EXPIRETIME k
< :4000000000
> PEXPIREAT k 4000000000600
< :1
> EXPIRETIME k
< :4000000001
> EXPIRETIME
< -ERR wrong number of arguments for 'expiretime' command
> EXPIRETIME k x
< -ERR wrong number of arguments for 'expiretime' command
