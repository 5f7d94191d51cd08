# SPDX-License-Identifier: BSD-3-Clause
#
# SCAN cursor [MATCH pattern] [COUNT n] [TYPE name]: errors, and the whole in
# one call; its guarantees: tests/scenario/test_scan.py.
@oracle
> SCAN
< -ERR wrong number of arguments for 'scan' command
> SCAN x
< -ERR invalid cursor
> SCAN " 0"
< -ERR invalid cursor
> SCAN 0 MATCH
< -ERR syntax error
> SCAN 0 COUNT
< -ERR syntax error
> SCAN 0 COUNT x
< -ERR value is not an integer or out of range
> SCAN 0 COUNT 0
< -ERR syntax error
> SCAN 0 COUNT -5
< -ERR syntax error
> SCAN 0 NOPE
< -ERR syntax error
> SCAN 0 NOPE x
< -ERR syntax error
> SCAN 0 TYPE
< -ERR syntax error
> SCAN 0 COUNT 100000
< *2 | "0" | *0
@key k
> SCAN 0 COUNT 100000
< *2 | "0" | *1 | "k"
> scan 0 match k count 100000
< *2 | "0" | *1 | "k"
> SCAN 0 MATCH x* COUNT 100000
< *2 | "0" | *0
> SCAN 0 COUNT 100000 TYPE list
< *2 | "0" | *0
>! SCAN 0 COUNT 100000 TYPE bloomfltr
< *2 | "0" | *1 | "k"
