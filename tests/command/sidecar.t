# SPDX-License-Identifier: BSD-3-Clause
#
# SIDECAR on a server that stands beside no node of a cluster; transfers:
# tests/scenario/test_slot_transfer.py.
> SIDECAR
< -ERR wrong number of arguments for 'sidecar' command
> SIDECAR NOPE
< -ERR unknown subcommand 'NOPE'. Try SIDECAR HELP.
> SIDECAR PREPARE 1
< -ERR wrong number of arguments for 'sidecar|prepare' command
> SIDECAR PREPARE 1 localhost
< -ERR this server stands beside no node of a cluster (sidecar-of)
> SIDECAR PREPARE 1 localhost 1
< -ERR this server stands beside no node of a cluster (sidecar-of)
> SIDECAR ABANDON 0-5,7
< -ERR this server stands beside no node of a cluster (sidecar-of)
> SIDECAR FINISH 1 0123456789abcdef0123456789abcdef01234567 5
< -ERR this server stands beside no node of a cluster (sidecar-of)
> SIDECAR FORCE-SERVE 1
< -ERR this server stands beside no node of a cluster (sidecar-of)
> SIDECAR FORCE-SERVE
< -ERR wrong number of arguments for 'sidecar|force-serve' command
> SIDECAR LET-GO 1
< -ERR this server stands beside no node of a cluster (sidecar-of)
> SIDECAR LET-GO
< -ERR wrong number of arguments for 'sidecar|let-go' command
> SIDECAR STATUS
2< ""
3< ="txt:"
> SIDECAR STATUS x
< -ERR wrong number of arguments for 'sidecar|status' command
> REPLCONF slots 1
< -ERR this server stands beside no node of a cluster (sidecar-of), so its keys have no slots
