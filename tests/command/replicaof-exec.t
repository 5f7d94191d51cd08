# SPDX-License-Identifier: BSD-3-Clause
#
# What a Sentinel sends: all of it in one transaction. A write behind it finds
# the new role.
> MULTI
< +OK
> SLAVEOF 127.0.0.1 1
< +QUEUED
> CONFIG REWRITE
< +QUEUED
> CLIENT KILL TYPE normal
< +QUEUED
> CLIENT KILL TYPE pubsub
< +QUEUED
> EXEC
~ \*4 \| \+OK \| (\+OK|-ERR .*) \| :\d+ \| :0
> ROLE
~ \*5 \| "slave" \| "127.0.0.1" \| :1 \| "(connect|connecting)" \| :-1
> MULTI
< +OK
> SLAVEOF NO ONE
< +QUEUED
> CLIENT KILL TYPE normal
< +QUEUED
> ROLE
< +QUEUED
> EXEC
~ \*3 \| \+OK \| :\d+ \| \*3 \| "master" \| :\d+ \| \*0
> MULTI
< +OK
> BF.ADD k a
< +QUEUED
> REPLICAOF 127.0.0.1 1
< +QUEUED
> BF.ADD k b
< +QUEUED
> BF.EXISTS k a
< +QUEUED
> EXEC
< *4 | :1 | +OK | -READONLY You can't write against a read only replica. | :1
> REPLICAOF NO ONE
< +OK
# Who wants to be closed hears the answer of EXEC before.
> MULTI
< +OK
> CLIENT KILL TYPE normal SKIPME no
< +QUEUED
> PING
< +QUEUED
> EXEC
~ \*2 \| :[1-9]\d* \| \+PONG
@closed
