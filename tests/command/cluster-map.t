# SPDX-License-Identifier: BSD-3-Clause
#
# What a server in sidecar mode says about the cluster. The failed replica is in
# CLUSTER SHARDS and NODES, not in SLOTS.
@node a 17001 myself,master - 0-8191 16000
@node b 17002 master - 8192-15999
@node c 17003 slave a
@node d 17004 slave,fail a
@neighbour shard ssssssssssssssssssssssssssssssssssssssss
> CLUSTER MYID
< "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
> CLUSTER MYSHARDID
< "ssssssssssssssssssssssssssssssssssssssss"
> CLUSTER SLOTS
2< *3 | *4 | :0 | :8191 | *4 | "127.0.0.1" | :17001 | "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | *0
2< *4 | "127.0.0.1" | :17003 | "cccccccccccccccccccccccccccccccccccccccc" | *0
2< *3 | :8192 | :15999 | *4 | "127.0.0.1" | :17002 | "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" | *0
2< *4 | :16000 | :16000 | *4 | "127.0.0.1" | :17001 | "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | *0
2< *4 | "127.0.0.1" | :17003 | "cccccccccccccccccccccccccccccccccccccccc" | *0
3< *3 | *4 | :0 | :8191 | *4 | "127.0.0.1" | :17001 | "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | %0
3< *4 | "127.0.0.1" | :17003 | "cccccccccccccccccccccccccccccccccccccccc" | %0
3< *3 | :8192 | :15999 | *4 | "127.0.0.1" | :17002 | "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" | %0
3< *4 | :16000 | :16000 | *4 | "127.0.0.1" | :17001 | "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | %0
3< *4 | "127.0.0.1" | :17003 | "cccccccccccccccccccccccccccccccccccccccc" | %0
> CLUSTER SHARDS
< *2 | %2 | "slots" | *4 | :0 | :8191 | :16000 | :16000
< "nodes" | *3
< %7 | "id" | "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | "port" | :17001 | "ip" | "127.0.0.1" | "endpoint" | "127.0.0.1" | "role" | "master" | "replication-offset" | :? | "health" | "online"
< %7 | "id" | "cccccccccccccccccccccccccccccccccccccccc" | "port" | :17003 | "ip" | "127.0.0.1" | "endpoint" | "127.0.0.1" | "role" | "replica" | "replication-offset" | :0 | "health" | "online"
< %7 | "id" | "dddddddddddddddddddddddddddddddddddddddd" | "port" | :17004 | "ip" | "127.0.0.1" | "endpoint" | "127.0.0.1" | "role" | "replica" | "replication-offset" | :0 | "health" | "fail"
< %2 | "slots" | *2 | :8192 | :15999 | "nodes" | *1
< %7 | "id" | "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" | "port" | :17002 | "ip" | "127.0.0.1" | "endpoint" | "127.0.0.1" | "role" | "master" | "replication-offset" | :0 | "health" | "online"
> CLUSTER NODES
< ="txt:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 127.0.0.1:17001@26001 myself,master - 0 0 1 connected 0-8191 16000\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 127.0.0.1:17002@26002 master - 0 0 1 connected 8192-15999\ncccccccccccccccccccccccccccccccccccccccc 127.0.0.1:17003@26003 slave aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 0 1 connected\ndddddddddddddddddddddddddddddddddddddddd 127.0.0.1:17004@26004 slave,fail aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 0 1 connected\n"
> CLUSTER INFO
< ="txt:cluster_state:ok\r\ncluster_slots_assigned:16001\r\ncluster_slots_ok:16001\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:4\r\ncluster_size:2\r\ncluster_current_epoch:7\r\ncluster_my_epoch:3\r\ncluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n"
> CLUSTER LINKS
< *0
> CLUSTER HELP
~ \*\d+ \| .*CLUSTER <subcommand>.*MYSHARDID.*SLOTS.*
> CLUSTER KEYSLOT foo
< :12182
> CLUSTER KEYSLOT {}foo
< :9500
> CLUSTER KEYSLOT {user}.x
< :5474
> CLUSTER COUNTKEYSINSLOT 5474
< :0
> BF.ADD {user}.a x
< :1
> BF.ADD {user}.b x
< :1
> CLUSTER COUNTKEYSINSLOT 5474
< :2
> CLUSTER GETKEYSINSLOT 5474 0
< *0
> CLUSTER GETKEYSINSLOT 5474 10
~ \*2 \| "\{user\}\.[ab]" \| "\{user\}\.[ab]"
> DEL {user}.b
< :1
> CLUSTER GETKEYSINSLOT 5474 10
< *1 | "{user}.a"
> CLUSTER GETKEYSINSLOT 5475 10
< *0
> CLUSTER COUNTKEYSINSLOT 16384
< -ERR Invalid slot
> CLUSTER COUNTKEYSINSLOT -1
< -ERR Invalid slot
> CLUSTER COUNTKEYSINSLOT x
< -ERR value is not an integer or out of range
> CLUSTER GETKEYSINSLOT 16384 1
< -ERR Invalid slot or number of keys
> CLUSTER GETKEYSINSLOT 1 -1
< -ERR Invalid slot or number of keys
> CLUSTER GETKEYSINSLOT 1 x
< -ERR value is not an integer or out of range
> MULTI
< +OK
> CLUSTER COUNTKEYSINSLOT 5474
< +QUEUED
> CLUSTER MYID
< +QUEUED
> EXEC
< *2 | :1 | "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
