# SPDX-License-Identifier: BSD-3-Clause
#
# DEBUG where it is allowed; refused: debug-refused.t; what it does to the whole
# server: tests/scenario/test_debug.py.
@server --enable-debug-command yes --appendonly no
> DEBUG
< -ERR wrong number of arguments for 'debug' command
> DEBUG NOPE
< -ERR unknown subcommand or wrong number of arguments for 'NOPE'. Try DEBUG HELP.
> DEBUG HELP
~ \*17 \| \+DEBUG <subcommand> \[<arg> \.\.\.\]\. Subcommands are: \| \+DIGEST \| .* \| \+ERROR <text> \| .* \| \+SLEEP <seconds> \| .*
> DEBUG HELP x
< -ERR unknown subcommand or wrong number of arguments for 'HELP'. Try DEBUG HELP.
> DEBUG DIGEST
< +0000000000000000000000000000000000000000
> debug digest x
< -ERR unknown subcommand or wrong number of arguments for 'digest'. Try DEBUG HELP.
> DEBUG DIGEST-VALUE
< *0
> DEBUG DIGEST-VALUE a b
< *2 | "0000000000000000000000000000000000000000" | "0000000000000000000000000000000000000000"
> DEBUG ERROR "MINE a text of my own"
< -MINE a text of my own
> debug error "ERR two\r\nlines"
< -ERR two  lines
> DEBUG ERROR
< -ERR unknown subcommand or wrong number of arguments for 'ERROR'. Try DEBUG HELP.
> DEBUG ERROR two words
< -ERR unknown subcommand or wrong number of arguments for 'ERROR'. Try DEBUG HELP.
> INFO errorstats
~ (?!.*MINE).*# Errorstats.*errorstat_ERR:.*
> DEBUG OBJECT nokey
< -ERR no such key
> DEBUG OBJECT
< -ERR unknown subcommand or wrong number of arguments for 'OBJECT'. Try DEBUG HELP.
> CONFIG SET bf.bloom-use-random-seed no
< +OK
> BF.ADD k a
< :1
> DEBUG DIGEST
~ \+[0-9a-f]{40}
> DEBUG DIGEST-VALUE k nokey
~ \*2 \| "[0-9a-f]{40}" \| "0{40}"
> DEBUG OBJECT k
~ \+Value at:0x[0-9a-f]+ refcount:1 encoding:raw serializedlength:\d+ lru:\d+ lru_seconds_idle:0 incarnation:[1-9]\d*
> DEBUG SLEEP
< -ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.
> DEBUG SLEEP 0
< +OK
> DEBUG SLEEP 0.001
< +OK
> DEBUG SLEEP x
< -ERR DEBUG SLEEP takes seconds, from 0 to 86400
> DEBUG SLEEP -1
< -ERR DEBUG SLEEP takes seconds, from 0 to 86400
> DEBUG SLEEP inf
< -ERR DEBUG SLEEP takes seconds, from 0 to 86400
> DEBUG SLEEP nan
< -ERR DEBUG SLEEP takes seconds, from 0 to 86400
> DEBUG SLEEP 1e300
< -ERR DEBUG SLEEP takes seconds, from 0 to 86400
> DEBUG SET-ACTIVE-EXPIRE
< -ERR unknown subcommand or wrong number of arguments for 'SET-ACTIVE-EXPIRE'. Try DEBUG HELP.
> DEBUG SET-ACTIVE-EXPIRE 2
< -ERR DEBUG SET-ACTIVE-EXPIRE takes 0 or 1
> DEBUG SET-ACTIVE-EXPIRE 0
< +OK
> DEBUG SET-ACTIVE-EXPIRE 1
< +OK
> DEBUG RELOAD x
< -ERR DEBUG RELOAD only supports the NOSAVE option.
> DEBUG RELOAD NOSAVE MERGE
< -ERR DEBUG RELOAD only supports the NOSAVE option.
> DEBUG RELOAD NOSAVE
< -ERR Error trying to load the RDB dump, check server logs.
> BF.EXISTS k a
< :1
> DEBUG RELOAD
< +OK
> BF.EXISTS k a
< :1
> BF.ADD k later
< :1
> DEBUG RELOAD NOSAVE
< +OK
> BF.EXISTS k later
< :0
> BF.EXISTS k a
< :1
> MULTI
< +OK
> DEBUG RELOAD
< +QUEUED
> DEBUG DIGEST-VALUE nokey
< +QUEUED
> DEBUG SLEEP 0
< +QUEUED
> EXEC
< *3 | -ERR DEBUG RELOAD is not possible in a transaction | *1 | "0000000000000000000000000000000000000000" | +OK
> CONFIG GET enable-debug-command
< %1 | "enable-debug-command" | "yes"
> CONFIG SET enable-debug-command no
< -ERR CONFIG SET failed (possibly related to argument 'enable-debug-command') - can't set immutable config
