# SPDX-License-Identifier: BSD-3-Clause
#
# ECHO message.
@oracle
> ECHO hello
< "hello"
> ECHO ""
< ""
> ECHO "\x00\xff\r\n"
< "\x00\xff\r\n"
> ECHO
< -ERR wrong number of arguments for 'echo' command
> ECHO a b
< -ERR wrong number of arguments for 'echo' command
