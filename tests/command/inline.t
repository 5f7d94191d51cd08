# SPDX-License-Identifier: BSD-3-Clause
#
# Inline commands: quotes, escapes, blanks. What closes the connection is in
# tests/scenario/test_protocol.py.
@oracle
@raw "PING\r\n"
< +PONG
@raw "PING\n"
< +PONG
@raw "  PING  \r\n"
< +PONG
@raw "ECHO hello\r\n"
< "hello"
@raw "ECHO \"a b\"\r\n"
< "a b"
@raw "ECHO \"a\\x41\\n\\r\\t\\b\\a\\\\\\\"\"\r\n"
< "aA\n\r\t\x08\x07\\\""
@raw "ECHO 'it\\'s \\n'\r\n"
< "it's \\n"
@raw "ECHO \"\"\r\n"
< ""
@raw "\r\n\r\nECHO x\r\n"
< "x"
@raw "*0\r\n*-1\r\nECHO y\r\n"
< "y"
@raw "\tECHO\tz\r\n"
< "z"
@raw "NOPE a b\r\n"
< -ERR unknown command 'NOPE', with args beginning with: 'a' 'b'\x20
@raw "ECHO\r\n"
< -ERR wrong number of arguments for 'echo' command
@raw "$4\r\n"
< -ERR unknown command '$4', with args beginning with:\x20
@raw "+PING\r\n"
< -ERR unknown command '+PING', with args beginning with:\x20
