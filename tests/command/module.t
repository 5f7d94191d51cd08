# SPDX-License-Identifier: BSD-3-Clause
#
# MODULE LIST.
@oracle
> MODULE
< -ERR wrong number of arguments for 'module' command
> MODULE NOPE
< -ERR unknown subcommand 'NOPE'. Try MODULE HELP.
> MODULE LIST x
< -ERR wrong number of arguments for 'module|list' command
>! MODULE LIST
~ \*[01].*
