/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a snapshot is written, and what is reported about it.
 */
#include "persist_rig.h"

TEST(save_that_was_asked_for_is_done_and_told)
{
    struct prig *rig = prig_start("no", "no");
    uint64_t ticket;

    (void)prig_write(rig);
    (void)prig_write(rig);
    assert_int_equal(prig_info(rig).changes, 2);
    ticket = persist_ask(rig->persist, PERSIST_SAVE);
    assert_true(atomic_load(&rig->pokes) > 0);
    assert_int_equal(persist_outcome(rig->persist, PERSIST_SAVE, ticket),
                     PERSIST_PENDING);
    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE, ticket) ==
                       PERSIST_DONE);
    assert_int_equal(prig_info(rig).changes, 0);
    assert_int_equal(prig_info(rig).saves, 1);
    assert_int_equal(prig_info(rig).walks, 1);
    assert_true(prig_info(rig).written.holds > 0);
    prig_restart_all(rig);
    prig_free(rig);
}

/* A write during the walk is in the file, one behind its end is not. */
TEST(save_has_what_there_is_at_its_end)
{
    struct prig *rig = prig_start("no", "no");
    uint64_t ticket;

    (void)prig_write(rig);
    ticket = persist_ask(rig->persist, PERSIST_SAVE);
    persist_tick(rig->persist); /* begins the walk */
    (void)prig_write(rig);
    PRIG_WAIT(rig, prig_info(rig).changes == 0); /* the walk has ended */
    (void)prig_write(rig);
    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE, ticket) ==
                       PERSIST_DONE);
    assert_int_equal(prig_info(rig).changes, 1);
    prig_restart(rig);
    assert_true(prig_has(rig, 0));
    assert_true(prig_has(rig, 1));
    assert_false(prig_has(rig, 2));
    prig_free(rig);
}

TEST(save_happens_by_itself_after_enough_changes)
{
    struct prig *rig = prig_start("no", "no");

    prig_set(rig, "save", "5 3");
    rig->persist->save.last_ms -= 5000;
    (void)prig_write(rig);
    (void)prig_write(rig);
    persist_tick(rig->persist);
    assert_false(prig_info(rig).saving);
    (void)prig_write(rig);
    PRIG_WAIT(rig, prig_info(rig).saves == 1);
    assert_true(prig_exists(rig, "bloomery.snapshot"));
    prig_free(rig);
}

TEST(save_that_failed_stops_writes_until_one_succeeds)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct prig *rig = prig_start("no", "no");
        uint64_t ticket;

        prig_set(rig, "save", "3600 1");
        (void)prig_write(rig);
        file_fail_at(calls[i], 1, ENOSPC, true);
        ticket = rig->watched = persist_ask(rig->persist, PERSIST_SAVE);
        PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE, ticket) ==
                           PERSIST_FAILED);
        (void)file_fail_clear();
        assert_int_equal(rig->writes, ERR_MISCONF_SAVE);
        assert_int_equal(rig->outcome, PERSIST_PENDING); /* refused first */
        assert_false(prig_info(rig).last_save_ok);
        assert_int_equal(prig_info(rig).save_failures, 1);
        assert_int_equal(prig_info(rig).changes, 1);
        prig_set(rig, "stop-writes-on-bgsave-error", "no");
        PRIG_WAIT(rig, rig->writes == OK);
        prig_set(rig, "stop-writes-on-bgsave-error", "yes");
        PRIG_WAIT(rig, rig->writes == ERR_MISCONF_SAVE);
        prig_save(rig);
        PRIG_WAIT(rig, rig->writes == OK);
        prig_free(rig);
    }
}

/* By the rules it is tried again later, not with every tick. */
TEST(save_waits_after_a_failure)
{
    struct prig *rig = prig_start("no", "no");

    prig_set(rig, "save", "5 1");
    rig->persist->save.last_ms -= 5000;
    file_fail_at(FILE_CALL_SYNC, 1, EIO, true);
    (void)prig_write(rig);
    PRIG_WAIT(rig, prig_info(rig).save_failures == 1);
    for (int i = 0; i < 100; i++) {
        persist_tick(rig->persist);
        assert_false(prig_info(rig).saving);
    }
    assert_int_equal(prig_info(rig).walks, 1);
    (void)file_fail_clear();
    prig_free(rig);
}
