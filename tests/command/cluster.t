# SPDX-License-Identifier: BSD-3-Clause
#
# CLUSTER and its subcommands without a cluster: refused, with the words that
# clients look for.
@oracle
> CLUSTER
< -ERR wrong number of arguments for 'cluster' command
> CLUSTER INFO
< -ERR This instance has cluster support disabled
> CLUSTER SLOTS
< -ERR This instance has cluster support disabled
> CLUSTER SHARDS
< -ERR This instance has cluster support disabled
> CLUSTER NODES
< -ERR This instance has cluster support disabled
> CLUSTER MYID
< -ERR This instance has cluster support disabled
> CLUSTER LINKS
< -ERR This instance has cluster support disabled
> CLUSTER HELP
< -ERR This instance has cluster support disabled
> CLUSTER KEYSLOT foo
< -ERR This instance has cluster support disabled
> cluster countkeysinslot 5
< -ERR This instance has cluster support disabled
> cluster countkeysinslot x
< -ERR This instance has cluster support disabled
> cluster getkeysinslot 5 x
< -ERR This instance has cluster support disabled
> cluster slots x
< -ERR wrong number of arguments for 'cluster|slots' command
> cluster keyslot
< -ERR wrong number of arguments for 'cluster|keyslot' command
> cluster foo
< -ERR unknown subcommand 'foo'. Try CLUSTER HELP.
