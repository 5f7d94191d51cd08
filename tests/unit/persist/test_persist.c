/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole of persistence, driven by hand: a journal switched on and off,
 * faults and how clients notice them, the end.
 */
#include "persist_rig.h"

TEST(persist_loads_what_the_journal_has)
{
    struct prig *rig = prig_start("yes", "always");

    for (int i = 0; i < 100; i++) {
        (void)prig_write_released(rig);
    }
    for (int i = 0; i < 3; i++) {
        prig_restart_all(rig);
        (void)prig_write_released(rig);
    }
    prig_free(rig);
}

TEST(persist_switches_a_journal_on_and_off_while_it_runs)
{
    struct prig *rig = prig_start("no", "always");

    (void)prig_write(rig);
    assert_null(rig->journal);
    for (int i = 0; i < 3; i++) {
        prig_set(rig, "appendonly", "yes");
        PRIG_WAIT(rig, rig->journal != NULL);
        assert_int_equal(prig_released(rig), UINT64_MAX);
        PRIG_WAIT(rig, prig_status(rig).on && !prig_status(rig).building);
        (void)prig_write_released(rig);
        assert_true(prig_released(rig) < UINT64_MAX);
        prig_restart_all(rig);

        prig_set(rig, "appendonly", "no");
        PRIG_WAIT(rig, rig->journal == NULL && !prig_status(rig).closing);
        assert_int_equal(prig_released(rig), UINT64_MAX);
    }
    prig_free(rig);
}

/* A fault at every call, once: data that was released is there after kill -9,
 * and the journal works again without a restart. */
TEST(persist_survives_every_single_fault_of_a_journal_at_work)
{
    static const enum file_call calls[] = { FILE_CALL_WRITE, FILE_CALL_SYNC };

    for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct prig *rig = prig_start("yes", "always");

            file_fail_at(calls[c], nth, EIO, false);
            for (int i = 0; i < 5; i++) {
                (void)prig_write_released(rig);
            }
            fired = file_fail_clear();
            assert_int_equal(rig->writes, OK);
            assert_false(prig_status(rig).faulted);
            assert_int_equal(prig_status(rig).suspect_files, fired);
            prig_restart_all(rig);
            prig_free(rig);
        }
    }
}

TEST(persist_refuses_writes_while_the_disk_is_gone_and_takes_them_after)
{
    struct prig *rig = prig_start("yes", "everysec");
    uint64_t position = prig_write(rig);

    prig_set(rig, "misconf-after", "0");
    PRIG_WAIT(rig, prig_released(rig) >= position);
    file_fail_at(FILE_CALL_WRITE, 1, ENOSPC, true);
    position = prig_write(rig);
    PRIG_WAIT(rig, rig->writes == ERR_MISCONF_JOURNAL);
    assert_int_equal(rig->ping, ERR_MISCONF_JOURNAL);
    assert_true(atomic_load(persist_gives_up(rig->persist)));
    assert_true(prig_released(rig) < position);
    (void)file_fail_clear();
    PRIG_WAIT(rig, rig->writes == OK);
    assert_int_equal(rig->ping, OK);
    assert_false(atomic_load(persist_gives_up(rig->persist)));
    assert_true(prig_released(rig) >= position);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(persist_stop_leaves_everything_on_the_disk)
{
    struct prig *rig = prig_start("yes", "no");
    struct persist_end end = { .save = false };

    for (int i = 0; i < 10; i++) {
        (void)prig_write(rig);
    }
    assert_true(prig_stop(rig, &end));
    assert_int_equal(prig_status(rig).synced, journal_position(rig->journal));
    assert_false(prig_exists(rig, "bloomery.snapshot"));
    end.save = true;
    assert_true(prig_stop(rig, &end));
    assert_true(prig_exists(rig, "bloomery.snapshot"));
    persist_halt(rig->persist);
    prig_close(rig);
    assert_true(prig_open(rig) && prig_load(rig));
    prig_check_all(rig);
    prig_free(rig);
}

TEST(persist_stop_fails_if_it_cannot_save_unless_it_is_forced)
{
    struct prig *rig = prig_start("no", "no");
    struct persist_end end = { .save = true };

    (void)prig_write(rig);
    file_fail_at(FILE_CALL_SYNC, 1, EIO, true);
    assert_false(prig_stop(rig, &end));
    end.force = true;
    assert_true(prig_stop(rig, &end));
    (void)file_fail_clear();
    prig_free(rig);
}

/* The N-th allocation of loop 0 fails: at worst a write is refused. */
TEST(persist_survives_every_failing_allocation)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct prig *rig = prig_start("yes", "always");

        for (int i = 0; i < 3; i++) {
            (void)prig_write(rig);
        }
        (void)persist_ask(rig->persist, PERSIST_REWRITE);
        (void)persist_ask(rig->persist, PERSIST_SAVE);
        mem_fail_at(nth);
        for (int i = 0; i < 20; i++) {
            persist_tick(rig->persist);
            (void)poll(NULL, 0, 1);
        }
        fired = mem_fail_clear();
        (void)prig_write(rig);
        PRIG_WAIT(rig, prig_released(rig) >= journal_position(rig->journal));
        PRIG_WAIT(rig, rig->persist->info.rewrites == 1 &&
                           rig->persist->info.saves == 1);
        prig_restart_all(rig);
        prig_free(rig);
    }
}

/* For WAITAOF under appendfsync no, where nothing else asks for a sync. */
TEST(persist_syncs_what_somebody_waits_for)
{
    struct prig *rig = prig_start("yes", "no");
    uint64_t position = prig_write_released(rig);

    assert_true(journal_synced(rig->journal) < position);
    journal_want_sync(rig->journal, position);
    PRIG_WAIT(rig, journal_synced(rig->journal) >= position);
    prig_free(rig);
}
