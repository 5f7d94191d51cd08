# SPDX-License-Identifier: BSD-3-Clause
#
# COMMAND and its subcommands; the table itself: test_command_table.py.
@oracle
> COMMAND COUNT x
< -ERR wrong number of arguments for 'command|count' command
> COMMAND NOPE
< -ERR unknown subcommand 'NOPE'. Try COMMAND HELP.
> COMMAND COUNT
< :?
> COMMAND INFO nope
< *1 | null
> COMMAND INFO nope nope2
< *2 | null | null
> COMMAND DOCS nope
< %0
> COMMAND LIST FILTERBY
< -ERR syntax error
> COMMAND LIST FILTERBY NOPE x
< -ERR syntax error
> COMMAND LIST NOPE
< -ERR syntax error
> COMMAND LIST FILTERBY PATTERN hell?
< *1 | "hello"
> COMMAND LIST FILTERBY PATTERN nope*
< *0
> COMMAND LIST FILTERBY MODULE nope
< *0
> COMMAND LIST FILTERBY ACLCAT nope
< *0
> COMMAND GETKEYS
< -ERR wrong number of arguments for 'command|getkeys' command
> COMMAND GETKEYS nope
< -ERR wrong number of arguments for 'command|getkeys' command
> COMMAND GETKEYS ping
< -ERR wrong number of arguments for 'command|getkeys' command
> COMMAND GETKEYS del
< -ERR wrong number of arguments for 'command|getkeys' command
> COMMAND GETKEYS nope x
< -ERR Invalid command specified
> COMMAND GETKEYS ping x
< -ERR The command has no key arguments
> COMMAND GETKEYS expire k
< -ERR Invalid number of arguments specified for command
> COMMAND GETKEYS client kill a
< -ERR The command has no key arguments
> COMMAND GETKEYS del a b c
< *3 | "a" | "b" | "c"
> COMMAND GETKEYS exists a
< *1 | "a"
> COMMAND GETKEYS EXPIRE k 10
< *1 | "k"
> COMMAND GETKEYS memory usage k
< *1 | "k"
> COMMAND GETKEYS watch a b
< *2 | "a" | "b"
> COMMAND GETKEYS touch a b
< *2 | "a" | "b"
>! COMMAND GETKEYS BF.ADD k item
< *1 | "k"
>! COMMAND GETKEYS bf.insert k ITEMS a b
< *1 | "k"
>! COMMAND LIST FILTERBY PATTERN bf.reser*
< *1 | "BF.RESERVE"
> COMMAND GETKEYSANDFLAGS ping
< -ERR wrong number of arguments for 'command|getkeysandflags' command
> COMMAND GETKEYSANDFLAGS nope x
< -ERR Invalid command specified
> COMMAND GETKEYSANDFLAGS ping x
< -ERR The command has no key arguments
> COMMAND GETKEYSANDFLAGS expire k
< -ERR Invalid number of arguments specified for command
> COMMAND GETKEYSANDFLAGS memory usage k
2< *1 | *2 | "k" | *1 | +RO
3< *1 | *2 | "k" | ~1 | +RO
> COMMAND GETKEYSANDFLAGS copy a b
2< *2 | *2 | "a" | *2 | +RO | +access | *2 | "b" | *2 | +OW | +update
3< *2 | *2 | "a" | ~2 | +RO | +access | *2 | "b" | ~2 | +OW | +update
> COMMAND GETKEYSANDFLAGS del a b
2< *2 | *2 | "a" | *2 | +RM | +delete | *2 | "b" | *2 | +RM | +delete
3< *2 | *2 | "a" | ~2 | +RM | +delete | *2 | "b" | ~2 | +RM | +delete
>! COMMAND GETKEYSANDFLAGS BF.ADD k item
2< *1 | *2 | "k" | *2 | +RW | +insert
3< *1 | *2 | "k" | ~2 | +RW | +insert
