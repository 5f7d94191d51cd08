/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a log says of slots is executed here, and nothing else of it.
 */
#include "slots/pull_log.h"

#include "../engine/group_help.h"
#include "../engine/rig.h"
#include "base/buf.h"
#include "keyspace/gate.h"
#include "keyspace/hash_slot.h"
#include "keyspace/key_hash.h"
#include "replay/inject.h"

struct copy {
    struct rig *rig;
    struct inject *inject;
    struct slot_set slots; /* of the tag {s} */
    struct pull_log *log;
    uint64_t position, sequence;
    char reason[256];
};

static void
open_copy(struct copy *copy)
{
    key_hash_by_slot(true);
    *copy = (struct copy){ .rig = rig_new_threads(2), .sequence = 1 };
    copy->inject = inject_new(copy->rig->worker);
    slot_set_add(&copy->slots, hash_slot_of(slice_lit("{s}")));
    copy->log =
        pull_log_new(copy->inject, copy->rig->service.keyspace, &copy->slots);
}

static void
close_copy(struct copy *copy)
{
    pull_log_free(copy->log);
    inject_free(copy->inject);
    rig_free(copy->rig);
    key_hash_by_slot(false);
}

static bool
group(struct copy *copy, const char *text)
{
    struct gate *gate = keyspace_gate(copy->rig->service.keyspace);
    struct buf commands = { 0 };
    bool good;

    encode(&commands, text);
    gate_enter(gate, 0);
    good = pull_log_group(copy->log, buf_slice(&commands), copy->position,
                          copy->sequence++, copy->reason, sizeof(copy->reason));
    gate_leave(gate, 0);
    inject_wake(copy->inject);
    copy->position += commands.len;
    buf_free(&commands);
    return good;
}

TEST(commands_on_the_slots_run_and_others_are_skipped)
{
    struct copy copy;

    open_copy(&copy);
    assert_true(group(&copy, "SELECT 0;" MAKE("a{s}", "1") " ITEMS x;" MAKE(
                                 "other", "2") " ITEMS x; BF.ADD a{s} y"));
    assert_true(group(&copy, "SELECT 0; BF.ADD other y; BF.ADD a{s} z"));
    run_and_expect(copy.rig, "BF.CARD a{s}; EXISTS other", ":3\r\n:0\r\n");
    close_copy(&copy);
}

TEST(transactions_and_databases_are_followed)
{
    struct copy copy;

    open_copy(&copy);
    assert_true(
        group(&copy, "SELECT 2; MULTI;" MAKE("a{s}", "1") " ITEMS x;" MAKE(
                         "other", "2") "; EXEC"));
    assert_true(
        group(&copy, "SELECT 2; BF.ADD a{s} y; SELECT 0;" MAKE("b{s}", "3")));
    run_and_expect(copy.rig,
                   "EXISTS a{s} b{s} other; SELECT 2; BF.CARD a{s}; EXISTS b{s}"
                   " other",
                   ":1\r\n+OK\r\n:2\r\n:0\r\n");
    close_copy(&copy);
}

/* Keys of other slots belong to clients of this server. */
TEST(a_flush_deletes_the_keys_of_the_slots_only)
{
    struct copy copy;

    open_copy(&copy);
    run_text(copy.rig, "BF.ADD mine x; SELECT 1; BF.ADD mine x; SELECT 0",
             false);
    assert_true(group(&copy, "SELECT 0;" MAKE("a{s}", "1") "; SELECT 1;" MAKE(
                                 "b{s}", "2") ";" MAKE("c{s}", "3")));
    assert_true(group(&copy, "SELECT 1; FLUSHDB;" MAKE("d{s}", "4")));
    run_and_expect(copy.rig,
                   "EXISTS mine a{s}; SELECT 1; EXISTS b{s} c{s}; EXISTS mine "
                   "d{s}; SELECT 0",
                   ":2\r\n+OK\r\n:0\r\n:2\r\n+OK\r\n");
    assert_true(group(&copy, "SELECT 1; FLUSHALL;" MAKE("e{s}", "5")));
    run_and_expect(copy.rig,
                   "EXISTS mine; EXISTS a{s}; SELECT 1; EXISTS d{s}; EXISTS "
                   "mine e{s}",
                   ":1\r\n:0\r\n+OK\r\n:0\r\n:2\r\n");
    close_copy(&copy);
}

TEST(what_needs_keys_of_other_slots_is_refused)
{
    static const char *const refused[] = { "SELECT 0; RENAME a{s} other",
                                           "SELECT 0; RENAME other a{s}",
                                           "SELECT 0; SWAPDB 0 1" };

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct copy copy;

        open_copy(&copy);
        assert_true(group(&copy, "SELECT 0;" MAKE("a{s}", "1")));
        assert_false(group(&copy, refused[i]));
        assert_non_null(strstr(copy.reason, "of others"));
        run_and_expect(copy.rig, "EXISTS a{s} other", ":1\r\n");
        close_copy(&copy);
    }
}

TEST(a_swap_of_a_database_with_itself_is_nothing)
{
    struct copy copy;

    open_copy(&copy);
    assert_true(group(&copy, "SELECT 0;" MAKE("a{s}", "1") "; SWAPDB 3 3;" MAKE(
                                 "b{s}", "2")));
    run_and_expect(copy.rig, "EXISTS a{s} b{s}", ":2\r\n");
    close_copy(&copy);
}

TEST(what_no_log_may_have_is_refused)
{
    struct copy copy;

    open_copy(&copy);
    assert_false(group(&copy, "SELECT 0; NOSUCHCOMMAND a{s}"));
    assert_non_null(strstr(copy.reason, "none that a log may have"));
    close_copy(&copy);
}
