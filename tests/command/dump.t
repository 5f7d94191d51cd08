# SPDX-License-Identifier: BSD-3-Clause
#
# DUMP key. What the bytes say: tests/unit/core and tests/scenario/test_dump.py.
@oracle
> DUMP
< -ERR wrong number of arguments for 'dump' command
> DUMP a b
< -ERR wrong number of arguments for 'dump' command
> DUMP missing
< null
>! BF.INSERT k CAPACITY 100 ITEMS a b
< *2 | :1 | :1
>! DUMP k
~ "BLMY\\x01\\x00\\x01\\x00.*"
> MULTI
< +OK
> DUMP missing
< +QUEUED
> EXEC
< *1 | null
