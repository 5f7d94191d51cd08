# SPDX-License-Identifier: BSD-3-Clause
#
# UNLINK key...
@oracle
@key a b c
> UNLINK
< -ERR wrong number of arguments for 'unlink' command
> UNLINK missing
< :0
> UNLINK a
< :1
> UNLINK a b c missing b
< :2
> EXISTS a b c
< :0
