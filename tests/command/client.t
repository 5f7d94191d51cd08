# SPDX-License-Identifier: BSD-3-Clause
#
# CLIENT and its subcommands; KILL, LIST and REPLY also in
# tests/scenario/test_clients.py.
@oracle
@server --databases 16
> CLIENT
< -ERR wrong number of arguments for 'client' command
> CLIENT NOPE
< -ERR unknown subcommand 'NOPE'. Try CLIENT HELP.
> CLIENT NOPE x y
< -ERR unknown subcommand 'NOPE'. Try CLIENT HELP.
> client id
< :?
> CLIENT ID x
< -ERR wrong number of arguments for 'client|id' command
> CLIENT GETNAME
< null
> CLIENT SETNAME worker-1
< +OK
> CLIENT GETNAME
< "worker-1"
> CLIENT SETNAME ""
< +OK
> CLIENT GETNAME
< null
> CLIENT SETNAME "with blank"
< -ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT SETNAME "line\n"
< -ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT SETNAME "\xff"
< -ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT SETNAME
< -ERR wrong number of arguments for 'client|setname' command
> CLIENT SETNAME a b
< -ERR wrong number of arguments for 'client|setname' command
> CLIENT GETNAME x
< -ERR wrong number of arguments for 'client|getname' command
> CLIENT NO-EVICT on
< +OK
> CLIENT NO-EVICT OFF
< +OK
> CLIENT NO-EVICT maybe
< -ERR syntax error
> CLIENT NO-EVICT
< -ERR wrong number of arguments for 'client|no-evict' command
> CLIENT REPLY
< -ERR wrong number of arguments for 'client|reply' command
> CLIENT REPLY maybe
< -ERR syntax error
> CLIENT REPLY ON
< +OK
> CLIENT KILL
< -ERR wrong number of arguments for 'client|kill' command
> CLIENT KILL 127.0.0.1:1
< -ERR No such client
> CLIENT KILL ADDR
< -ERR No such client
> CLIENT KILL ID x
< -ERR client-id should be greater than 0
> CLIENT KILL ID 0
< -ERR client-id should be greater than 0
> CLIENT KILL ID -5
< -ERR client-id should be greater than 0
> CLIENT KILL TYPE nope
< -ERR Unknown client type 'nope'
> CLIENT KILL USER nobody
< -ERR No such user 'nobody'
> CLIENT KILL SKIPME maybe
< -ERR syntax error
> CLIENT KILL NOPE x
< -ERR syntax error
> CLIENT KILL ID 9999999
< :0
> CLIENT KILL ADDR 127.0.0.1:1
< :0
> CLIENT KILL LADDR 127.0.0.1:1
< :0
> CLIENT KILL ADDR 127.0.0.1:1 SKIPME no
< :0
> CLIENT KILL TYPE pubsub
< :0
> CLIENT KILL TYPE normal SKIPME yes
< :0
> CLIENT LIST NOPE
< -ERR syntax error
> CLIENT LIST TYPE
< -ERR syntax error
> CLIENT LIST TYPE nope
< -ERR Unknown client type 'nope'
> CLIENT LIST TYPE pubsub
< ="txt:"
> CLIENT LIST ID
< -ERR syntax error
> CLIENT LIST ID x
< -ERR Invalid client ID
> CLIENT LIST ID 9999999
< ="txt:"
> CLIENT LIST ID 0 -1 9999999
< ="txt:"
> CLIENT LIST ID 9999999 x
< -ERR Invalid client ID
> CLIENT KILL TYPE normal ID
< -ERR syntax error
> CLIENT KILL ID 9999999 ID 9999998
< :0
> CLIENT INFO x
< -ERR wrong number of arguments for 'client|info' command
> CLIENT SETNAME me
< +OK
> CLIENT INFO
~ =?"(txt:)?id=\d+ addr=127\.0\.0\.1:\d+ laddr=127\.0\.0\.1:\d+ fd=\d+ name=me age=\d+ idle=\d+ flags=N( capa=)? db=0 sub=0 psub=0 ssub=0 multi=-1 .*cmd=client\|info user=default.*\\n"
> CLIENT LIST TYPE normal
~ =?"(txt:)?id=\d+ addr=.* name=me .* cmd=client\|list user=default.*\\n"
# Later than 7.0.
>! CLIENT SETINFO LIB-NAME redis-py
< +OK
>! CLIENT SETINFO lib-ver 8.1.0
< +OK
>! CLIENT SETINFO LIB-NAME "with blank"
< -ERR LIB-NAME cannot contain spaces, newlines or special characters.
>! CLIENT SETINFO nope x
< -ERR Unrecognized option 'nope'
>! CLIENT SETINFO LIB-NAME
< -ERR wrong number of arguments for 'client|setinfo' command
>! CLIENT NO-TOUCH on
< +OK
>! CLIENT NO-TOUCH off
< +OK
>! CLIENT NO-TOUCH maybe
< -ERR syntax error
>! CLIENT INFO
~ .* lib-name=redis-py lib-ver=8\.1\.0\\n"
# The filters of Redis 7.4 and of Valkey 8 and 9, for LIST and KILL alike.
>! CLIENT KILL MAXAGE x
< -ERR maxage is not an integer or out of range
>! CLIENT KILL MAXAGE 0
< -ERR maxage should be greater than 0
>! CLIENT KILL MAXAGE 1000000 SKIPME no
< :0
>! CLIENT LIST MAXAGE -1
< -ERR maxage should be greater than 0
>! CLIENT LIST MAXAGE 1000000
< ="txt:"
>! CLIENT KILL NOT-MAXAGE 5
< -ERR syntax error
>! CLIENT KILL NOT-MAXAGE 5 ID 9999999
< -ERR syntax error
>! CLIENT LIST NOT-SKIPME yes
< -ERR syntax error
>! CLIENT LIST IDLE x
< -ERR idle is not an integer or out of range
>! CLIENT LIST IDLE 0
< -ERR idle should be greater than 0
>! CLIENT LIST IDLE 1000000
< ="txt:"
>! CLIENT LIST FLAGS N?
< -ERR Unknown flags found in the provided filter: N?
>! CLIENT LIST NOT-FLAGS N?
< -ERR Unknown flags found in the NOT-FLAGS filter: N?
>! CLIENT LIST CAPA x
< -ERR Unknown capa found in the provided filter: x
>! CLIENT LIST NOT-CAPA x
< -ERR Unknown capa found in the NOT-CAPA filter: x
>! CLIENT LIST CAPA r
< ="txt:"
>! CLIENT LIST DB x
< -ERR DB is not an integer or out of range
>! CLIENT LIST NOT-DB 16
< -ERR DB number should be between 0 and 15
>! CLIENT LIST NOT-DB 0
< ="txt:"
>! CLIENT LIST NOT-USER nobody
< -ERR No such user 'nobody'
>! CLIENT LIST NOT-USER default
< ="txt:"
>! CLIENT LIST USER default NAME me SKIPME yes
< ="txt:"
>! CLIENT LIST NOT-TYPE nope
< -ERR Unknown client type 'nope'
>! CLIENT LIST TYPE primary
< ="txt:"
>! CLIENT LIST NOT-TYPE normal NAME me
< ="txt:"
>! CLIENT LIST NOT-ID
< -ERR syntax error
>! CLIENT LIST NOT-ID x
< -ERR Invalid client ID
>! CLIENT KILL NOT-ID 0
< -ERR client-id should be greater than 0
>! CLIENT LIST NAME me NOT-ID 9999998 9999999 not-name other flags N
~ =?"(txt:)?id=\d+ addr=.* name=me .*\\n"
>! CLIENT LIST NAME me NOT-FLAGS N
< ="txt:"
>! CLIENT LIST NAME me IP 127.0.0.1 LIB-NAME redis-py LIB-VER 8.1.0 DB 0 CAPA "" TYPE normal
~ =?"(txt:)?id=\d+ addr=.* name=me .*\\n"
>! CLIENT LIST NAME me NOT-IP 127.0.0.1
< ="txt:"
>! CLIENT LIST NAME me NOT-LIB-NAME redis-py
< ="txt:"
>! CLIENT LIST NAME me NOT-LIB-VER 8.1.0
< ="txt:"
# What clients try and may be refused.
> CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type x
< -ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.
# A primary has nobody to send a client to. Unknown capabilities are ignored.
>! CLIENT CAPA redirect and-more
< +OK
>! CLIENT CAPA
< -ERR wrong number of arguments for 'client|capa' command
>! GET k
< null
>! CLIENT LIST CAPA r ID 0
~ .*
>! CLIENT IMPORT-SOURCE on
< -ERR Server is not in import mode
>! CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none
< -ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.
