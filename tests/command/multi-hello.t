# HELLO inside of a transaction changes the protocol of what follows, the rest
# of that transaction included.
@proto 2
>! MULTI
< +OK
>! CLIENT TRACKINGINFO
< +QUEUED
>! HELLO 3
< +QUEUED
>! CLIENT TRACKINGINFO
< +QUEUED
>! HELLO 9
< +QUEUED
>! HELLO 3 SETNAME in-exec
< +QUEUED
>! CLIENT GETNAME
< +QUEUED
>! HELLO 2
< +QUEUED
>! CLIENT TRACKINGINFO
< +QUEUED
>! EXEC
~ \*8 \| \*6 \| "flags" .* %3 \| "flags" \| ~1 \| "off" \| "redirect" \| :-1 \| "prefixes" \| \*0 \| -NOPROTO unsupported protocol version \| %7 .* "in-exec" \| \*14 .* \*6 \| "flags" \| \*1 \| "off" \| "redirect" \| :-1 \| "prefixes" \| \*0
>! CLIENT TRACKINGINFO
< *6 | "flags" | *1 | "off" | "redirect" | :-1 | "prefixes" | *0
>! WATCH k
< +OK
>! MULTI
< +OK
>! HELLO 3
< +QUEUED
>! BF.ADD k x
< +QUEUED
>! BF.ADD k
< -ERR wrong number of arguments for 'BF.ADD' command
>! EXEC
< -EXECABORT Transaction discarded because of previous errors.
>! WATCH k
< +OK
>! BF.ADD k y
< :1
>! MULTI
< +OK
>! HELLO 3
< +QUEUED
# Nothing of it ran.
>! EXEC
< nullarray
>! CLIENT GETREDIR
< :-1
# Errors of single elements.
>! MULTI
< +OK
>! BF.RESERVE k 0.01 100
< +QUEUED
>! BF.ADD k z
< +QUEUED
>! BF.RESERVE n 7 100
< +QUEUED
>! BF.MADD k z w
< +QUEUED
>! EXEC
~ \*4 \| -ERR item exists \| :1 \| -ERR .* \| \*2 \| :0 \| :1
