/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal or the data directory goes under a running server.
 */
#include "persist_rig.h"

#include <sys/stat.h>

static void
rename_in(const struct prig *rig, const char *from, const char *to)
{
    char old[256];
    char new[256];

    (void)snprintf(old, sizeof(old), "%s/%s", rig->dir, from);
    (void)snprintf(new, sizeof(new), "%s/%s", rig->dir, to);
    assert_int_equal(rename(old, new), 0);
}

TEST(presence_takes_a_journal_that_was_moved_for_a_fault)
{
    struct prig *rig = prig_start("yes", "always");

    (void)prig_write_released(rig);
    rename_in(rig, "journal", "moved");
    PRIG_WAIT(rig, prig_status(rig).suspect_files == 1);
    (void)prig_write_released(rig);
    assert_false(prig_status(rig).faulted);
    assert_int_equal(rig->persist->info.rewrites, 1);
    assert_int_equal(rig->persist->presence.losses, 1);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(presence_holds_replies_until_the_journal_can_be_made)
{
    struct prig *rig = prig_start("yes", "always");
    char path[256];
    uint64_t position;

    (void)prig_write_released(rig);
    rename_in(rig, "journal", "moved");
    (void)snprintf(path, sizeof(path), "%s/journal", rig->dir);
    fclose(fopen(path, "w")); /* in the way */
    PRIG_WAIT(rig, prig_status(rig).faulted);
    position = prig_write(rig);
    PRIG_WAIT(rig, rig->persist->rewrite_retry.failures > 0);
    assert_true(prig_released(rig) < position);
    assert_int_equal(unlink(path), 0);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    prig_restart_all(rig);
    prig_free(rig);
}

/* At any moment of a rewrite, which continues in the removed files. */
TEST(presence_notices_a_loss_during_a_rewrite)
{
    static const enum persist_step steps[] = { STEP_PREPARE, STEP_BASE,
                                               STEP_COMMIT };

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct prig *rig = prig_start("yes", "always");

        for (int n = 0; n < 200; n++) {
            (void)prig_write(rig);
        }
        (void)persist_ask(rig->persist, PERSIST_REWRITE);
        for (int n = 0; n < 20000 && rig->persist->step != steps[i]; n++) {
            persist_tick(rig->persist);
        }
        rename_in(rig, "journal", "moved");
        (void)prig_write(rig);
        PRIG_WAIT(rig, rig->persist->presence.losses > 0);
        PRIG_WAIT(rig, !prig_status(rig).faulted && prig_status(rig).on &&
                           rig->persist->step == STEP_NONE &&
                           prig_exists(rig, "journal/manifest"));
        (void)prig_write_released(rig);
        prig_restart_all(rig);
        prig_free(rig);
    }
}

TEST(presence_sets_a_journal_aside_that_was_put_there)
{
    struct prig *rig = prig_start("yes", "always");
    char path[256];

    (void)prig_write_released(rig);
    rename_in(rig, "journal", "moved");
    (void)snprintf(path, sizeof(path), "%s/journal", rig->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/journal/base-1", rig->dir);
    fclose(fopen(path, "w"));
    PRIG_WAIT(rig, rig->persist->info.rewrites == 1);
    (void)prig_write_released(rig);
    assert_false(prig_exists(rig, "journal/base-1"));
    prig_restart_all(rig);
    prig_free(rig);
}

static void
count_move(void *ctx)
{
    ((struct prig *)ctx)->reloads++;
}

TEST(presence_makes_a_data_directory_anew)
{
    struct prig *rig = prig_start("yes", "always");
    char moved[80];
    uint64_t ticket;

    rig->persist->options.hooks.moved_in = count_move;
    (void)prig_write_released(rig);
    (void)snprintf(moved, sizeof(moved), "%s.moved", rig->dir);
    assert_int_equal(rename(rig->dir, moved), 0);
    ticket =
        persist_ask(rig->persist, PERSIST_SAVE); /* fails, or is in its place */
    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE, ticket) !=
                       PERSIST_PENDING);
    assert_true(persist_outcome(rig->persist, PERSIST_SAVE, ticket) ==
                    PERSIST_FAILED ||
                prig_exists(rig, "bloomery.snapshot"));
    PRIG_WAIT(rig, rig->reloads == 1);
    (void)prig_write_released(rig);
    PRIG_WAIT(rig, prig_exists(rig, "journal/manifest"));
    assert_true(prig_exists(rig, "lock"));
    prig_restart_all(rig);
    home_remove(moved);
    prig_free(rig);
}
