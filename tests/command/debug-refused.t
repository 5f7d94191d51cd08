# SPDX-License-Identifier: BSD-3-Clause
#
# DEBUG as it is by default: for nobody.
@oracle
> DEBUG
< -ERR wrong number of arguments for 'debug' command
> DEBUG SLEEP 0
< -ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
> DEBUG HELP
< -ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
> MULTI
< +OK
> DEBUG DIGEST
< -ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> CONFIG GET enable-debug-command
< %1 | "enable-debug-command" | "no"
