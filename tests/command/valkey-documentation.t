# SPDX-License-Identifier: BSD-3-Clause
#
# The example conversation of the Valkey documentation page on Bloom filters
# (valkey.io/topics/bloomfilters), in its order. Where the page contradicts the
# module (a new filter with one item shows 2 items; usernames scales to 20470000)
# the module is right. Size is this server's own and checked in test_bloom.py.
# Its section Monitoring, which wants an empty server, is in
# valkey-documentation-monitoring.t.
> BF.RESERVE usernames 0.001 10000
< +OK
> BF.ADD usernames johnsmith
< :1
> BF.MADD usernames JaneDoe valkeyFan bloomEnjoyer
< *3 | :1 | :1 | :1
> BF.EXISTS usernames johnsmith
< :1
> BF.EXISTS usernames fake_user
< :0
> BF.MEXISTS usernames johnsmith fake_user JaneDoe
< *3 | :1 | :0 | :1
> BF.CARD usernames
< :4
> BF.INFO usernames
< *16 | +Capacity | :10000 | +Size | :? | +Number of filters | :1 | +Number of items inserted | :4
< | +Error rate | ,0.001 | +Expansion rate | :2 | +Tightening ratio | ,0.5 | +Max scaled capacity | :20470000
> BF.RESERVE limited_users 0.00001 1000 NONSCALING
< +OK
> BF.RESERVE expanding_users 0.001 10000 EXPANSION 4
< +OK

> BF.ADD default_filter item
< :1
> BF.INFO default_filter
< *16 | +Capacity | :100 | +Size | :? | +Number of filters | :1 | +Number of items inserted | :1
< | +Error rate | ,0.01 | +Expansion rate | :2 | +Tightening ratio | ,0.5 | +Max scaled capacity | :26214300

> BF.INSERT validate_scale_fail VALIDATESCALETO 26214301
< -ERR provided VALIDATESCALETO causes bloom object to exceed memory limit
> BF.INSERT validate_scale_valid VALIDATESCALETO 26214300
< *0
> BF.INFO validate_scale_valid SIZE
< :?
> BF.INFO validate_scale_valid MAXSCALEDCAPACITY
< :26214300

# A filter at its memory limit.
> BF.RESERVE full_filter 1e-9 1
< +OK
> BF.ADD full_filter item
< :1
> CONFIG SET bf.bloom-memory-usage-limit 1000
< +OK
> BF.RESERVE too_big 0.01 10000
< -ERR operation exceeds bloom object memory limit
> CONFIG SET bf.bloom-memory-usage-limit 1
< +OK
> bf.add full_filter ne_item
< -ERR operation exceeds bloom object memory limit
> CONFIG SET bf.bloom-memory-usage-limit 268435456
< +OK

> CONFIG SET bf.bloom-fp-rate 0.001
< +OK
> CONFIG SET bf.bloom-capacity 1000
< +OK
> CONFIG SET bf.bloom-expansion 4
< +OK
> CONFIG SET bf.bloom-tightening-ratio 0.6
< +OK
> CONFIG SET bf.bloom-use-random-seed no
< +OK
> BF.ADD configured item
< :1
> BF.INFO configured
< *16 | +Capacity | :1000 | +Size | :? | +Number of filters | :1 | +Number of items inserted | :1
< | +Error rate | ,0.001 | +Expansion rate | :4 | +Tightening ratio | ,0.6 | +Max scaled capacity | :?
> BF.CARD default_filter
< :1

# The examples of the command pages BF.RESERVE and BF.MADD.
> BF.RESERVE page 0.01 1000
< +OK
> BF.RESERVE page 0.1 1000000
< -ERR item exists
> BF.RESERVE bf_expansion 0.0001 5000 EXPANSION 3
< +OK
> BF.RESERVE bf_nonscaling 0.0001 5000 NONSCALING
< +OK
> BF.MADD madd item1 item2
< *2 | :1 | :1
> BF.MADD madd item2 item3
< *2 | :0 | :1
> BF.MADD key_new item1
< *1 | :1
