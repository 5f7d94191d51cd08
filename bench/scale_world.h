/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A service without loops, files and sockets, as the server makes one.
 */
#pragma once

#include "access/table.h"
#include "base/mem.h"
#include "engine/service.h"
#include "engine/slow.h"
#include "keyspace/make.h"
#include "measure/latency.h"
#include "measure/slowlog.h"

struct world {
    struct conf conf;
    struct service service;
};

static inline struct world *
world_new(unsigned threads)
{
    struct world *world = mem_zalloc(sizeof(*world));
    struct service *service = &world->service;

    conf_init(&world->conf);
    service->conf = &world->conf;
    service->threads = threads;
    service->keyspace = keyspace_new(
        &(struct keyspace_options){ .threads = threads, .databases = 16 });
    service->stats = stats_new(threads, CMD_ID_COUNT);
    service->slowlog = slowlog_new();
    service->latency = latency_new();
    service_follow_conf(service);
    slow_apply_conf(service);
    return world;
}

static inline void
world_free(struct world *world)
{
    keyspace_free(world->service.keyspace);
    latency_free(world->service.latency);
    slowlog_free(world->service.slowlog);
    stats_free(world->service.stats);
    conf_fini(&world->conf);
    mem_free(world);
}
