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
        uint64_t position = prig_write(rig);

        PRIG_WAIT(rig, prig_released(rig) >= position);
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
    uint64_t position = prig_write(rig);

    PRIG_WAIT(rig, prig_released(rig) >= position);
    persist_get_info(rig->persist, &info);
    assert_true(info.appendonly && info.journal.on);
    assert_true(info.journal.released >= position);
    assert_true(info.journal_bytes > info.base_bytes && info.base_bytes > 0);
    assert_int_equal(info.last_rewrite_seconds, -1);
    (void)persist_ask_rewrite(rig->persist);
    PRIG_WAIT(rig, (persist_get_info(rig->persist, &info), info.rewrites == 1));
    assert_true(info.last_rewrite_ok && info.last_rewrite_seconds >= 0);
    assert_true(info.manifest_generation >= 2);
    prig_free(rig);
}
