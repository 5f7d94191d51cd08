/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The option dialect: whether BF.* replies and errors are those of valkey-bloom
 * or of RedisBloom. It changes under the raised gate. A command may be admitted
 * under the old dialect and run under the new one, so a handler relies on the
 * smaller of the two arities only. A command that is replayed (req->obey) means
 * the same in both; see bloom_make.h.
 */
#pragma once

#include "access/table.h"
#include "engine/service.h"

static inline bool
dialect_is_redis(const struct service *service)
{
    return __builtin_expect(
        atomic_load_explicit(&service->dialect, memory_order_relaxed) ==
            CONF_DIALECT_REDIS,
        0);
}

/* What TYPE calls a filter; SCAN's TYPE takes both. */
#define DIALECT_TYPE_VALKEY "bloomfltr"
#define DIALECT_TYPE_REDIS  "MBbloom--"
static inline const char *
dialect_type_name(const struct service *service)
{
    return dialect_is_redis(service) ? DIALECT_TYPE_REDIS : DIALECT_TYPE_VALKEY;
}

/* Returns the name that clients see: bf.add or BF.ADD. */
static inline const char *
dialect_command_name(const struct service *service,
                     const struct command *command)
{
    return command->redis != NULL && dialect_is_redis(service)
               ? command->redis->name
               : command->name;
}

/* Returns whether the arity of the command permits argc words. */
static inline bool
dialect_arity_fits(const struct service *service, const struct command *command,
                   size_t argc)
{
    if (command->redis != NULL && command->redis->arity != 0 &&
        dialect_is_redis(service)) {
        command = command->redis;
    }
    return command_arity_fits(command, argc);
}

/* Returns a copy of the row as COMMAND shows it. */
struct command dialect_row(const struct service *service,
                           const struct command *command);
