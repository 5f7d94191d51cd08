# SPDX-License-Identifier: BSD-3-Clause
#
# SHUTDOWN that happens: no reply, the connections close.
@oracle
@on b
> PING
< +PONG
@on a
> SHUTDOWN NOSAVE NOW
~ b'\(closed\)'
@on b
@closed
