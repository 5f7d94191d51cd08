# Which reads are remembered, and what invalidates them: in RESP3 by pushes to
# the client itself.
@oracle
@proto 3
@on b
@key k k2
@on a
> CLIENT TRACKING ON
< +OK
> PTTL k
< :-1
@on b
> DEL k k2
< :2
@on a
@read
< >2 | "invalidate" | *1 | "k"
# It is told once, until it reads again; also of a key that was not there.
> EXISTS k k k2
< :0
@on b
@key k k2
@on a
@read
< >2 | "invalidate" | *1 | "k"
@read
< >2 | "invalidate" | *1 | "k2"
> TOUCH k
< :1
> EXPIRETIME k2
< :-1
@on b
> EXPIRE k 100
< :1
> PERSIST k2
< :0
> EXPIRE k2 100 XX
< :0
@on a
@read
< >2 | "invalidate" | *1 | "k"
> EXISTS k
< :1
@on b
> PERSIST k
< :1
> PERSIST k
< :0
@on a
@read
< >2 | "invalidate" | *1 | "k"
> DUMP nosuch
< _
> MEMORY USAGE nosuch
< _
@on b
@key nosuch
@on a
@read
< >2 | "invalidate" | *1 | "nosuch"
# RENAME, COPY, MOVE, RESTORE of what is there.
> EXISTS k other
< :1
@on b
> RENAME k other
< +OK
@on a
@read
< >2 | "invalidate" | *1 | "k"
@read
< >2 | "invalidate" | *1 | "other"
> EXISTS k other
< :1
@on b
> COPY other k
< :1
@on a
@read
< >2 | "invalidate" | *1 | "k"
> EXISTS k other
< :2
@on b
> MOVE k 1
< :1
@on a
@read
< >2 | "invalidate" | *1 | "k"
# WATCH, SCAN and DBSIZE are no reads of keys.
> WATCH other
< +OK
> SCAN 0 COUNT 1000 MATCH nothing
< *2 | "0" | *0
> UNWATCH
< +OK
> EXISTS k2
< :1
@on b
> DEL k2
< :1
@on a
@read
< >2 | "invalidate" | *1 | "k2"
# The end of its time.
@on b
@key t
@on a
> EXISTS t
< :1
@on b
> PEXPIRE t 30
< :1
@on a
@read
< >2 | "invalidate" | *1 | "t"
# One's own changes come behind the reply; a transaction's behind it all.
@on b
@key k
@on a
> EXISTS k
< :1
> DEL k
< :1
@read
< >2 | "invalidate" | *1 | "k"
@on b
@key k
@on a
> EXISTS k
< :1
> MULTI
< +OK
> EXISTS k
< +QUEUED
> DEL k
< +QUEUED
> EXISTS k
< +QUEUED
> EXEC
< *3 | :1 | :1 | :0
@read
< >2 | "invalidate" | *1 | "k"
> EXISTS k
< :0
> FLUSHALL
< +OK
@read
< >2 | "invalidate" | _
@on b
> FLUSHDB
< +OK
@on a
@read
< >2 | "invalidate" | _
# NOLOOP: not one's own; but the key is forgotten then.
> CLIENT TRACKING ON NOLOOP
< +OK
@on b
@key k
@on a
> EXISTS k
< :1
> DEL k
< :1
> EXISTS k
< :0
@on b
@key k2
@on b
> SELECT 0
< +OK
> DEL k k2
< :1
@on a
> EXISTS k
< :0
@on b
> PING
< +PONG
# OPTIN: only what follows CLIENT CACHING YES.
@on c
> CLIENT TRACKING ON OPTIN
< +OK
@on b
@key k1
@on c
> EXISTS k1
< :1
> CLIENT CACHING YES
< +OK
> EXISTS k2 k3
< :0
> EXISTS k4
< :0
@on b
@key k1 k4 k2
@on c
@read
< >2 | "invalidate" | *1 | "k2"
> CLIENT CACHING YES
< +OK
> MULTI
< +OK
> PTTL k5
< +QUEUED
> EXISTS k6
< +QUEUED
> EXEC
< *2 | :-2 | :0
> EXISTS k7
< :0
@on b
@key k7 k6 k5
@on c
@read
< >2 | "invalidate" | *1 | "k6"
@read
< >2 | "invalidate" | *1 | "k5"
> CLIENT TRACKING OFF
< +OK
# OPTOUT: all but what follows CLIENT CACHING NO.
> CLIENT TRACKING ON OPTOUT
< +OK
> EXISTS o1
< :0
> CLIENT CACHING NO
< +OK
> EXISTS o2
< :0
> EXISTS o3
< :0
@on b
@key o2 o1 o3
@on c
@read
< >2 | "invalidate" | *1 | "o1"
@read
< >2 | "invalidate" | *1 | "o3"
> CLIENT TRACKING OFF
< +OK
> EXISTS o3
< :1
@on b
> DEL o3 o2 o1
< :3
# BCAST: every change to names with a prefix, read or not.
@on d
> CLIENT TRACKING ON BCAST PREFIX user: PREFIX item:
< +OK
@on b
@key user:1
@on d
@read
< >2 | "invalidate" | *1 | "user:1"
@on b
@key item:2
@on d
@read
< >2 | "invalidate" | *1 | "item:2"
@on b
> DEL other:3 nosuch user:1
< :1
@on d
@read
< >2 | "invalidate" | *1 | "user:1"
> CLIENT TRACKING OFF
< +OK
> CLIENT TRACKING ON BCAST NOLOOP
< +OK
> DEL item:2
< :1
> RESET
< +RESET
> PING
< +PONG
