/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shorthand for the .keys, .flags, .args and .tips of a row in
 * tbl/commands.def.
 */
#pragma once

#include "access/table.h"

#define ONE_KEY                                                                \
    {                                                                          \
        .first = 1, .last = 1, .step = 1                                       \
    }
/* The fields of the rows that answer that there are no scripts. */
#define SCRIPT_FIELDS                                                          \
    .arity = -1, .flags = CMD_LOADING | CMD_STALE | CMD_SKIP_MONITOR,          \
    .acl = ACL_SLOW | ACL_SCRIPTING, .group = "scripting", .since = "1.0.0",   \
    .complexity = "O(1)", .summary = "Refused: there are no scripts."

/* The kind and the flags of a row that writes. Rows cannot name CMD_WRITE
 * themselves, so a write without a kind does not compile. */
enum { CMD_WRITES = CMD_WRITE };
#define WRITES(kind, more) .logged = (kind), .flags = CMD_WRITES | (more)
#define CMD_WRITE          a_row_that_writes_needs_WRITES_with_its_kind

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

/* The .redis of a BF row: its name in dialect redis, then the other fields that
 * differ. */
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

/* The time to live of a filter that a command creates, with the words of SET in
 * Redis. */
#define TIME_TO_LIVE                                                           \
    ONEOF("expiration",                                                        \
          ARGS(INT("seconds", .token = "EX"),                                  \
               INT("milliseconds", .token = "PX"),                             \
               ARG(UNIX_TIME, "unix-time-seconds", .token = "EXAT"),           \
               ARG(UNIX_TIME, "unix-time-milliseconds", .token = "PXAT")),     \
          OPTIONAL)

/* The words that say whether a new filter forgets items. */
#define FORGETTING                                                             \
    ONEOF("forgetting",                                                        \
          ARGS(BLOCK("deletable", ARGS(TOKEN("deletable", "DELETABLE"),        \
                                       INT("region", OPTIONAL))),              \
               BLOCK("ageing", ARGS(INT("seconds", .token = "AGEING"),         \
                                    INT("generations", .token = "GENERATIONS", \
                                        OPTIONAL)))),                          \
          OPTIONAL)

/* How the filter that a command creates hashes its items. */
#define HASHING                                                                \
    ONEOF("hash", ARGS(TOKEN("plain", "PLAIN"), TOKEN("keyed", "KEYED")),      \
          .token = "HASH", OPTIONAL)

/* The filters of CLIENT LIST and CLIENT KILL that Redis 7.0 does not have. */
#define CLIENT_FILTER_STR(nm, tok)                                             \
    STR(nm, .token = (tok), OPTIONAL, .since = "9.0.0")
#define CLIENT_FILTERS_OF_VALKEY                                               \
    CLIENT_FILTER_STR("name", "NAME"),                                         \
        INT("idle", .token = "IDLE", OPTIONAL, .since = "9.0.0"),              \
        CLIENT_FILTER_STR("flags", "FLAGS"),                                   \
        CLIENT_FILTER_STR("lib-name", "LIB-NAME"),                             \
        CLIENT_FILTER_STR("lib-ver", "LIB-VER"),                               \
        INT("db", .token = "DB", OPTIONAL, .since = "9.0.0"),                  \
        CLIENT_FILTER_STR("capa", "CAPA"), CLIENT_FILTER_STR("ip", "IP"),      \
        ONEOF("not-client-type", ARGS(CLIENT_TYPES), .token = "NOT-TYPE",      \
              OPTIONAL, .since = "9.0.0"),                                     \
        INT("not-client-id", .token = "NOT-ID", OPTIONAL_MULTIPLE,             \
            .since = "9.0.0"),                                                 \
        CLIENT_FILTER_STR("not-username", "NOT-USER"),                         \
        CLIENT_FILTER_STR("not-addr", "NOT-ADDR"),                             \
        CLIENT_FILTER_STR("not-laddr", "NOT-LADDR"),                           \
        CLIENT_FILTER_STR("not-name", "NOT-NAME"),                             \
        CLIENT_FILTER_STR("not-flags", "NOT-FLAGS"),                           \
        CLIENT_FILTER_STR("not-lib-name", "NOT-LIB-NAME"),                     \
        CLIENT_FILTER_STR("not-lib-ver", "NOT-LIB-VER"),                       \
        INT("not-db", .token = "NOT-DB", OPTIONAL, .since = "9.0.0"),          \
        CLIENT_FILTER_STR("not-capa", "NOT-CAPA"),                             \
        CLIENT_FILTER_STR("not-ip", "NOT-IP")
#define CLIENT_TYPES                                                           \
    TOKEN("normal", "NORMAL"), TOKEN("master", "MASTER", .since = "3.2.0"),    \
        TOKEN("primary", "PRIMARY", .since = "8.0.0"),                         \
        TOKEN("slave", "SLAVE"),                                               \
        TOKEN("replica", "REPLICA", .since = "5.0.0"),                         \
        TOKEN("pubsub", "PUBSUB")
