# SPDX-License-Identifier: BSD-3-Clause
#
# MEMORY USAGE key [SAMPLES n].
@oracle
@key k
> MEMORY
< -ERR wrong number of arguments for 'memory' command
> MEMORY NOPE
< -ERR unknown subcommand 'NOPE'. Try MEMORY HELP.
> MEMORY USAGE
< -ERR wrong number of arguments for 'memory|usage' command
> MEMORY USAGE missing
< null
> MEMORY USAGE k
< :?
> memory usage k samples 5
< :?
> MEMORY USAGE k SAMPLES 0
< :?
> MEMORY USAGE k SAMPLES
< -ERR syntax error
> MEMORY USAGE k SAMPLES x
< -ERR value is not an integer or out of range
> MEMORY USAGE k SAMPLES -1
< -ERR syntax error
> MEMORY USAGE k NOPE
< -ERR syntax error
> MEMORY USAGE k NOPE 5
< -ERR syntax error
