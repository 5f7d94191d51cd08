# SPDX-License-Identifier: BSD-3-Clause
#
# SHUTDOWN: what is refused; the rest: tests/scenario/test_lifecycle.py.
@oracle
> SHUTDOWN nope
< -ERR syntax error
> SHUTDOWN NOSAVE SAVE
< -ERR syntax error
> SHUTDOWN SAVE NOSAVE
< -ERR syntax error
> SHUTDOWN ABORT NOW
< -ERR syntax error
> SHUTDOWN ABORT
< -ERR No shutdown in progress.
> PING
< +PONG
