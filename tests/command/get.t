# SPDX-License-Identifier: BSD-3-Clause
#
# GET key: there are no strings.
@oracle
> GET
< -ERR wrong number of arguments for 'get' command
> GET k x
< -ERR wrong number of arguments for 'get' command
> GET missing
< null
>! BF.ADD k a
< :1
>! GET k
< -WRONGTYPE Operation against a key holding the wrong kind of value
>! PEXPIRE k 1
< :1
@sleep_ms 20
> GET k
< null
