/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that the server makes itself: they obey no limit, as those of a log,
 * and our own log has their effects.
 */
#include "replay/inject.h"

#include "../engine/dump_help.h"
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

/* The second server executes what the first has logged, as one that takes over
 * slots does. What it logs must make a third server equal, as a start does. */
static void
assert_logged_whole(const char *text)
{
    struct rig *first = rig_new_threads(2);
    struct rig *second = rig_new_threads(2);
    struct rig *third = rig_new_threads(2);
    struct inject *in = inject_new(second->worker);
    char reason[256] = "";

    run_text(first, text, false);
    effects_take(first);
    gate_enter(keyspace_gate(second->service.keyspace), 0);
    assert_true(
        inject_run(in, buf_slice(&first->effects.raw), reason, sizeof(reason)));
    gate_leave(keyspace_gate(second->service.keyspace), 0);
    inject_wake(in);
    effects_take(second);
    repeat_effects(third, buf_slice(&second->effects.raw));
    assert_true(compare_dumps(first, second) > 0);
    assert_true(compare_dumps(second, third) > 0);
    inject_free(in);
    rig_free(third);
    rig_free(second);
    rig_free(first);
}

TEST(the_log_has_all_that_injected_commands_have_done)
{
    assert_logged_whole("BF.INSERT k ITEMS a b a; BF.MADD k b c; BF.ADD k c");
    assert_logged_whole("BF.INSERT k DELETABLE ITEMS a b a");
    assert_logged_whole("BF.INSERT k DELETABLE ITEMS a b; BF.ADD k c; BF.DEL k "
                        "a; BF.INSERT k ITEMS d; BF.MDEL k b x");
    assert_logged_whole("BF.INSERT k DELETABLE PX 100000 CAPACITY 2 ITEMS a b "
                        "c d e f");
    assert_logged_whole("BF.INSERT k AGEING 9 ITEMS a b a; BF.MADD k b c");
    assert_logged_whole("BF.INSERT k PX 100000 ITEMS a; COPY k l; BF.MERGE m k "
                        "l; BF.RESET k; RENAME l n; PERSIST n");
}
