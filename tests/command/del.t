# SPDX-License-Identifier: BSD-3-Clause
#
# DEL key...
@oracle
@key a b c
> DEL
< -ERR wrong number of arguments for 'del' command
> DEL missing
< :0
> DEL a
< :1
> DEL a b c missing b
< :2
> EXISTS a b c
< :0
