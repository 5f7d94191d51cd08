/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of INFO, section by section, and the server's names and versions.
 * Figures come from the metrics, the command statistics, the options and the
 * kernel at the moment of the call; an unknown figure is left out. Any loop,
 * inside a section of the gate.
 */
#pragma once

#include "engine/service.h"
#include "proto/reply.h"

/* The servers whose behaviour the dialects have. Clients branch on HELLO's
 * server and version: redis-py and jedis use client-side caching only with
 * "redis" from 7.4 on, so HELLO says that in both dialects. */
#define INFO_REDIS_VERSION  "7.4.0"
#define INFO_VALKEY_VERSION "9.0.0"

/* The name and version with which valkey-bloom presents itself. */
#define INFO_MODULE_NAME    "bf"
#define INFO_MODULE_VERSION 10001

enum info_section {
    INFO_SERVER,
    INFO_TLS,
    INFO_CLIENTS,
    INFO_MEMORY,
    INFO_PERSISTENCE,
    INFO_STATS,
    INFO_REPLICATION,
    INFO_CPU,
    INFO_MODULES,
    INFO_COMMANDSTATS,
    INFO_ERRORSTATS,
    INFO_LATENCYSTATS,
    INFO_CLUSTER,
    INFO_KEYSPACE,
    INFO_BF_CORE,
    INFO_BF_DEFRAG,
    INFO_SECTION_COUNT
};

/* Returns the sections that INFO's arguments select, a bit (1 << enum
 * info_section) for each. The arguments, in any letter case, are: nothing or
 * "default", "all", "everything" (all and the bf sections), "modules" (the
 * section modules and the bf sections), "bf" (both bf sections), or names of
 * sections. Unknown names select nothing. */
uint32_t info_select(const struct slice *names, size_t count);

/* Appends these sections in their fixed order, with a blank line between two.
 */
void info_write(const struct service *service, uint32_t selected,
                struct buf *text);

/* Replies with the array of loaded modules, for HELLO and MODULE LIST. */
void info_reply_modules(struct reply *reply);
