# SPDX-License-Identifier: BSD-3-Clause
#
# MEMORY USAGE key [SAMPLES n].
@oracle
@key k
> MEMORY
< -ERR wrong number of arguments for 'memory' command
> MEMORY NOPE
< -ERR unknown subcommand 'NOPE'. Try MEMORY HELP.
> MEMORY USAGE
< -ERR wrong number of arguments for 'memory|usage' command
> MEMORY USAGE missing
< null
> MEMORY USAGE k
< :?
> memory usage k samples 5
< :?
> MEMORY USAGE k SAMPLES 0
< :?
> MEMORY USAGE k SAMPLES
< -ERR syntax error
> MEMORY USAGE k SAMPLES x
< -ERR value is not an integer or out of range
> MEMORY USAGE k SAMPLES -1
< -ERR syntax error
> MEMORY USAGE k NOPE
< -ERR syntax error
> MEMORY USAGE k NOPE 5
< -ERR syntax error
> MEMORY PURGE x
< -ERR wrong number of arguments for 'memory|purge' command
> MEMORY PURGE
< +OK
> MEMORY STATS x
< -ERR wrong number of arguments for 'memory|stats' command
>! MEMORY STATS
~ [%*]\d+ \| "peak.allocated" \| :\d+ \| "total.allocated" \| :\d+ \| "startup.allocated" \| :\d+ \| .* "keys.count" \| :1 \| .*
>! MEMORY DOCTOR
~ =?"(txt:)?[\d.]+ (bytes|KB|MB) are used \(at most .*\), of which .* by the filters of 1 keys; .* are resident\. Nothing stands out\.\\n"
>! MEMORY MALLOC-STATS
~ (?s)=?"(txt:)?(___ Begin jemalloc statistics ___|Stats not supported).*
>! MEMORY HELP
~ \*13 \| \+MEMORY <subcommand> .*
