# SPDX-License-Identifier: BSD-3-Clause
#
# LATENCY without events, and the histograms' form; events and figures:
# tests/scenario/test_latency.py.
@oracle
@server --enable-debug-command local
> LATENCY
< -ERR wrong number of arguments for 'latency' command
> LATENCY NOPE
< -ERR unknown subcommand 'NOPE'. Try LATENCY HELP.
> LATENCY HISTORY
< -ERR wrong number of arguments for 'latency|history' command
> LATENCY GRAPH
< -ERR wrong number of arguments for 'latency|graph' command
> LATENCY LATEST x
< -ERR wrong number of arguments for 'latency|latest' command
> LATENCY LATEST
< *0
> LATENCY HISTORY command
< *0
> LATENCY HISTORY nope
< *0
> LATENCY GRAPH command
< -ERR No samples available for event 'command'
> LATENCY GRAPH nope
< -ERR No samples available for event 'nope'
> LATENCY RESET
< :0
> LATENCY RESET command nope
< :0
>! LATENCY DOCTOR
~ =?"(txt:)?The latency monitor is switched off and has recorded nothing: .*\\n"
>! CONFIG SET latency-monitor-threshold 100
< +OK
>! LATENCY DOCTOR
~ =?"(txt:)?Nothing took 100 ms or longer .*\\n"
> CONFIG SET latency-monitor-threshold -1
~ -ERR .*argument must be between 0 and 9223372036854775807 inclusive
> CONFIG GET latency-tracking*
~ [%*][24] \| "latency-tracking.*
> CONFIG RESETSTAT
< +OK
> LATENCY HISTOGRAM nope
< %0
> LATENCY HISTOGRAM client
< %0
> CLIENT GETNAME
< null
> LATENCY HISTOGRAM client|getname
~ [%*][12] \| "client\|getname" \| [%*][24] \| "calls" \| :1 \| "histogram_usec" \| [%*][12] \| :\d+ \| :1
> LATENCY HISTOGRAM CLIENT
~ [%*][12] \| "client\|getname" \| [%*][24] \| "calls" \| :1 \| "histogram_usec" \| [%*][12] \| :\d+ \| :1
> LATENCY HISTOGRAM client|nope
< %0
> CONFIG SET latency-tracking no
< +OK
> CLIENT GETNAME
< null
> LATENCY HISTOGRAM client|getname
~ [%*][12] \| "client\|getname" \| [%*][24] \| "calls" \| :1 \| .*
> CONFIG SET latency-tracking yes
< +OK
> CLIENT GETNAME
< null
> LATENCY HISTOGRAM client|getname
~ [%*][12] \| "client\|getname" \| [%*][24] \| "calls" \| :2 \| .*
# Which percentiles.
> CONFIG SET latency-tracking-info-percentiles x
~ -ERR .*Invalid latency-tracking-info-percentiles parameters
> CONFIG SET latency-tracking-info-percentiles 101
~ -ERR .*latency-tracking-info-percentiles parameters should sit between \[0\.0,100\.0\]
> CONFIG SET latency-tracking-info-percentiles "50 99.99 1e1"
< +OK
> CONFIG GET latency-tracking-info-percentiles
< %1 | "latency-tracking-info-percentiles" | "50 99.99 10"
> CONFIG RESETSTAT
< +OK
> INFO latencystats
~ =?"(txt:)?# Latencystats\\r\\nlatency_percentiles_usec_config\|resetstat:p50=\d+\.\d{3},p99.99=\d+\.\d{3},p10=\d+\.\d{3}\\r\\n"
> CONFIG SET latency-tracking-info-percentiles ""
< +OK
> CONFIG GET latency-tracking-info-percentiles
< %1 | "latency-tracking-info-percentiles" | ""
>! LATENCY HELP
~ \*15 \| \+LATENCY <subcommand> .*
# An event.
>! CONFIG SET latency-monitor-threshold 2
< +OK
>! DEBUG SLEEP 0.003
< +OK
>! CONFIG SET latency-monitor-threshold 1000
< +OK
# On a busy machine other events may have been slow, too.
>! LATENCY LATEST
~ \*\d \| (.* \| )?\*4 \| "command" \| :\d{10} \| :([3-9]|\d\d+) \| :([3-9]|\d\d+)( \| .*)?
>! LATENCY HISTORY command
~ \*1 \| \*2 \| :\d{10} \| :([3-9]|\d\d+)
>! LATENCY GRAPH command
~ =?"(txt:)?command - high \d+ ms, low \d+ ms \(all time high \d+ ms\)\\n-{80}\\n#\\n\|\\n\|\\n\|\\n \\n\\n\d+\\n[sm]?\d?.*\\n"
>! LATENCY DOCTOR
~ =?"(txt:)?(.*; )?command took too long in 1 second, at worst \d+ ms, most recently \d+s ago with \d+ ms(; .*)?\.\\n"
>! LATENCY RESET nope command
< :1
>! LATENCY HISTORY command
< *0
>! LATENCY RESET
~ :\d
>! LATENCY LATEST
< *0
