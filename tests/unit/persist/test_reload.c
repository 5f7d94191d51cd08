/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All data is written to the disk and read back, and what happens when one of
 * the two fails.
 */
#include "persist_rig.h"

static enum persist_outcome
reload(struct prig *rig, bool save)
{
    enum persist_request what = save ? PERSIST_RELOAD : PERSIST_RELOAD_NOSAVE;
    uint64_t ticket = persist_ask(rig->persist, what);

    assert_true(atomic_load(&rig->pokes) > 0);
    assert_int_equal(persist_outcome(rig->persist, what, ticket),
                     PERSIST_PENDING);
    PRIG_WAIT(rig,
              persist_outcome(rig->persist, what, ticket) != PERSIST_PENDING);
    return persist_outcome(rig->persist, what, ticket);
}

TEST(reload_brings_everything_back)
{
    struct prig *rig = prig_start("no", "no");

    for (int i = 0; i < 100; i++) {
        (void)prig_write(rig);
    }
    assert_int_equal(reload(rig, true), PERSIST_DONE);
    prig_check_all(rig);
    assert_int_equal(prig_info(rig).changes, 0);
    assert_int_equal(prig_info(rig).saves, 1);
    (void)prig_write(rig);
    prig_check_all(rig);
    assert_int_equal(reload(rig, true), PERSIST_DONE);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(reload_without_a_save_goes_back_to_the_snapshot)
{
    struct prig *rig = prig_start("no", "no");

    (void)prig_write(rig);
    assert_int_equal(reload(rig, true), PERSIST_DONE);
    (void)prig_write(rig);
    assert_true(prig_has(rig, 1));
    assert_int_equal(reload(rig, false), PERSIST_DONE);
    assert_true(prig_has(rig, 0));
    assert_false(prig_has(rig, 1));
    assert_true(prig_info(rig).changes > 0); /* it is worth a save */
    prig_free(rig);
}

TEST(reload_of_what_is_not_there_changes_nothing)
{
    struct prig *rig = prig_start("no", "no");

    (void)prig_write(rig);
    assert_int_equal(reload(rig, false), PERSIST_FAILED);
    prig_check_all(rig);
    prig_free(rig);
}

TEST(reload_that_cannot_save_changes_nothing)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct prig *rig = prig_start("no", "no");

        (void)prig_write(rig);
        file_fail_at(calls[i], 1, ENOSPC, true);
        assert_int_equal(reload(rig, true), PERSIST_FAILED);
        assert_true(file_fail_clear());
        prig_check_all(rig);
        assert_false(prig_info(rig).last_save_ok);
        assert_int_equal(reload(rig, true), PERSIST_DONE);
        prig_check_all(rig);
        prig_free(rig);
    }
}

TEST(reload_leaves_a_journal_that_still_fits)
{
    struct prig *rig = prig_start("yes", "always");
    uint64_t position = 0;

    for (int i = 0; i < 10; i++) {
        position = prig_write(rig);
    }
    PRIG_WAIT(rig, prig_released(rig) >= position);
    assert_int_equal(reload(rig, true), PERSIST_DONE);
    prig_check_all(rig);
    for (int i = 0; i < 10; i++) {
        position = prig_write(rig);
    }
    PRIG_WAIT(rig, prig_released(rig) >= position);
    prig_restart_all(rig);
    prig_free(rig);
}

/* Replicas keep their data: nothing has changed. */
TEST(reload_with_a_save_leaves_the_log_where_it_is)
{
    struct prig *rig = prig_start("no", "no");
    struct history history;
    uint64_t position;

    prig_tap(rig, true);
    for (int i = 0; i < 10; i++) {
        (void)prig_write(rig);
    }
    position = prig_position(rig);
    history = prig_history(rig);
    assert_int_equal(reload(rig, true), PERSIST_DONE);
    assert_int_equal(rig->reloads, 1);
    assert_int_equal(prig_position(rig), position);
    assert_string_equal(prig_history(rig).id, history.id);
    assert_int_equal(rig->tape_begin, 0);
    prig_free(rig);
}

/* Replicas now have other data: neither the position nor the id may let them
 * continue. */
TEST(reload_without_a_save_moves_the_log)
{
    static const char *const taps[] = { "tap", "no tap" };

    for (size_t i = 0; i < 2; i++) {
        struct prig *rig = prig_start("no", "no");
        struct history before;
        struct history after;
        uint64_t position;

        prig_tap(rig, true);
        (void)prig_write(rig);
        assert_int_equal(reload(rig, true), PERSIST_DONE);
        (void)prig_write(rig);
        prig_tap(rig, i == 0);
        position = prig_position(rig);
        before = prig_history(rig);
        assert_int_equal(reload(rig, false), PERSIST_DONE);
        after = prig_history(rig);
        if (history_covers(&after, slice_of(before.id), 0) ||
            prig_position(rig) <= position ||
            (i == 0 && rig->tape_begin <= position)) {
            fail_msg("with %s the log is where it was", taps[i]);
        }
        (void)prig_write(rig);
        prig_free(rig);
    }
}
