# SPDX-License-Identifier: BSD-3-Clause
#
# OBJECT ENCODING | FREQ | HELP | IDLETIME | REFCOUNT.
@oracle
@key k
> OBJECT
< -ERR wrong number of arguments for 'object' command
> OBJECT NOPE k
< -ERR unknown subcommand 'NOPE'. Try OBJECT HELP.
> OBJECT ENCODING
< -ERR wrong number of arguments for 'object|encoding' command
> OBJECT ENCODING k k
< -ERR wrong number of arguments for 'object|encoding' command
> OBJECT REFCOUNT
< -ERR wrong number of arguments for 'object|refcount' command
> OBJECT IDLETIME
< -ERR wrong number of arguments for 'object|idletime' command
> OBJECT FREQ
< -ERR wrong number of arguments for 'object|freq' command
> OBJECT HELP x
< -ERR wrong number of arguments for 'object|help' command
> OBJECT ENCODING missing
< null
> OBJECT REFCOUNT missing
< null
> OBJECT IDLETIME missing
< null
> OBJECT FREQ missing
< null
>! OBJECT ENCODING k
< "native"
> OBJECT REFCOUNT k
< :1
> object idletime k
~ :[0-9]

# One of the two means something, as the policy is.
> OBJECT FREQ k
< -ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
> CONFIG SET maxmemory-policy allkeys-lfu
< +OK
> OBJECT IDLETIME k
< -ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
> OBJECT IDLETIME missing
< null
> CONFIG SET lfu-log-factor 0 lfu-decay-time 0
< +OK
@key made
> OBJECT FREQ made
< :5
> TOUCH made made made
< :3
> OBJECT FREQ made
< :8
# Neither to ask nor to look is a use.
> EXISTS made
< :1
> TTL made
< :-1
> TYPE made
~ .*
> OBJECT REFCOUNT made
< :1
> OBJECT FREQ made
< :8
> GET made
~ .*
> OBJECT FREQ made
< :9
> EXPIRE made 1000
< :1
> OBJECT FREQ made
< :10
> RENAME made renamed
< +OK
> OBJECT FREQ renamed
< :11
>! BF.EXISTS renamed a
~ :[01]
>! OBJECT FREQ renamed
< :12
# Each of a pipeline counts.
@raw! "*3\r\n$9\r\nBF.EXISTS\r\n$7\r\nrenamed\r\n$1\r\na\r\n*3\r\n$9\r\nBF.EXISTS\r\n$7\r\nrenamed\r\n$1\r\na\r\n*3\r\n$9\r\nBF.EXISTS\r\n$7\r\nrenamed\r\n$1\r\na\r\n"
~ :[01]
@raw! ""
~ :[01]
@raw! ""
~ :[01]
>! OBJECT FREQ renamed
< :15
# A client may want its uses not to count; but TOUCH is for counting.
>! CLIENT NO-TOUCH ON
< +OK
>! BF.EXISTS renamed a
~ :[01]
>! BF.ADD renamed new
< :1
>! OBJECT FREQ renamed
< :15
>! TOUCH renamed
< :1
>! OBJECT FREQ renamed
< :16
>! CLIENT NO-TOUCH OFF
< +OK
> CONFIG SET maxmemory-policy volatile-lfu
< +OK
> OBJECT FREQ renamed
~ :1[16]
> CONFIG SET maxmemory-policy volatile-ttl
< +OK
@key late
> OBJECT IDLETIME late
~ :[01]
@sleep_ms 2100
> OBJECT IDLETIME late
~ :[23]
> EXISTS late
< :1
> OBJECT IDLETIME late
~ :[23]
> TOUCH late
< :1
> OBJECT IDLETIME late
~ :[01]
>! OBJECT HELP
~ (?s).*OBJECT <subcommand>.*ENCODING <key>.*FREQ <key>.*HELP.*IDLETIME <key>.*REFCOUNT <key>.*
