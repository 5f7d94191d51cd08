# SPDX-License-Identifier: BSD-3-Clause
#
# PEXPIRETIME key.
@oracle
@key k
> PEXPIRETIME missing
< :-2
> PEXPIRETIME k
< :-1
> PEXPIREAT k 4000000000123
< :1
> PEXPIRETIME k
< :4000000000123
> EXPIREAT k 4000000000
< :1
> PEXPIRETIME k
< :4000000000000
> PEXPIRETIME
< -ERR wrong number of arguments for 'pexpiretime' command
> PEXPIRETIME k x
< -ERR wrong number of arguments for 'pexpiretime' command
