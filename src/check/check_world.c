/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A service without sockets, threads and files: only the parts that the
 * executor of logs needs.
 */
#include "check/check_world.h"

#include "access/table.h"
#include "base/file.h"
#include "base/mem.h"
#include "check/check_chain.h"
#include "check/check_pick.h"
#include "check/check_snapshot.h"
#include "command/rows.h"
#include "core/keyed.h"
#include "keyspace/make.h"
#include "measure/sampler.h"
#include "measure/stats.h"
#include "replay/complete.h"
#include "replay/replay.h"
#include "snapshot/insert.h"

#include <stdio.h>

enum { DATABASES = 1024 /* the most that the option allows */ };

struct check_world {
    struct conf conf;
    struct service service;
    struct replay *replay;
    uint64_t left_out; /* deletions that check_world_load left out */
    bool accepts;      /* the former value of keyed_accept_all() */
};

struct check_world *
check_world_new(void)
{
    struct check_world *world = mem_zalloc(sizeof(*world));
    struct service *service = &world->service;

    world->accepts = keyed_accept_all(false);
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
    keyspace_free(world->service.keyspace);
    sampler_free(world->service.sampler);
    stats_free(world->service.stats);
    conf_fini(&world->conf);
    (void)keyed_accept_all(world->accepts);
    mem_free(world);
}

struct keyspace *
check_world_keyspace(struct check_world *world)
{
    return world->service.keyspace;
}

bool
check_world_load(struct check_world *world, int fd, bool leave_out,
                 char *ret_reason, size_t reason_size)
{
    struct insert insert = { .keyspace = world->service.keyspace,
                             .env = &world->service.obey_env,
                             .completion = &complete_calls,
                             .incomplete = leave_out };
    struct snapshot_visitor visitor = insert_visitor(&insert);
    const struct snapshot_stamp lost = { .keys = SNAPSHOT_KEYS_UNKNOWN };
    struct snapshot_error error = { 0 };
    enum snapshot_status status;

    if (leave_out) {
        visitor.passed_over = check_snapshot_leave_out;
    }
    status =
        snapshot_read(fd, &world->service.obey_env, &visitor, NULL, &error);
    if (status == SNAPSHOT_OK && !insert.ended && !insert_end(&insert, &lost)) {
        status = SNAPSHOT_STOPPED;
    }
    world->left_out = insert.left_out;
    insert_fini(&insert);
    if (status != SNAPSHOT_OK) {
        (void)snprintf(ret_reason, reason_size, "%s",
                       status == SNAPSHOT_STOPPED ? insert.why : error.text);
    }
    return status == SNAPSHOT_OK;
}

uint64_t
check_world_left_out(const struct check_world *world)
{
    return world->left_out;
}

void
check_world_tolerate(struct check_world *world)
{
    world->service.log_has_gaps = true;
}

bool
check_world_execute(struct check_world *world, struct slice commands,
                    char *ret_reason, size_t reason_size)
{
    return replay_group(world->replay, commands, ret_reason, reason_size);
}

/* ---- journals and paths -------------------------------------------------- */

struct execution {
    struct check_world *world;
    struct check_journal *journal;
};

static bool
execute_group(void *ctx, const struct check_increment *increment,
              const struct group *group, uint64_t end_position)
{
    struct execution *execution = ctx;
    char why[512] = "";

    (void)end_position;
    if (check_world_execute(execution->world, group->commands, why,
                            sizeof(why))) {
        return true;
    }
    check_chain_refuse(execution->journal, increment, group, why);
    return false;
}

bool
check_world_load_journal(struct check_world *world, struct check *check,
                         struct check_journal *journal, char *ret_reason,
                         size_t reason_size)
{
    struct execution execution = { world, journal };

    if (!check_world_load(world, journal->base_fd, false, ret_reason,
                          reason_size)) {
        return false;
    }
    check_chain_scan(check, journal, execute_group, &execution);
    return true;
}

static bool
load_snapshot(struct check_world *world, struct check *check, const char *path,
              char *ret_reason, size_t reason_size)
{
    uint64_t bytes = 0;
    int fd = -1;
    bool ok = check_file_open(check, path, &fd);

    if (ok) {
        (void)!file_size(fd, &bytes);
        tool_bar_begin(&check->tool, TOOL_UNIT_MIB, bytes);
        ok = check_world_load(world, fd, false, ret_reason, reason_size);
        file_close(fd);
    }
    return ok;
}

static bool
load_journal(struct check_world *world, struct check *check, const char *path,
             char *ret_reason, size_t reason_size)
{
    struct check_journal *journal = mem_zalloc(sizeof(*journal));
    bool ok = check_journal_open_found(check, path, journal);

    if (ok) {
        tool_bar_begin(&check->tool, TOOL_UNIT_MIB,
                       check_journal_bytes(journal));
        ok = check_world_load_journal(world, check, journal, ret_reason,
                                      reason_size);
        if (ok) {
            check_journal_complain(check, journal);
        }
        check_journal_close(journal);
    }
    mem_free(journal);
    return ok;
}

bool
check_world_load_path(struct check_world *world, struct check *check,
                      const char *path)
{
    char inner[CHECK_PATH_MAX];
    char why[512] = "";
    enum check_kind kind;
    bool ok;

    if (!check_pick_state(check, path, &kind, inner)) {
        return false;
    }
    if (kind == CHECK_KIND_INCREMENT) {
        tool_complain(&check->tool, CHECK_USAGE,
                      "%s: is one file of a journal: name its directory",
                      inner);
        return false;
    }
    ok = (kind == CHECK_KIND_SNAPSHOT ? load_snapshot : load_journal)(
        world, check, inner, why, sizeof(why));
    tool_bar_end(&check->tool);
    if (!ok && why[0] != '\0') {
        tool_complain(&check->tool, CHECK_DAMAGED, "%s: %s", inner, why);
    }
    return ok;
}
