# SPDX-License-Identifier: BSD-3-Clause
#
# WAITAOF numlocal numreplicas timeout, as in Redis 7.2.
@server --appendonly no
>! WAITAOF 1 0
< -ERR wrong number of arguments for 'waitaof' command
>! WAITAOF x 0 0
< -ERR value is not an integer or out of range
>! WAITAOF 2 0 0
< -ERR value is out of range, value must between 0 and 1
>! WAITAOF -1 0 0
< -ERR value is out of range, value must between 0 and 1
>! WAITAOF 0 -1 0
< -ERR value is out of range, must be positive
>! WAITAOF 0 x 0
< -ERR value is out of range, must be positive
>! WAITAOF 0 0 x
< -ERR timeout is not an integer or out of range
>! WAITAOF 0 0 -1
< -ERR timeout is negative
>! WAITAOF 0 0 9223372036854775807
< -ERR timeout is out of range
>! WAITAOF 1 0 0
< -ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.
>! WAITAOF 0 0 0
< *2 | :0 | :0
>! WAITAOF 0 1 10
< *2 | :0 | :0
> CONFIG SET appendonly yes
< +OK
>! BF.ADD k a
< :1
>! WAITAOF 1 0 0
< *2 | :1 | :0
>! WAITAOF 1 1 10
< *2 | :1 | :0
> MULTI
< +OK
>! WAITAOF 1 1 0
< +QUEUED
> EXEC
< *1 | *2 | :1 | :0
> CONFIG SET appendonly no
< +OK
