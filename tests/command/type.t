# SPDX-License-Identifier: BSD-3-Clause
#
# TYPE key.
@oracle
@key a
> TYPE missing
< +none
> TYPE
< -ERR wrong number of arguments for 'type' command
> TYPE a b
< -ERR wrong number of arguments for 'type' command
>! TYPE a
< +bloomfltr
