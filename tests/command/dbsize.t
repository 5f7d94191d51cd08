# SPDX-License-Identifier: BSD-3-Clause
#
# DBSIZE.
@oracle
> DBSIZE
< :0
@key a b
> DBSIZE
< :2
> DBSIZE x
< -ERR wrong number of arguments for 'dbsize' command
> DEL a
< :1
> DBSIZE
< :1
> SELECT 1
< +OK
> DBSIZE
< :0
