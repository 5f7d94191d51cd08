# SPDX-License-Identifier: BSD-3-Clause
#
# Rules of users, and what GETUSER, LIST and DRYRUN say about them. Redis 7.0
# shows rules of commands in an order of its own; later versions and Valkey keep
# that of the rules, as we do.
@oracle
> ACL SETUSER
< -ERR wrong number of arguments for 'acl|setuser' command
> ACL SETUSER a
< +OK
> ACL LIST
< *2 | "user a off resetchannels -@all" | "user default on nopass ~* &* +@all"
> ACL GETUSER a
2< *12 | "flags" | *1 | "off" | "passwords" | *0 | "commands" | "-@all" | "keys" | "" | "channels" | "" | "selectors" | *0
3< %6 | "flags" | ~1 | "off" | "passwords" | *0 | "commands" | "-@all" | "keys" | "" | "channels" | "" | "selectors" | *0
> ACL SETUSER a on >p ~x* %R~y* %W~z %RW~w &ch* +get
< +OK
> ACL LIST
< *2 | "user a on #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~x* %R~y* %W~z ~w resetchannels &ch* -@all +get" | "user default on nopass ~* &* +@all"
> ACL SETUSER a "(~sel* +del)" ( %R~g +exists &foo )
< +OK
> ACL GETUSER a
2< *12 | "flags" | *1 | "on" | "passwords" | *1 | "148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940" | "commands" | "-@all +get" | "keys" | "~x* %R~y* %W~z ~w" | "channels" | "&ch*" | "selectors" | *2 | *6 | "commands" | "-@all +del" | "keys" | "~sel*" | "channels" | "" | *6 | "commands" | "-@all +exists" | "keys" | "%R~g" | "channels" | "&foo"
3< %6 | "flags" | ~1 | "on" | "passwords" | *1 | "148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940" | "commands" | "-@all +get" | "keys" | "~x* %R~y* %W~z ~w" | "channels" | "&ch*" | "selectors" | *2 | %3 | "commands" | "-@all +del" | "keys" | "~sel*" | "channels" | "" | %3 | "commands" | "-@all +exists" | "keys" | "%R~g" | "channels" | "&foo"
> ACL SETUSER a clearselectors sanitize-payload
< +OK
> ACL SETUSER a skip-sanitize-payload
< +OK
> ACL LIST
< *2 | "user a on skip-sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~x* %R~y* %W~z ~w resetchannels &ch* -@all +get" | "user default on nopass ~* &* +@all"
> ACL SETUSER a +nope
< -ERR Error in ACL SETUSER modifier '+nope': Unknown command or category name in ACL
> ACL SETUSER a -@nope
< -ERR Error in ACL SETUSER modifier '-@nope': Unknown command or category name in ACL
> ACL SETUSER a #abc
< -ERR Error in ACL SETUSER modifier '#abc': The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters
> ACL SETUSER a !abc
< -ERR Error in ACL SETUSER modifier '!abc': The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters
> ACL SETUSER a <nope
< -ERR Error in ACL SETUSER modifier '<nope': The password you are trying to remove from the user does not exist
> ACL SETUSER a (~a
< -ERR Unmatched parenthesis in acl selector starting at '(~a'.
> ACL SETUSER a (~a)b
< -ERR Unmatched parenthesis in acl selector starting at '(~a)b'.
> ACL SETUSER a foo
< -ERR Error in ACL SETUSER modifier 'foo': Syntax error
> ACL SETUSER a ")"
< -ERR Error in ACL SETUSER modifier ')': Syntax error
> ACL SETUSER a %X~k
< -ERR Error in ACL SETUSER modifier '%X~k': Syntax error
> ACL SETUSER a %~k
< -ERR Error in ACL SETUSER modifier '%~k': Syntax error
> ACL SETUSER a "~a b"
< -ERR Error in ACL SETUSER modifier '~a b': Syntax error
> ACL SETUSER a +config|nope
< -ERR Error in ACL SETUSER modifier '+config|nope': Unknown command or category name in ACL
> ACL SETUSER a -select|0
< -ERR Error in ACL SETUSER modifier '-select|0': Unknown command or category name in ACL
> ACL SETUSER a +config|get|x
< -ERR Error in ACL SETUSER modifier '+config|get|x': Allowing first-arg of a subcommand is not supported
> ACL SETUSER a +get|
< -ERR Error in ACL SETUSER modifier '+get|': Syntax error
> ACL SETUSER a (on)
< -ERR Error in ACL SETUSER modifier '(on)': Syntax error
> ACL SETUSER a "(~a (b))"
< -ERR Error in ACL SETUSER modifier '(~a (b))': Syntax error
> ACL SETUSER "a b" on
< -ERR Usernames can't contain spaces or null characters
> ACL SETUSER a off ~q +nope
< -ERR Error in ACL SETUSER modifier '+nope': Unknown command or category name in ACL
> ACL SETUSER a allkeys ~foo
< -ERR Error in ACL SETUSER modifier '~foo': Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns
> ACL SETUSER a allchannels &foo
< -ERR Error in ACL SETUSER modifier '&foo': Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels
> ACL LIST
< *2 | "user a on skip-sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~x* %R~y* %W~z ~w resetchannels &ch* -@all +get" | "user default on nopass ~* &* +@all"
> ACL SETUSER a reset
< +OK
> ACL LIST
< *2 | "user a off sanitize-payload resetchannels -@all" | "user default on nopass ~* &* +@all"
> ACL SETUSER a RESETPASS ON >a >b <a NoPass ALLKEYS AllChannels AllCommands
< +OK
> ACL LIST
< *2 | "user a on nopass sanitize-payload ~* &* +@all" | "user default on nopass ~* &* +@all"
> ACL SETUSER a NOCOMMANDS resetkeys resetchannels +debug -debug
< +OK
> ACL USERS
< *2 | "a" | "default"
> ACL DELUSER default
< -ERR The 'default' user cannot be removed
> ACL DELUSER
< -ERR wrong number of arguments for 'acl|deluser' command
> ACL DELUSER nope a b b
< :1
> ACL USERS
< *1 | "default"
# Databases are of Valkey 9.1.
>! ACL SETUSER d on db=3,1
< +OK
>! ACL GETUSER d
2< *14 | "flags" | *1 | "on" | "passwords" | *0 | "commands" | "-@all" | "keys" | "" | "channels" | "" | "databases" | "db=1,3" | "selectors" | *0
3< %7 | "flags" | ~1 | "on" | "passwords" | *0 | "commands" | "-@all" | "keys" | "" | "channels" | "" | "databases" | "db=1,3" | "selectors" | *0
>! ACL SETUSER d db=
< -ERR Error in ACL SETUSER modifier 'db=': Syntax error
>! ACL DELUSER d
< :1
# DRYRUN
> ACL SETUSER c nopass +get ~k
< +OK
> ACL DRYRUN c get x
< "This user has no permissions to access the 'x' key"
> ACL DRYRUN c del x
< "This user has no permissions to run the 'del' command"
> ACL DRYRUN c get k
< +OK
> ACL DRYRUN c client id
< "This user has no permissions to run the 'client|id' command"
> ACL DRYRUN c auth x
< +OK
> ACL DRYRUN c get
< -ERR wrong number of arguments for 'get' command
> ACL DRYRUN c nope
< -ERR Command 'nope' not found
> ACL SETUSER c +publish +psubscribe +subscribe &a* +copy %R~src %W~dst +exists +del +object|encoding
< +OK
> ACL DRYRUN c publish b b
< "This user has no permissions to access the 'b' channel"
> ACL DRYRUN c psubscribe a*
< +OK
> ACL DRYRUN c psubscribe a
< "This user has no permissions to access the 'a' channel"
> ACL DRYRUN c subscribe ab b
< "This user has no permissions to access the 'b' channel"
> ACL DRYRUN c copy src dst
< +OK
> ACL DRYRUN c copy dst src
< "This user has no permissions to access the 'dst' key"
> ACL DRYRUN c exists src
< +OK
> ACL DRYRUN c exists dst
< +OK
> ACL DRYRUN c del src
< "This user has no permissions to access the 'src' key"
> ACL DRYRUN c del dst
< +OK
> ACL DRYRUN c object encoding src
< +OK
> ACL DRYRUN c object help
< "This user has no permissions to run the 'object|help' command"
>! ACL SETUSER c +@bloom %R~f*
< +OK
>! ACL DRYRUN c BF.EXISTS f1 x
< +OK
>! ACL DRYRUN c BF.ADD f1 x
< "This user has no permissions to access the 'f1' key"
# Without an aclfile; the text names Bloomery's option.
>! ACL SAVE
< -ERR This server has no ACL file: set the option aclfile in its configuration and restart it
>! ACL LOAD
< -ERR This server has no ACL file: set the option aclfile in its configuration and restart it
# What only other servers have may be named, and does nothing.
>! ACL SETUSER sentinel reset on >p allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role +publish +info +client|setname +client|kill +script|kill
< +OK
>! ACL LIST
~ .*user sentinel on sanitize-payload #[0-9a-f]+ &\* -@all \+multi \+slaveof \+ping \+exec \+subscribe \+config\|rewrite \+role \+publish \+info \+client\|setname \+client\|kill \+script\|kill.*
>! ACL SETUSER app reset on nopass ~* +@all -@dangerous +SET -eval +mget +migrate +function +sort -evalsha +xgroup|create -script|flush +@json +set|k +cluster|meet
< +OK
>! ACL GETUSER app
~ .*"\+@all -@dangerous \+set -eval \+mget \+migrate \+function \+sort -evalsha \+xgroup\|create -script\|flush \+@json \+set\|k \+cluster\|meet".*
>! ACL SETUSER app +xgroup|nope
< -ERR Error in ACL SETUSER modifier '+xgroup|nope': Unknown command or category name in ACL
>! ACL SETUSER app "+set|a\nuser evil on nopass ~* +@all"
< -ERR Error in ACL SETUSER modifier '+set|a user evil on nopass ~* +@all': Unknown command or category name in ACL
>! ACL DRYRUN app SET k v
< -ERR Command 'SET' not found
