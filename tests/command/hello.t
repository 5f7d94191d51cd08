# SPDX-License-Identifier: BSD-3-Clause
#
# HELLO [2|3 [AUTH user pass] [SETNAME name]]: what is refused. The reply
# itself: tests/scenario/test_protocol.py.
@oracle
> HELLO 4
< -NOPROTO unsupported protocol version
> HELLO 1
< -NOPROTO unsupported protocol version
> HELLO 0
< -NOPROTO unsupported protocol version
> HELLO x
< -ERR Protocol version is not an integer or out of range
> HELLO 99999999999999999999
< -ERR Protocol version is not an integer or out of range
> HELLO 3 NOPE
< -ERR Syntax error in HELLO option 'NOPE'
> HELLO 3 SETNAME
< -ERR Syntax error in HELLO option 'SETNAME'
> HELLO 3 SETNAME "with blank"
< -ERR Client names cannot contain spaces, newlines or special characters.
> HELLO 3 AUTH a
< -ERR Syntax error in HELLO option 'AUTH'
> HELLO 3 AUTH nobody x
< -WRONGPASS invalid username-password pair or user is disabled.
> HELLO AUTH default x
< -ERR Protocol version is not an integer or out of range
> HELLO 2 AUTH default x SETNAME n EXTRA
< -ERR Syntax error in HELLO option 'EXTRA'
