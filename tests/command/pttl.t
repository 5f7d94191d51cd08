# SPDX-License-Identifier: BSD-3-Clause
#
# PTTL key.
@oracle
@key k
> PTTL missing
< :-2
> PTTL k
< :-1
> PEXPIRE k 100000
< :1
> PTTL k
~ :(100000|99\d\d\d)
> PTTL
< -ERR wrong number of arguments for 'pttl' command
> PTTL k x
< -ERR wrong number of arguments for 'pttl' command
> PEXPIRE k 1
< :1
@sleep_ms 30
> PTTL k
< :-2
