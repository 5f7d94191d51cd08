# SPDX-License-Identifier: BSD-3-Clause
#
# SAVE; what it writes: tests/scenario/test_dump.py.
@oracle
@key k
> SAVE x
< -ERR wrong number of arguments for 'save' command
> SAVE
< +OK
> PING
< +PONG
> MULTI
< +OK
> SAVE
< -ERR Command not allowed inside a transaction
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
