# SPDX-License-Identifier: BSD-3-Clause
#
# EXISTS key...: counts, repeats included.
@oracle
@key a b
> EXISTS
< -ERR wrong number of arguments for 'exists' command
> EXISTS a
< :1
> EXISTS a a b missing
< :3
> EXISTS missing
< :0
> exists b
< :1
