# SPDX-License-Identifier: BSD-3-Clause
#
# SIDECAR on a server beside a node. The server of node b cannot be reached.
@node a 17001 myself,master - 0-8191
@node b 17002 master - 8192-16383
> SIDECAR HELP
~ .*SIDECAR <subcommand>.*HOLDINGS.*STATUS.*
> SIDECAR HOLDINGS
~ \*3 \| "[0-9a-f]{40}" \| :\d+ \| "bloomery-slots 1\\nnode a{40}\\nfollows -\\nhistory -\\nclaimed (-|0-8191)\\nheld 0-8191 1\\nknown 0-8191 1\\nchecksum [0-9a-f]{16}\\n"
> SIDECAR FENCE some bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 5 owner 2 0-3
< -ERR fence all, empty, handoff or come
> SIDECAR FENCE all b 5 owner 2 0-3
< -ERR a node's id has 40 characters
> SIDECAR FENCE all bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb -5 owner 2 0-3
< -ERR syntax error
> SIDECAR FENCE all bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 5 friend 2 0-3
< -ERR syntax error
> SIDECAR FENCE all bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 5 owner 2 3-0
< -ERR slots are numbers below 16384 and ranges of them, such as 0-5460,9000
> SIDECAR FENCE all bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 1 owner 2 0-3
< -ERR its epoch is not higher than ours
> SIDECAR FENCE all bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 5 owner 9 0-3
< -ERR another daemon may have newer data of a slot
> SIDECAR FENCE all bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 5 owner 2 9000
< -ERR a slot is not held here
> SIDECAR FENCE all cccccccccccccccccccccccccccccccccccccccc 5 owner 2 0-3
< -ERR its node is not in our node's view of the cluster
> SIDECAR FORCE-SERVE 5
< -ERR slot 5 is served: it is not missing
> SIDECAR FORCE-SERVE 5 FROM bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
< -ERR slot 5 is served: it is not missing
> SIDECAR FORCE-SERVE 5 FROM b
< -ERR a node's id has 40 characters
> SIDECAR FORCE-SERVE 5 FROM
< -ERR syntax error
> SIDECAR COUNT 5
~ \*2 \| "bloomery-slots 1.*" \| ""
> SIDECAR COUNT 5-
< -ERR slots are numbers below 16384 and ranges of them, such as 0-5460,9000
> SIDECAR FORCE-SERVE 0-9000
< -ERR slot 0 is served: it is not missing
> SIDECAR FORCE-SERVE 9000
< -ERR the node beside this server does not own slot 9000
> SIDECAR LET-GO 5
< -ERR slot 5 is owned by the node beside this server
> SIDECAR LET-GO 9000
< -ERR slot 9000 is not held here
> SIDECAR LET-GO 0-
< -ERR slots are numbers below 16384 and ranges of them, such as 0-5460,9000
> SIDECAR FORCE-SERVE all
< -ERR slots are numbers below 16384 and ranges of them, such as 0-5460,9000
> SIDECAR FORCE-SERVE ""
< -ERR slots are numbers below 16384 and ranges of them, such as 0-5460,9000
# HELD: the node has not lost the slot.
> CLUSTER KEYSLOT x2
< :6113
> BF.ADD x2 item
< :1
> SIDECAR COUNT 0-8191
~ \*2 \| "bloomery-slots 1.*" \| "6113 1 1\\n"
> SIDECAR FENCE empty bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 5 owner 2 6113
< *1 | "keys"
> SIDECAR FENCE all bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 5 owner 2 6113
~ \*4 \| "fenced" \| "[0-9a-f]{40}" \| :\d+ \| "6113"
> BF.EXISTS x2 item
< -TRYAGAIN Multiple keys request during rehashing of slot
> SIDECAR STATUS
~ .*slot_pulls:\d+.*
