# CLIENT TRACKING, TRACKINGINFO, GETREDIR and CACHING as answers; what they do
# is in client-caching.t and tests/scenario/test_tracking.py.
@oracle
> CLIENT TRACKINGINFO
< %3 | "flags" | ~1 | "off" | "redirect" | :-1 | "prefixes" | *0
> CLIENT GETREDIR
< :-1
> CLIENT TRACKING
< -ERR wrong number of arguments for 'client|tracking' command
> CLIENT TRACKING on
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~1 | "on" | "redirect" | :0 | "prefixes" | *0
> CLIENT GETREDIR
< :0
> CLIENT TRACKING OFF
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~1 | "off" | "redirect" | :-1 | "prefixes" | *0
> CLIENT GETREDIR
< :-1
> CLIENT TRACKING OFF
< +OK
> CLIENT TRACKING maybe
< -ERR syntax error
> CLIENT TRACKING maybe BCAST
< -ERR syntax error
> CLIENT TRACKING ON nonsense
< -ERR syntax error
> CLIENT TRACKING ON REDIRECT
< -ERR syntax error
> CLIENT TRACKING ON PREFIX
< -ERR syntax error
> CLIENT TRACKING ON REDIRECT abc
< -ERR value is not an integer or out of range
> CLIENT TRACKING ON REDIRECT 0
< -ERR The client ID you want redirect to does not exist
> CLIENT TRACKING ON REDIRECT -1
< -ERR The client ID you want redirect to does not exist
> CLIENT TRACKING ON REDIRECT 999999
< -ERR The client ID you want redirect to does not exist
> CLIENT TRACKING maybe REDIRECT 999999
< -ERR The client ID you want redirect to does not exist
> CLIENT TRACKING OFF nonsense
< -ERR syntax error
> CLIENT TRACKING OFF PREFIX x
< +OK
> CLIENT TRACKING ON PREFIX x
< -ERR PREFIX option requires BCAST mode to be enabled
> CLIENT TRACKING ON BCAST OPTIN
< -ERR OPTIN and OPTOUT are not compatible with BCAST
> CLIENT TRACKING ON BCAST OPTOUT
< -ERR OPTIN and OPTOUT are not compatible with BCAST
> CLIENT TRACKING ON OPTIN OPTOUT
< -ERR You can't specify both OPTIN mode and OPTOUT mode
> CLIENT TRACKING ON BCAST PREFIX foo PREFIX foobar
< -ERR Prefix 'foo' overlaps with another provided prefix 'foobar'. Prefixes for a single client must not overlap.
> CLIENT TRACKING ON BCAST PREFIX foobar PREFIX foo
< -ERR Prefix 'foobar' overlaps with another provided prefix 'foo'. Prefixes for a single client must not overlap.
> CLIENT TRACKING ON BCAST PREFIX foo PREFIX foo
< -ERR Prefix 'foo' overlaps with another provided prefix 'foo'. Prefixes for a single client must not overlap.
> CLIENT TRACKING ON BCAST PREFIX x PREFIX ""
< -ERR Prefix 'x' overlaps with another provided prefix ''. Prefixes for a single client must not overlap.
> CLIENT TRACKINGINFO
< %3 | "flags" | ~1 | "off" | "redirect" | :-1 | "prefixes" | *0
# Prefixes add up, and are shown in the order of their bytes.
> CLIENT TRACKING ON BCAST PREFIX foo PREFIX bar
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "bcast" | "redirect" | :0 | "prefixes" | *2 | "bar" | "foo"
> CLIENT TRACKING ON BCAST PREFIX f
< -ERR Prefix 'f' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap.
> CLIENT TRACKING ON BCAST PREFIX barx
< -ERR Prefix 'barx' overlaps with an existing prefix 'bar'. Prefixes for a single client must not overlap.
> CLIENT TRACKING ON BCAST PREFIX foo
< -ERR Prefix 'foo' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap.
> CLIENT TRACKING ON BCAST NOLOOP PREFIX \xff PREFIX \x00 PREFIX zoo PREFIX a
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~3 | "on" | "bcast" | "noloop" | "redirect" | :0 | "prefixes" | *6 | "\x00" | "a"
< "bar" | "foo" | "zoo" | "\xff"
> CLIENT TRACKING ON BCAST
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "bcast" | "redirect" | :0 | "prefixes" | *7 | "" | "\x00" | "a" | "bar"
< "foo" | "zoo" | "\xff"
> CLIENT TRACKING ON BCAST PREFIX q
< -ERR Prefix 'q' overlaps with an existing prefix ''. Prefixes for a single client must not overlap.
> CLIENT TRACKING ON
< -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
> CLIENT TRACKING ON OPTIN
< -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
> CLIENT TRACKING ON BCAST OPTIN
< -ERR OPTIN and OPTOUT are not compatible with BCAST
> CLIENT TRACKING OFF BCAST PREFIX x
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~1 | "off" | "redirect" | :-1 | "prefixes" | *0
# OPTIN and OPTOUT.
> CLIENT CACHING
< -ERR wrong number of arguments for 'client|caching' command
> CLIENT CACHING YES
< -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
> CLIENT CACHING NO
< -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
> CLIENT CACHING maybe
< -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
> CLIENT TRACKING ON
< +OK
> CLIENT CACHING YES
< -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
> CLIENT CACHING NO
< -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
> CLIENT CACHING maybe
< -ERR syntax error
> CLIENT TRACKING ON OPTIN NOLOOP
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~3 | "on" | "optin" | "noloop" | "redirect" | :0 | "prefixes" | *0
> CLIENT TRACKING ON OPTOUT
< -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
> CLIENT CACHING yes
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~4 | "on" | "optin" | "caching-yes" | "noloop" | "redirect" | :0 | "prefixes" | *0
> CLIENT CACHING NO
< -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
> CLIENT CACHING maybe
< -ERR syntax error
> CLIENT TRACKINGINFO
< %3 | "flags" | ~4 | "on" | "optin" | "caching-yes" | "noloop" | "redirect" | :0 | "prefixes" | *0
> PING
< +PONG
> CLIENT TRACKINGINFO
< %3 | "flags" | ~3 | "on" | "optin" | "noloop" | "redirect" | :0 | "prefixes" | *0
> CLIENT TRACKING ON
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~1 | "on" | "redirect" | :0 | "prefixes" | *0
> CLIENT TRACKING ON OPTOUT
< +OK
> CLIENT CACHING NO
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~3 | "on" | "optout" | "caching-no" | "redirect" | :0 | "prefixes" | *0
> CLIENT CACHING YES
< -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
> CLIENT TRACKING ON OPTIN
< -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
> CLIENT TRACKING ON BCAST
< -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
> CLIENT TRACKING OFF
< +OK
# What CLIENT CACHING said lasts over other CLIENT commands, and no longer.
> CLIENT TRACKING ON OPTIN
< +OK
> CLIENT CACHING YES
< +OK
> CLIENT GETNAME
< null
> CLIENT SETNAME
< -ERR wrong number of arguments for 'client|setname' command
> CLIENT TRACKINGINFO
< %3 | "flags" | ~3 | "on" | "optin" | "caching-yes" | "redirect" | :0 | "prefixes" | *0
> nosuch
< -ERR unknown command 'nosuch', with args beginning with:\x20
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "optin" | "redirect" | :0 | "prefixes" | *0
> CLIENT CACHING YES
< +OK
> CLIENT nosuch
< -ERR unknown subcommand 'nosuch'. Try CLIENT HELP.
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "optin" | "redirect" | :0 | "prefixes" | *0
> CLIENT CACHING YES
< +OK
> PTTL
< -ERR wrong number of arguments for 'pttl' command
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "optin" | "redirect" | :0 | "prefixes" | *0
> CLIENT CACHING YES
< +OK
> MULTI
< +OK
> CLIENT TRACKINGINFO
< +QUEUED
> PTTL k
< +QUEUED
> CLIENT TRACKINGINFO
< +QUEUED
> EXEC
< *3 | %3 | "flags" | ~3 | "on" | "optin" | "caching-yes" | "redirect" | :0 | "prefixes" | *0 | :-2
< %3 | "flags" | ~3 | "on" | "optin" | "caching-yes" | "redirect" | :0 | "prefixes" | *0
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "optin" | "redirect" | :0 | "prefixes" | *0
> CLIENT CACHING YES
< +OK
> MULTI
< +OK
> DISCARD
< +OK
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "optin" | "redirect" | :0 | "prefixes" | *0
> MULTI
< +OK
> CLIENT CACHING YES
< +QUEUED
> CLIENT TRACKINGINFO
< +QUEUED
> EXEC
< *2 | +OK | %3 | "flags" | ~3 | "on" | "optin" | "caching-yes" | "redirect" | :0 | "prefixes" | *0
> CLIENT TRACKINGINFO
< %3 | "flags" | ~2 | "on" | "optin" | "redirect" | :0 | "prefixes" | *0
> RESET
< +RESET
> CLIENT TRACKINGINFO
< *6 | "flags" | *1 | "off" | "redirect" | :-1 | "prefixes" | *0
> CLIENT GETREDIR
< :-1
