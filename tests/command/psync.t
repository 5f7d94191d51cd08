# SPDX-License-Identifier: BSD-3-Clause
#
# PSYNC and SYNC: a Redis is told why not; a Bloomery introduces itself first.
> SYNC
< -ERR Only another Bloomery can follow this server (REPLICAOF there), because it streams its own journal, not the commands or RDB files of Redis. Use DUMP and RESTORE to copy filters to other servers, and SAVE or BGSAVE for a backup.
> SYNC x
< -ERR wrong number of arguments for 'sync' command
> PSYNC ?
< -ERR wrong number of arguments for 'psync' command
> PSYNC ? -1
< -ERR Only another Bloomery can follow this server (REPLICAOF there), because it streams its own journal, not the commands or RDB files of Redis. Use DUMP and RESTORE to copy filters to other servers, and SAVE or BGSAVE for a backup.
> MULTI
< +OK
> PSYNC ? -1
< -ERR Command not allowed inside a transaction
> SYNC
< -ERR Command not allowed inside a transaction
> EXEC
< -EXECABORT Transaction discarded because of previous errors.
> REPLCONF bloomery 1 run 0123456789abcdef0123456789abcdef01234567
~ \+BLOOMERY 1 [0-9a-f]{40} -
> SYNC
< -ERR a Bloomery follows with PSYNC
> PSYNC ? -1 x
< -ERR syntax error
> PSYNC 0123456789abcdef0123456789abcdef01234567 x
< -ERR value is not an integer or out of range
> PSYNC 0123456789abcdef0123456789abcdef01234567 -1
< -ERR value is not an integer or out of range
> PSYNC 0123456789abcdef 1
< -ERR not the id of a history
# Who follows and has nothing yet has nothing to hand on.
> REPLICAOF 127.0.0.1 1
< +OK
> PSYNC ? -1
< -NOMASTERLINK Can't SYNC while not connected with my master
> REPLICAOF NO ONE
< +OK
# RESET forgets the introduction.
> RESET
< +RESET
> PSYNC ? -1
~ -ERR Only another Bloomery can follow this server.*
