/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One full state that is written, and one that is broken off.
 */
#include "persist/full_state.h"

#include "persist_rig.h"

static struct child_job
job_of(const struct prig *rig)
{
    return full_state_job(rig->persist, rig->persist->dir_fd, "full", 0, 0);
}

TEST(full_state_holds_all_keys)
{
    struct prig *rig = prig_start("no", "no");
    struct child_job job;
    int error = -1;

    (void)prig_write(rig);
    (void)prig_write(rig);
    job = job_of(rig);
    assert_int_equal(2, job.stamp.keys);
    assert_string_equal(rig->persist->dir, job.dir);
    assert_int_equal(0, full_state_start(rig->persist, &job));
    assert_int_equal(1, rig->persist->info.forks);
    while (!full_state_has_ended(rig->persist, &error)) {
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(0, error);
    assert_false(full_state_has_ended(rig->persist, &error));
    prig_free(rig);
}

TEST(broken_off_base_is_asked_for_again)
{
    struct prig *rig = prig_start("no", "no");
    struct requests *rewrites = &rig->persist->requests[PERSIST_REWRITE];
    struct child_job job = job_of(rig);

    assert_int_equal(0, full_state_start(rig->persist, &job));
    rig->persist->step = STEP_BASE;
    assert_false(requests_are_due(rewrites));
    full_state_stop(rig->persist);
    assert_true(requests_are_due(rewrites));
    assert_int_equal(STEP_NONE, rig->persist->step);
    assert_false(child_is_running(rig->persist->child));
    prig_free(rig);
}
