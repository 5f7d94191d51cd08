/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that the server makes itself: they obey no limit, as those of a log,
 * and our own log has their effects.
 */
#include "replay/inject.h"

#include "../engine/group_help.h"
#include "../engine/scene.h"
#include "keyspace/gate.h"

static bool
inject(struct inject *inject, struct rig *rig, const char *text,
       char *ret_reason, size_t size)
{
    struct gate *gate = keyspace_gate(rig->service.keyspace);
    struct buf commands = { 0 };
    bool done;

    encode(&commands, text);
    gate_enter(gate, 0);
    done = inject_run(inject, buf_slice(&commands), ret_reason, size);
    gate_leave(gate, 0);
    inject_wake(inject);
    buf_free(&commands);
    return done;
}

TEST(injected_commands_obey_and_act_on_the_selected_database)
{
    struct rig *rig = rig_new_threads(2);
    struct inject *in = inject_new(rig->worker);
    char reason[256] = "";

    inject_select(in, 3);
    assert_true(inject(in, rig, MAKE("k", "77") " ITEMS a b; BF.ADD k c",
                       reason, sizeof(reason)));
    inject_select(in, 0);
    assert_true(inject(in, rig, "DEL k", reason, sizeof(reason)));
    run_and_expect(rig, "EXISTS k; SELECT 3; BF.CARD k", ":0\r\n+OK\r\n:3\r\n");
    inject_free(in);
    rig_free(rig);
}

TEST(injected_commands_may_not_act_on_more_than_their_keys)
{
    struct rig *rig = rig_new_threads(2);
    struct inject *in = inject_new(rig->worker);
    char reason[256] = "";

    assert_true(inject(in, rig, MAKE("k", "77"), reason, sizeof(reason)));
    assert_false(inject(in, rig, "FLUSHALL", reason, sizeof(reason)));
    assert_non_null(strstr(reason, "more than its keys"));
    assert_false(inject(in, rig, "PING", reason, sizeof(reason)));
    run_and_expect(rig, "EXISTS k", ":1\r\n");
    inject_free(in);
    rig_free(rig);
}
