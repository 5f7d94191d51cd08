# SPDX-License-Identifier: BSD-3-Clause
#
# CONFIG GET, SET and RESETSTAT with the names that Redis has too.
@oracle
@server --appendfsync everysec --databases 16
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
>! CONFIG GET appendonly
< %1 | "appendonly" | "yes"
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

# Save rules are shown as pairs; what is set stands for all of them.
> CONFIG SET save "900 1 300 10"
< +OK
> CONFIG GET save
< %1 | "save" | "900 1 300 10"
> CONFIG SET save "3600 0"
< +OK
> CONFIG GET save
< %1 | "save" | "3600 0"
> CONFIG SET save 900
< -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
> CONFIG SET save "900 1 300"
< -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
> CONFIG SET save "0 1"
< -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
> CONFIG SET save "1 -1"
< -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
> CONFIG SET save "900 x"
< -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
> CONFIG GET save
< %1 | "save" | "3600 0"
> CONFIG SET save ""
< +OK
> CONFIG GET save
< %1 | "save" | ""
> CONFIG GET appendfsync
< %1 | "appendfsync" | "everysec"
> CONFIG SET appendfsync ALWAYS
< +OK
> CONFIG GET appendfsync
< %1 | "appendfsync" | "always"
> CONFIG SET appendfsync never
< -ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the following: everysec, always, no
> CONFIG SET auto-aof-rewrite-percentage 50 auto-aof-rewrite-min-size 1mb stop-writes-on-bgsave-error no
< +OK
> CONFIG GET auto-aof-rewrite-min-size
< %1 | "auto-aof-rewrite-min-size" | "1048576"
> CONFIG SET appenddirname x
< -ERR CONFIG SET failed (possibly related to argument 'appenddirname') - can't set immutable config
>! CONFIG SET dir /tmp
< -ERR CONFIG SET failed (possibly related to argument 'dir') - can't set immutable config
>! CONFIG GET dbfilename
< %1 | "dbfilename" | "bloomery.snapshot"
>! CONFIG SET journal-buffer-limit 1
< -ERR CONFIG SET failed (possibly related to argument 'journal-buffer-limit') - argument must be between 1048576 and 1099511627776 inclusive
>! CONFIG SET misconf-after 0
< +OK
# Started without a file: into the directory (tests/scenario/test_rewrite.py).
>! CONFIG REWRITE
< +OK
> CONFIG REWRITE x
< -ERR wrong number of arguments for 'config|rewrite' command
>! MULTI
< +OK
>! CONFIG REWRITE
< +QUEUED
>! EXEC
< *1 | +OK
