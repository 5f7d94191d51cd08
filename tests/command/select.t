# SPDX-License-Identifier: BSD-3-Clause
#
# SELECT index.
@oracle
@server --databases 16
@key k
> SELECT 1
< +OK
> DBSIZE
< :0
> SELECT 15
< +OK
> SELECT 0
< +OK
> DBSIZE
< :1
> SELECT 16
< -ERR DB index is out of range
> SELECT -1
< -ERR DB index is out of range
> SELECT x
< -ERR value is not an integer or out of range
> SELECT ""
< -ERR value is not an integer or out of range
> SELECT 99999999999999999999
< -ERR value is not an integer or out of range
> SELECT 01
< -ERR value is not an integer or out of range
> SELECT
< -ERR wrong number of arguments for 'select' command
> SELECT 0 1
< -ERR wrong number of arguments for 'select' command
> EXISTS k
< :1
