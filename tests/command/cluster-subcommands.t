# SPDX-License-Identifier: BSD-3-Clause
#
# Every subcommand of CLUSTER: the same refusal, after its number of words was
# checked.
@oracle
> CLUSTER ADDSLOTS 1
< -ERR This instance has cluster support disabled
> CLUSTER ADDSLOTS
< -ERR wrong number of arguments for 'cluster|addslots' command
> CLUSTER ADDSLOTSRANGE 1 1
< -ERR This instance has cluster support disabled
> CLUSTER ADDSLOTSRANGE 1
< -ERR wrong number of arguments for 'cluster|addslotsrange' command
> CLUSTER BUMPEPOCH
< -ERR This instance has cluster support disabled
> CLUSTER BUMPEPOCH x
< -ERR wrong number of arguments for 'cluster|bumpepoch' command
> CLUSTER COUNT-FAILURE-REPORTS 1
< -ERR This instance has cluster support disabled
> CLUSTER COUNT-FAILURE-REPORTS 1 x
< -ERR wrong number of arguments for 'cluster|count-failure-reports' command
> CLUSTER COUNTKEYSINSLOT 1
< -ERR This instance has cluster support disabled
> CLUSTER COUNTKEYSINSLOT 1 x
< -ERR wrong number of arguments for 'cluster|countkeysinslot' command
> CLUSTER DELSLOTS 1
< -ERR This instance has cluster support disabled
> CLUSTER DELSLOTS
< -ERR wrong number of arguments for 'cluster|delslots' command
> CLUSTER DELSLOTSRANGE 1 1
< -ERR This instance has cluster support disabled
> CLUSTER DELSLOTSRANGE 1
< -ERR wrong number of arguments for 'cluster|delslotsrange' command
> CLUSTER FAILOVER
< -ERR This instance has cluster support disabled
> CLUSTER FLUSHSLOTS
< -ERR This instance has cluster support disabled
> CLUSTER FLUSHSLOTS x
< -ERR wrong number of arguments for 'cluster|flushslots' command
> CLUSTER FORGET 1
< -ERR This instance has cluster support disabled
> CLUSTER FORGET 1 x
< -ERR wrong number of arguments for 'cluster|forget' command
> CLUSTER GETKEYSINSLOT 1 1
< -ERR This instance has cluster support disabled
> CLUSTER GETKEYSINSLOT 1 1 x
< -ERR wrong number of arguments for 'cluster|getkeysinslot' command
> CLUSTER INFO
< -ERR This instance has cluster support disabled
> CLUSTER INFO x
< -ERR wrong number of arguments for 'cluster|info' command
> CLUSTER KEYSLOT 1
< -ERR This instance has cluster support disabled
> CLUSTER KEYSLOT 1 x
< -ERR wrong number of arguments for 'cluster|keyslot' command
> CLUSTER LINKS
< -ERR This instance has cluster support disabled
> CLUSTER LINKS x
< -ERR wrong number of arguments for 'cluster|links' command
> CLUSTER MEET 1 1
< -ERR This instance has cluster support disabled
> CLUSTER MEET 1
< -ERR wrong number of arguments for 'cluster|meet' command
> CLUSTER MYID
< -ERR This instance has cluster support disabled
> CLUSTER MYID x
< -ERR wrong number of arguments for 'cluster|myid' command
> CLUSTER NODES
< -ERR This instance has cluster support disabled
> CLUSTER NODES x
< -ERR wrong number of arguments for 'cluster|nodes' command
> CLUSTER REPLICAS 1
< -ERR This instance has cluster support disabled
> CLUSTER REPLICAS 1 x
< -ERR wrong number of arguments for 'cluster|replicas' command
> CLUSTER REPLICATE 1
< -ERR This instance has cluster support disabled
> CLUSTER REPLICATE 1 x
< -ERR wrong number of arguments for 'cluster|replicate' command
> CLUSTER RESET
< -ERR This instance has cluster support disabled
> CLUSTER SAVECONFIG
< -ERR This instance has cluster support disabled
> CLUSTER SAVECONFIG x
< -ERR wrong number of arguments for 'cluster|saveconfig' command
> CLUSTER SET-CONFIG-EPOCH 1
< -ERR This instance has cluster support disabled
> CLUSTER SET-CONFIG-EPOCH 1 x
< -ERR wrong number of arguments for 'cluster|set-config-epoch' command
> CLUSTER SETSLOT 1 1
< -ERR This instance has cluster support disabled
> CLUSTER SETSLOT 1
< -ERR wrong number of arguments for 'cluster|setslot' command
> CLUSTER SHARDS
< -ERR This instance has cluster support disabled
> CLUSTER SHARDS x
< -ERR wrong number of arguments for 'cluster|shards' command
> CLUSTER SLAVES 1
< -ERR This instance has cluster support disabled
> CLUSTER SLAVES 1 x
< -ERR wrong number of arguments for 'cluster|slaves' command
> CLUSTER SLOTS
< -ERR This instance has cluster support disabled
> CLUSTER SLOTS x
< -ERR wrong number of arguments for 'cluster|slots' command
> CLUSTER HELP
< -ERR This instance has cluster support disabled
