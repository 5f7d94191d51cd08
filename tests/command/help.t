# SPDX-License-Identifier: BSD-3-Clause
#
# HELP of every container: lines of simple text, made from the command table.
@oracle
@server --enable-debug-command yes
>! ACL HELP
~ \*\d+ \| \+ACL <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> ACL HELP x
< -ERR wrong number of arguments for 'acl|help' command
>! CLIENT HELP
~ \*\d+ \| \+CLIENT <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> CLIENT HELP x
< -ERR wrong number of arguments for 'client|help' command
>! COMMANDLOG HELP
~ \*\d+ \| \+COMMANDLOG <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
>! COMMAND HELP
~ \*\d+ \| \+COMMAND <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> COMMAND HELP x
< -ERR wrong number of arguments for 'command|help' command
>! CONFIG HELP
~ \*\d+ \| \+CONFIG <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> CONFIG HELP x
< -ERR wrong number of arguments for 'config|help' command
>! DEBUG HELP
~ \*\d+ \| \+DEBUG <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
>! DEBUG HELP x
< -ERR unknown subcommand or wrong number of arguments for 'HELP'. Try DEBUG HELP.
>! LATENCY HELP
~ \*\d+ \| \+LATENCY <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> LATENCY HELP x
< -ERR wrong number of arguments for 'latency|help' command
>! MEMORY HELP
~ \*\d+ \| \+MEMORY <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> MEMORY HELP x
< -ERR wrong number of arguments for 'memory|help' command
>! MODULE HELP
~ \*\d+ \| \+MODULE <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> MODULE HELP x
< -ERR wrong number of arguments for 'module|help' command
>! OBJECT HELP
~ \*\d+ \| \+OBJECT <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> OBJECT HELP x
< -ERR wrong number of arguments for 'object|help' command
>! PUBSUB HELP
~ \*\d+ \| \+PUBSUB <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> PUBSUB HELP x
< -ERR wrong number of arguments for 'pubsub|help' command
>! SLOWLOG HELP
~ \*\d+ \| \+SLOWLOG <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| (.*\| )?\+HELP \| \+    [A-Z].*
> SLOWLOG HELP x
< -ERR wrong number of arguments for 'slowlog|help' command
