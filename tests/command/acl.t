# SPDX-License-Identifier: BSD-3-Clause
#
# ACL, as far as it reads; acl-setuser.t has the rest.
@oracle
> ACL
< -ERR wrong number of arguments for 'acl' command
> ACL NOPE
< -ERR unknown subcommand 'NOPE'. Try ACL HELP.
> ACL WHOAMI
< "default"
> ACL WHOAMI x
< -ERR wrong number of arguments for 'acl|whoami' command
> ACL USERS
< *1 | "default"
> ACL LIST
< *1 | "user default on nopass ~* &* +@all"
> ACL GETUSER default
2< *12 | "flags" | *2 | "on" | "nopass" | "passwords" | *0 | "commands" | "+@all" | "keys" | "~*" | "channels" | "&*" | "selectors" | *0
3< %6 | "flags" | ~2 | "on" | "nopass" | "passwords" | *0 | "commands" | "+@all" | "keys" | "~*" | "channels" | "&*" | "selectors" | *0
> ACL GETUSER nobody
< null
> ACL GETUSER
< -ERR wrong number of arguments for 'acl|getuser' command
> ACL CAT nope
< -ERR Unknown category 'nope'
> ACL CAT a b
< -ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.
>! ACL CAT
< *22 | "keyspace" | "read" | "write" | "set" | "sortedset" | "list" | "hash" | "string" | "bitmap" | "hyperloglog" | "geo" | "stream" | "pubsub" | "admin" | "fast" | "slow" | "blocking" | "dangerous" | "connection" | "transaction" | "scripting" | "bloom"
>! ACL CAT Transaction
< *5 | "discard" | "exec" | "multi" | "unwatch" | "watch"
>! ACL CAT geo
< *0
> ACL DRYRUN default
< -ERR wrong number of arguments for 'acl|dryrun' command
> ACL DRYRUN default del x
< +OK
> ACL DRYRUN default del
< -ERR wrong number of arguments for 'del' command
> ACL DRYRUN default nope x
< -ERR Command 'nope' not found
> ACL DRYRUN default acl nope
< -ERR Command 'acl' not found
> ACL DRYRUN default client id
< +OK
> ACL DRYRUN nobody del x
< -ERR User 'nobody' not found
> ACL GENPASS
~ "[0-9a-f]{64}"
> ACL GENPASS 5
~ "[0-9a-f]{2}"
> ACL GENPASS 4096
~ "[0-9a-f]{1024}"
> ACL GENPASS 0
< -ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
> ACL GENPASS 4097
< -ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
> ACL GENPASS x
< -ERR value is not an integer or out of range
> ACL GENPASS 1 2
< -ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP.
> ACL LOG
< *0
> ACL LOG x
< -ERR value is not an integer or out of range
> ACL LOG 1 2
< -ERR unknown subcommand or wrong number of arguments for 'LOG'. Try ACL HELP.
> AUTH nobody x
< -WRONGPASS invalid username-password pair or user is disabled.
> AUTH nobody y
< -WRONGPASS invalid username-password pair or user is disabled.
> AUTH other x
< -WRONGPASS invalid username-password pair or user is disabled.
> ACL LOG
~ \*2 \| (%7|%10|\*14|\*20) \| "count" \| :1 \| "reason" \| "auth" \| "context" \| "toplevel" \| "object" \| "AUTH" \| "username" \| "other" \| "age-seconds" \| \S+ \| "client-info" \| "id=\d+ addr=\S+ .* \| (%7|%10|\*14|\*20) \| "count" \| :2 \| "reason" \| "auth" \| "context" \| "toplevel" \| "object" \| "AUTH" \| "username" \| "nobody" \| .* "client-info" \| "id=.* cmd=auth user=default .*
> ACL LOG 1
~ \*1 \| (%7|%10|\*14|\*20) \| .*"username" \| "other".*
> ACL LOG 0
< *0
> ACL LOG -1
< *0
> ACL LOG RESET
< +OK
> ACL LOG
< *0
> MULTI
< +OK
> AUTH nobody x
< +QUEUED
> EXEC
< *1 | -WRONGPASS invalid username-password pair or user is disabled.
> ACL LOG
~ \*1 \| .*"context" \| "multi".*
> AUTH default x
< +OK
> CONFIG GET acllog-max-len
< %1 | "acllog-max-len" | "128"
> CONFIG SET acllog-max-len 1
< +OK
> AUTH nobody2 x
< -WRONGPASS invalid username-password pair or user is disabled.
> ACL LOG
~ \*1 \| .*"username" \| "nobody2".*
> CONFIG SET requirepass foo
< +OK
> ACL LIST
< *1 | "user default on #2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae ~* &* +@all"
> ACL GETUSER default
2< *12 | "flags" | *1 | "on" | "passwords" | *1 | "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" | "commands" | "+@all" | "keys" | "~*" | "channels" | "&*" | "selectors" | *0
3< %6 | "flags" | ~1 | "on" | "passwords" | *1 | "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" | "commands" | "+@all" | "keys" | "~*" | "channels" | "&*" | "selectors" | *0
>! ACL HELP
~ \*27 \| .*
