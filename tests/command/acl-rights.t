# SPDX-License-Identifier: BSD-3-Clause
#
# What a limited user is refused, alone, in MULTI and at EXEC; logins of users;
# and connections that close with their user. The first connection stays the
# default user's.
@oracle
> ACL SETUSER u on >p +get +multi +exec +del +publish +subscribe +psubscribe +copy ~k* &c* +acl|whoami +select +client|info +client|list
< +OK
@on b
> AUTH u x
< -WRONGPASS invalid username-password pair or user is disabled.
> AUTH u p
< +OK
> ACL WHOAMI
< "u"
> GET k
< null
> GET x
< -NOPERM this user has no permissions to access one of the keys used as arguments
> PING
< -NOPERM this user has no permissions to run the 'ping' command
> CONFIG GET x
< -NOPERM this user has no permissions to run the 'config|get' command
> DEL k1 k2 x
< -NOPERM this user has no permissions to access one of the keys used as arguments
> PUBLISH x y
< -NOPERM this user has no permissions to access one of the channels used as arguments
> PUBLISH cx y
< :0
> NOPE
~ -ERR unknown command 'NOPE'.*
> GET
< -ERR wrong number of arguments for 'get' command
> WATCH x
< -NOPERM this user has no permissions to run the 'watch' command
> MULTI
< +OK
> GET x
< -NOPERM this user has no permissions to access one of the keys used as arguments
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> MULTI
< +OK
> GET k
< +QUEUED
@on a
> ACL SETUSER u -get
< +OK
@on b
> EXEC
< *1 | -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand
@on a
> ACL SETUSER u +get
< +OK
@on b
> MULTI
< +OK
> GET k
< +QUEUED
> PUBLISH cx y
< +QUEUED
@on a
> ACL SETUSER u resetkeys resetchannels
< +OK
@on b
> EXEC
< *2 | -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to touch the specified keys | -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to access one of the channels used as arguments
> CLIENT INFO
~ .* user=u .*
@on a
> ACL LOG 2
~ \*2 \| (%7|%10|\*14|\*20) \| "count" \| :1 \| "reason" \| "channel" \| "context" \| "multi" \| "object" \| "cx" \| "username" \| "u" .* "reason" \| "key" \| "context" \| "multi" \| "object" \| "k" .*
# off refuses logins only; open connections stay.
> ACL SETUSER u off
< +OK
@on b
> ACL WHOAMI
< "u"
@on c
> AUTH u p
< -WRONGPASS invalid username-password pair or user is disabled.
> HELLO 3 AUTH u p
< -WRONGPASS invalid username-password pair or user is disabled.
@on a
> CLIENT KILL USER nope
< -ERR No such user 'nope'
> CLIENT KILL USER u
< :1
@on b
@closed
@on a
> ACL SETUSER u on
< +OK
@on d
> HELLO 3 AUTH u p
~ %7 .*
> ACL WHOAMI
< "u"
> RESET
< +RESET
> ACL WHOAMI
< "default"
> AUTH u p
< +OK
@on a
> ACL DELUSER u
< :1
@on d
@closed
@on a
# A user may delete itself: the reply still comes.
> ACL SETUSER v on nopass +@all
< +OK
@on e
> AUTH v any
< +OK
> ACL DELUSER v
< :1
@closed
@on a
# requirepass is the default user's password.
@on f
> PING
< +PONG
@on a
> CONFIG SET requirepass foo
< +OK
> ACL LIST
< *1 | "user default on #2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae ~* &* +@all"
> ACL SETUSER default >bar
< +OK
@on f
> RESET
< +RESET
> PING
< -NOAUTH Authentication required.
> AUTH bar
< +OK
> CONFIG SET requirepass ""
< +OK
> ACL LIST
< *1 | "user default on nopass ~* &* +@all"
> AUTH bar
< -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
