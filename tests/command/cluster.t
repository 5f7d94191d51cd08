# SPDX-License-Identifier: BSD-3-Clause
#
# CLUSTER and its subcommands: refused, with the word that clients look for.
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
> CLUSTER KEYSLOT foo
< -ERR This instance has cluster support disabled
> cluster countkeysinslot 5
