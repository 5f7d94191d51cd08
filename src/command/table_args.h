/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shorthand for the .keys, .args and .tips of a row in tbl/commands.def.
 */
#pragma once

#include "command/table.h"

#define ONE_KEY                                                                \
    {                                                                          \
        .first = 1, .last = 1, .step = 1                                       \
    }
#define ALL_KEYS                                                               \
    {                                                                          \
        .first = 1, .last = -1, .step = 1                                      \
    }

#define ARGS(...)                                                              \
    (const struct command_arg[])                                               \
    {                                                                          \
        __VA_ARGS__,                                                           \
        {                                                                      \
            .name = NULL                                                       \
        }                                                                      \
    }
#define TIPS(...)                                                              \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__, NULL                                                      \
    }

/* The .redis of a BF row: its name there, then what else differs. */
#define REDIS(nm, ...)                                                         \
    .redis = &(const struct command)                                           \
    {                                                                          \
        .name = nm, .group = "module", __VA_ARGS__                             \
    }

/* One argument: its name (and its token), then further fields. */
#define ARG(t, ...)                                                            \
    {                                                                          \
        .type = ARG_##t, .name = __VA_ARGS__                                   \
    }
#define KEY(...)                                                               \
    {                                                                          \
        .type = ARG_KEY, .name = "key", __VA_ARGS__                            \
    }
#define KEY_NAMED(...) ARG(KEY, __VA_ARGS__)
#define STR(...)       ARG(STRING, __VA_ARGS__)
#define INT(...)       ARG(INTEGER, __VA_ARGS__)
#define DBL(...)       ARG(DOUBLE, __VA_ARGS__)
#define TOKEN(n, ...)                                                          \
    {                                                                          \
        .type = ARG_PURE_TOKEN, .name = n, .token = __VA_ARGS__                \
    }
#define ONEOF(n, ...)                                                          \
    {                                                                          \
        .type = ARG_ONEOF, .name = n, .nested = __VA_ARGS__                    \
    }
#define BLOCK(n, ...)                                                          \
    {                                                                          \
        .type = ARG_BLOCK, .name = n, .nested = __VA_ARGS__                    \
    }

#define OPTIONAL          .flags = ARG_OPTIONAL
#define MULTIPLE          .flags = ARG_MULTIPLE
#define OPTIONAL_MULTIPLE .flags = (ARG_OPTIONAL | ARG_MULTIPLE)
