# SPDX-License-Identifier: BSD-3-Clause
#
# The reply of HELLO, and what it switches.
> HELLO 2 SETNAME me
~ \*14 \| "server" \| "redis" \| "version" \| "7\.\d+\.\d+" \| "proto" \| :2 \| "id" \| :\d+ \| "mode" \| "standalone" \| "role" \| "master" \| "modules" \| \*\d+.*
> CLIENT GETNAME
< "me"
> CLIENT NO-EVICT
< -ERR wrong number of arguments for 'client|no-evict' command
> HELLO 3 AUTH default x SETNAME other
~ %7 \| "server" \| "redis" \| "version" \| "7\.\d+\.\d+" \| "proto" \| :3 \| "id" \| :\d+ \| "mode" \| "standalone" \| "role" \| "master" \| "modules" \| \*\d+.*
> CLIENT GETNAME
< "other"
> HELLO
~ %7 \| "server" \| "redis" \| "version" \| "7\.\d+\.\d+" \| "proto" \| :3 .*
> HELLO 3 SETNAME ""
~ %7 .*
> CLIENT GETNAME
< _
# The same in both dialects: redis-py and jedis cache with "redis" 7.4 only.
> CONFIG SET dialect redis
< +OK
> HELLO
~ %7 \| "server" \| "redis" \| "version" \| "7\.4\.0" \| "proto" \| :3 .*
> CONFIG SET dialect valkey
< +OK
> HELLO
~ %7 \| "server" \| "redis" \| "version" \| "7\.4\.0" \| "proto" \| :3 .*
