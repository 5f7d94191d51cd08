# SPDX-License-Identifier: BSD-3-Clause
#
# CONFIG GET, SET and RESETSTAT with the names that Redis has too.
@oracle
> CONFIG
< -ERR wrong number of arguments for 'config' command
> CONFIG NOPE
< -ERR unknown subcommand 'NOPE'. Try CONFIG HELP.
> CONFIG GET
< -ERR wrong number of arguments for 'config|get' command
> CONFIG GET nope
< %0
> CONFIG GET maxmemory
< %1 | "maxmemory" | "0"
> config get MAXMEMORY
< %1 | "MAXMEMORY" | "0"
> CONFIG GET save
< %1 | "save" | ""
> CONFIG GET appendonly
< %1 | "appendonly" | "no"
> CONFIG GET databases
< %1 | "databases" | "16"
> CONFIG GET timeout
< %1 | "timeout" | "0"
> CONFIG GET maxmemory-policy
< %1 | "maxmemory-policy" | "noeviction"
> CONFIG SET
< -ERR wrong number of arguments for 'config|set' command
> CONFIG SET maxmemory
< -ERR wrong number of arguments for 'config|set' command
> CONFIG SET nope 1
< -ERR Unknown option or number of arguments for CONFIG SET - 'nope'
> CONFIG SET maxmemory 100mb
< +OK
> CONFIG GET maxmemory
< %1 | "maxmemory" | "104857600"
> CONFIG SET maxmemory 1G
< +OK
> CONFIG GET maxmemory
< %1 | "maxmemory" | "1000000000"
> CONFIG SET maxmemory x
< -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
> CONFIG SET maxmemory -1
< -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
> CONFIG SET maxmemory 100mbx
< -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
> CONFIG GET maxmemory
< %1 | "maxmemory" | "1000000000"
> CONFIG SET maxmemory 1gb
< +OK
> CONFIG SET maxmemory 1 maxmemory 2
< -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - duplicate parameter
> CONFIG SET maxmemory 200mb nope 1
< -ERR Unknown option or number of arguments for CONFIG SET - 'nope'
> CONFIG GET maxmemory
< %1 | "maxmemory" | "1073741824"
> CONFIG SET maxmemory 300mb timeout x
< -ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer
> CONFIG GET maxmemory
< %1 | "maxmemory" | "1073741824"
> CONFIG SET timeout 5 maxmemory 0
< +OK
> CONFIG GET timeout
< %1 | "timeout" | "5"
> CONFIG GET maxmemory
< %1 | "maxmemory" | "0"
> CONFIG SET timeout -1
< -ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive
> CONFIG SET timeout 0
< +OK
> CONFIG SET databases 4
< -ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
> CONFIG SET maxclients 0
~ -ERR CONFIG SET failed \(possibly related to argument 'maxclients'\) - argument must be between 1 and \d+ inclusive
> CONFIG RESETSTAT
< +OK
> CONFIG RESETSTAT x
< -ERR wrong number of arguments for 'config|resetstat' command
