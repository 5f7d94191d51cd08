# SPDX-License-Identifier: BSD-3-Clause
#
# SIDECAR on a server that stands beside no node of a cluster; transfers:
# tests/scenario/test_slot_transfer.py.
> SIDECAR
< -ERR wrong number of arguments for 'sidecar' command
> SIDECAR NOPE
< -ERR unknown subcommand 'NOPE'. Try SIDECAR HELP.
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
