/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures that INFO shows.
 */
#include "persist_rig.h"

TEST(persist_info_tells_of_loading_and_then_of_what_was_loaded)
{
    struct prig *rig = prig_start("yes", "always");
    struct persist_info info;

    for (int i = 0; i < 5; i++) {
        (void)prig_write_released(rig);
    }
    prig_close(rig);
    assert_true(prig_open(rig));
    persist_get_info(rig->persist, &info);
    assert_true(info.loading);
    assert_true(prig_load(rig));
    persist_get_info(rig->persist, &info);
    assert_false(info.loading);
    assert_true(info.loading_total_bytes > 0);
    assert_int_equal(info.loading_loaded_bytes, info.loading_total_bytes);
    assert_int_equal(info.loading_eta_s, 0);
    prig_free(rig);
}

TEST(persist_info_tells_of_the_journal)
{
    struct prig *rig = prig_start("yes", "always");
    struct persist_info info;
    uint64_t position = prig_write_released(rig);

    persist_get_info(rig->persist, &info);
    assert_true(info.appendonly && info.journal.on);
    assert_true(info.journal.released >= position);
    assert_true(info.journal_bytes > info.base_bytes && info.base_bytes > 0);
    assert_int_equal(info.last_rewrite_seconds, -1);
    (void)persist_ask(rig->persist, PERSIST_REWRITE);
    PRIG_WAIT(rig, (persist_get_info(rig->persist, &info), info.rewrites == 1));
    assert_true(info.last_rewrite_ok && info.last_rewrite_seconds >= 0);
    assert_true(info.manifest_generation >= 2);
    prig_free(rig);
}

/* No tick of loop 0 lies between the reply to CONFIG SET and INFO. */
TEST(persist_info_follows_what_was_asked_for_before_loop_0_does)
{
    struct prig *rig = prig_start("no", "always");
    struct persist_info info;

    persist_get_info(rig->persist, &info);
    assert_false(info.appendonly || info.rewrite_scheduled || info.rewriting);
    prig_set(rig, "appendonly", "yes");
    persist_get_info(rig->persist, &info);
    assert_true(info.appendonly && info.rewrite_scheduled);
    assert_true(info.journal.building && !info.journal.on);
    PRIG_WAIT(rig, (persist_get_info(rig->persist, &info),
                    !info.rewrite_scheduled && !info.rewriting));
    assert_true(info.journal.on && !info.journal.building);
    assert_int_equal(info.rewrites, 1);
    (void)persist_ask(rig->persist, PERSIST_REWRITE);
    persist_get_info(rig->persist, &info);
    assert_true(info.rewrite_scheduled);
    PRIG_WAIT(rig, (persist_get_info(rig->persist, &info),
                    !info.rewrite_scheduled && !info.rewriting));
    assert_int_equal(info.rewrites, 2);
    prig_set(rig, "appendonly", "no");
    persist_get_info(rig->persist, &info);
    assert_true(!info.appendonly && info.journal.closing);
    PRIG_WAIT(rig, (persist_get_info(rig->persist, &info),
                    !info.journal.on && !info.journal.closing));
    prig_free(rig);
}
