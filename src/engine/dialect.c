/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies a row, and puts the fields that differ in dialect redis over it.
 */
#include "engine/dialect.h"

struct command
dialect_row(const struct service *service, const struct command *command)
{
    const struct command *redis = command->redis;
    struct command row = *command;

    if (redis == NULL || !dialect_is_redis(service)) {
        return row;
    }
#define TAKE(field) row.field = redis->field != 0 ? redis->field : row.field
    TAKE(name);
    TAKE(arity);
    TAKE(flags);
    TAKE(acl);
    TAKE(key_use);
    TAKE(first_key_use);
    TAKE(group);
    TAKE(since);
    TAKE(complexity);
    TAKE(summary);
    TAKE(args);
    TAKE(tips);
#undef TAKE
    return row;
}
