# SPDX-License-Identifier: BSD-3-Clause
#
# ROLE: a master without replicas.
@oracle
@server --appendonly no
> ROLE x
< -ERR wrong number of arguments for 'role' command
> ROLE
< *3 | "master" | :0 | *0
>! CONFIG SET appendonly yes
< +OK
>! WAITAOF 1 0 0
< *2 | :1 | :0
>! BF.ADD k a
< :1
>! ROLE
~ \*3 \| "master" \| :[1-9]\d* \| \*0
