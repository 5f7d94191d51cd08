/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A service without sockets, threads and files: only the parts that the
 * executor of logs needs.
 */
#include "tools/check_world.h"

#include "admin/sampler.h"
#include "admin/stats.h"
#include "base/mem.h"
#include "command/rows.h"
#include "engine/replay.h"
#include "engine/table.h"
#include "keyspace/make.h"
#include "persist/insert.h"
#include "proto/scan.h"
#include "tools/check_snapshot.h"

#include <stdio.h>

enum { DATABASES = 1024 /* the most that the option allows */ };

struct check_world {
    struct conf conf;
    struct service service;
    struct replay *replay;
    struct batch batch;
    char why[128];
};

struct check_world *
check_world_new(void)
{
    struct check_world *world = mem_zalloc(sizeof(*world));
    struct service *service = &world->service;

    command_table_init(command_rows);
    conf_init(&world->conf);
    service->conf = &world->conf;
    service->threads = 1;
    service->keyspace = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = DATABASES });
    service->stats = stats_new(1, CMD_ID_COUNT);
    service->sampler = sampler_new();
    service_follow_conf(service);
    world->replay = replay_new(service);
    return world;
}

void
check_world_free(struct check_world *world)
{
    if (world == NULL) {
        return;
    }
    replay_free(world->replay);
    batch_fini(&world->batch);
    keyspace_free(world->service.keyspace);
    sampler_free(world->service.sampler);
    stats_free(world->service.stats);
    conf_fini(&world->conf);
    mem_free(world);
}

struct keyspace *
check_world_keyspace(struct check_world *world)
{
    return world->service.keyspace;
}

static bool
insert(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct check_world *world = ctx;

    return insert_record(world->service.keyspace, &world->service.obey_env,
                         record, bloom, world->why, sizeof(world->why));
}

bool
check_world_load(struct check_world *world, int fd, bool leave_out,
                 char *ret_reason, size_t reason_size)
{
    struct snapshot_visitor visitor = { .filter = insert, .ctx = world };
    struct snapshot_error error = { 0 };
    enum snapshot_status status;

    if (leave_out) {
        visitor.passed_over = check_snapshot_leave_out;
    }
    status =
        snapshot_read(fd, &world->service.obey_env, &visitor, NULL, &error);
    if (status != SNAPSHOT_OK) {
        (void)snprintf(ret_reason, reason_size, "%s",
                       status == SNAPSHOT_STOPPED ? world->why : error.text);
    }
    return status == SNAPSHOT_OK;
}

bool
check_world_execute(struct check_world *world, struct slice commands,
                    char *ret_reason, size_t reason_size)
{
    return replay_group(world->replay, commands, ret_reason, reason_size);
}

uint64_t
check_world_rescue(struct check_world *world, struct slice commands)
{
    static const struct parse_limits limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                false };
    struct batch *batch = &world->batch;
    char why[256];
    uint64_t failed = 0;
    size_t at = 0;

    while (at < commands.len) {
        size_t begin = at;

        batch_clear(batch);
        if (scan_commands(commands, &limits, batch, &at) != OK || at == begin) {
            return failed + 1; /* no server writes this */
        }
        for (uint32_t i = 0; i < batch->count; i++) {
            size_t from = batch->command[i].begin;
            size_t to = i + 1 < batch->count ? batch->command[i + 1].begin : at;
            struct slice one = { commands.data + from, to - from };

            failed += !replay_group(world->replay, one, why, sizeof(why));
        }
    }
    return failed;
}
