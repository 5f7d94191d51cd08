/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a server waits for the disk, can be forced and aborted, and keeps
 * other steps off.
 */
#include "persist/ending.h"

#include "persist_rig.h"

#include "base/file.h"

#include <errno.h>

TEST(ending_keeps_off_what_was_asked_for_until_it_is_aborted)
{
    struct prig *rig = prig_start("yes", "always");
    struct persist_end end = { .save = false };
    uint64_t ticket;

    (void)prig_write_released(rig);
    assert_true(prig_stop(rig, &end));
    ticket = persist_ask(rig->persist, PERSIST_SAVE);
    for (int i = 0; i < 20; i++) {
        persist_tick(rig->persist);
    }
    assert_int_equal(persist_outcome(rig->persist, PERSIST_SAVE, ticket),
                     PERSIST_PENDING);
    persist_end_abort(rig->persist);
    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE, ticket) ==
                       PERSIST_DONE);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(ending_breaks_off_a_rewrite_which_goes_on_after_an_abort)
{
    struct prig *rig = prig_start("yes", "always");
    struct persist_end end = { .save = false };

    (void)prig_write_released(rig);
    (void)persist_ask(rig->persist, PERSIST_REWRITE);
    PRIG_WAIT(rig, rig->persist->step == STEP_BASE);
    assert_true(prig_stop(rig, &end));
    assert_int_equal(rig->persist->step, STEP_NONE);
    persist_end_abort(rig->persist);
    PRIG_WAIT(rig, rig->persist->info.rewrites == 1);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(ending_fails_with_a_journal_that_cannot_be_written_unless_it_is_forced)
{
    struct prig *rig = prig_start("yes", "always");
    struct persist_end end = { .save = false };
    struct persist_missing missing;

    (void)prig_write_released(rig);
    assert_true(prig_stop(rig, &end));
    assert_false(persist_end_misses(rig->persist, &missing));
    persist_end_abort(rig->persist);
    file_fail_at(FILE_CALL_WRITE, 1, ENOSPC, true);
    (void)prig_write(rig);
    PRIG_WAIT(rig, prig_status(rig).faulted);
    assert_false(prig_stop(rig, &end));
    end.force = true;
    assert_true(prig_stop(rig, &end));
    assert_true(persist_end_misses(rig->persist, &missing));
    assert_true(missing.unwritten_bytes > 0);
    persist_end_abort(rig->persist);
    (void)file_fail_clear();
    PRIG_WAIT(rig, !prig_status(rig).faulted);
    end.force = false;
    assert_true(prig_stop(rig, &end));
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(ending_goes_on_if_something_is_appended_after_it)
{
    struct prig *rig = prig_start("yes", "no");
    struct persist_end end = { .save = true };

    (void)prig_write(rig);
    persist_end(rig->persist, &end);
    PRIG_WAIT(rig, persist_ending(rig->persist) == PERSIST_ENDED);
    (void)prig_write(rig);
    gate_raise(keyspace_gate(rig->ks), 0);
    assert_false(persist_end_settle(rig->persist));
    gate_lower(keyspace_gate(rig->ks), 0);
    PRIG_WAIT(rig, persist_ending(rig->persist) == PERSIST_ENDED);
    gate_raise(keyspace_gate(rig->ks), 0);
    assert_true(persist_end_settle(rig->persist));
    gate_lower(keyspace_gate(rig->ks), 0);
    prig_restart_all(rig);
    prig_free(rig);
}
