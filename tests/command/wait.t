# SPDX-License-Identifier: BSD-3-Clause
#
# WAIT numreplicas timeout. There are no replicas, so it is 0, sooner or later.
@oracle
> WAIT 0
< -ERR wrong number of arguments for 'wait' command
> WAIT x 0
< -ERR value is not an integer or out of range
> WAIT 0 x
< -ERR timeout is not an integer or out of range
> WAIT 0 -1
< -ERR timeout is negative
# More than the clock has left.
>! WAIT 0 9223372036854775807
< -ERR timeout is out of range
> WAIT 0 0
< :0
> WAIT -1 0
< :0
> WAIT 1 20
< :0
> MULTI
< +OK
> WAIT 1 0
< +QUEUED
> EXEC
< *1 | :0
