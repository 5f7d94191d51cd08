# What changes the connection itself, inside of a transaction.
@oracle
> MULTI
< +OK
> AUTH x
< +QUEUED
> AUTH default x
< +QUEUED
> AUTH a b c d
< +QUEUED
> EXEC
< *3
< -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
< +OK | -ERR syntax error
> MULTI
< +OK
> AUTH x
< +QUEUED
> AUTH default x
< +QUEUED
> AUTH nosuch x
< +QUEUED
> EXEC
< *3
< -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
< +OK | -WRONGPASS invalid username-password pair or user is disabled.
> WATCH k
< +OK
> MULTI
< +OK
> WATCH k
< -ERR WATCH inside MULTI is not allowed
> PING
< +QUEUED
> EXEC
< *1 | +PONG
> WATCH k
< +OK
> MULTI
< +OK
> UNWATCH
< +QUEUED
> PING
< +QUEUED
> EXEC
< *2 | +OK | +PONG
> MULTI
< +OK
> MULTI
< -ERR MULTI calls can not be nested
> EXEC
< *0
> MULTI
< +OK
> DISCARD
< +OK
> DISCARD
< -ERR DISCARD without MULTI
> EXEC
< -ERR EXEC without MULTI
> MULTI
< +OK
> SELECT 3
< +QUEUED
> SELECT 999
< +QUEUED
> SELECT x
< +QUEUED
> PING
< +QUEUED
> EXEC
< *4 | +OK | -ERR DB index is out of range | -ERR value is not an integer or out of range | +PONG
> SELECT 0
< +OK
> MULTI
< +OK
> CLIENT SETNAME inside
< +QUEUED
> CLIENT GETNAME
< +QUEUED
> CLIENT REPLY ON
< +QUEUED
> CLIENT TRACKING ON OPTIN
< +QUEUED
> CLIENT CACHING YES
< +QUEUED
> CLIENT TRACKINGINFO
< +QUEUED
> CLIENT TRACKING OFF
< +QUEUED
> CLIENT GETREDIR
< +QUEUED
> EXEC
< *8 | +OK | "inside" | +OK | +OK | +OK | %3 | "flags" | ~3 | "on" | "optin" | "caching-yes"
< "redirect" | :0 | "prefixes" | *0 | +OK | :-1
> CLIENT GETNAME
< "inside"
> MULTI
< +OK
> UNSUBSCRIBE nosuch
< +QUEUED
> PING
< +QUEUED
> EXEC
< *2 | >3 | "unsubscribe" | "nosuch" | :0 | +PONG
> MULTI
< +OK
> nosuch
< -ERR unknown command 'nosuch', with args beginning with:\x20
> PING
< +QUEUED
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> EXEC
< -ERR EXEC without MULTI
> MULTI
< +OK
> PTTL
< -ERR wrong number of arguments for 'pttl' command
> DISCARD
< +OK
> MULTI
< +OK
> PTTL
< -ERR wrong number of arguments for 'pttl' command
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> MULTI
< +OK
> EXPIRE nosuch x
< +QUEUED
> MOVE nosuch 0
< +QUEUED
> EXPIRE nosuch 1 NX XX
< +QUEUED
> CLIENT KILL ID 0
< +QUEUED
> CONFIG SET nosuch 1
< +QUEUED
> PING
< +QUEUED
> EXEC
< *6 | -ERR value is not an integer or out of range
< -ERR source and destination objects are the same
< -ERR NX and XX, GT or LT options at the same time are not compatible
< -ERR client-id should be greater than 0
< -ERR Unknown option or number of arguments for CONFIG SET - 'nosuch' | +PONG
> MULTI
< +OK
> SWAPDB 0 1
< +QUEUED
> SWAPDB 0 1
< +QUEUED
> SWAPDB 0 x
< +QUEUED
> FLUSHALL
< +QUEUED
> EXEC
< *4 | +OK | +OK | -ERR invalid second DB index | +OK
> MULTI
< +OK
> PING
< +QUEUED
> RESET
< +RESET
> EXEC
< -ERR EXEC without MULTI
> MULTI
< +OK
> PING
< +QUEUED
> QUIT
< +OK
@closed
