/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One full state that is written, and one that is broken off.
 */
#include "persist/full_state.h"

#include "journal/spool.h"
#include "keyspace/walk.h"
#include "persist_rig.h"

#include <sched.h>

static struct walker_job
job_of(const struct prig *rig)
{
    return full_state_job(rig->persist, rig->persist->dir_fd, "full");
}

/* Waits until the writing that it breaks off has ended. */
static void
break_off(struct prig *rig)
{
    int error;

    full_state_break_off(&rig->persist->own);
    while (!full_state_has_ended(&rig->persist->own, &error)) {
        sched_yield();
    }
    rig->persist->step = STEP_NONE;
}

TEST(full_state_holds_all_keys)
{
    struct prig *rig = prig_start("no", "no");
    struct walker_job job = job_of(rig);
    uint64_t position;
    uint64_t sequence;
    int error = -1;

    (void)prig_write(rig);
    (void)prig_write(rig);
    assert_string_equal(rig->persist->dir, job.dir);
    assert_null(rig->journal);
    full_state_start(&rig->persist->own, &job);
    assert_int_equal(2, job.begin.keys);
    assert_non_null(rig->journal); /* there is a log meanwhile */
    while (!full_state_is_through(&rig->persist->own)) {
        (void)poll(NULL, 0, 1);
    }
    assert_false(full_state_has_ended(&rig->persist->own, &error));
    gate_raise(keyspace_gate(rig->ks), 0);
    assert_true(full_state_end(&rig->persist->own, &position, &sequence));
    gate_lower(keyspace_gate(rig->ks), 0);
    assert_int_equal(job.begin.position, position);
    assert_null(rig->journal);
    while (!full_state_has_ended(&rig->persist->own, &error)) {
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(0, error);
    assert_int_equal(1, rig->persist->info.walks);
    assert_int_equal(2, rig->persist->info.written.keys);
    assert_false(full_state_has_ended(&rig->persist->own, &error));
    prig_free(rig);
}

static enum persist_parks
parks_now(struct prig *rig)
{
    full_state_park(rig->persist);
    assert_int_equal(rig->parks, persist_parks(rig->persist));
    return rig->parks;
}

TEST(commands_that_mark_are_parked_until_the_end)
{
    struct prig *rig = prig_start("no", "no");
    struct walker_job job = job_of(rig);
    struct slice name = slice_lit("w0");
    struct key key = key_named(name, 0);
    uint64_t position;
    uint64_t sequence;

    (void)prig_write(rig);
    full_state_start(&rig->persist->own, &job);
    assert_int_equal(PARKS_NOTHING, parks_now(rig));
    for (int i = 0; i < 2; i++) {
        while (!full_state_is_through(&rig->persist->own)) {
            (void)poll(NULL, 0, 1);
        }
        gate_raise(keyspace_gate(rig->ks), 0);
        if (i == 0) {
            keyspace_walk_again(rig->ks, &key);
        }
        assert_int_equal(
            i == 1, full_state_end(&rig->persist->own, &position, &sequence));
        gate_lower(keyspace_gate(rig->ks), 0);
        assert_int_equal(i == 0 ? PARKS_REMAKES : PARKS_NOTHING,
                         parks_now(rig));
    }
    break_off(rig);
    assert_int_equal(PARKS_NOTHING, parks_now(rig));
    prig_free(rig);
}

/* The limit is so low that the file takes nothing before it. */
TEST(writes_are_parked_while_the_spool_is_crowded)
{
    static const char *const full[] = { "wait", "fail" };

    for (size_t i = 0; i < 2; i++) {
        struct prig *rig = prig_start("no", "no");
        struct walker_job job = job_of(rig);

        prig_set(rig, "save-buffer-full", full[i]);
        persist_apply_conf(rig->persist);
        rig->persist->spool_limit = 2 << 20;
        full_state_start(&rig->persist->own, &job);
        while (!spool_is_crowded(rig->persist->own.spool)) {
            (void)prig_write(rig);
        }
        assert_int_equal(i == 0 ? PARKS_WRITES : PARKS_NOTHING, parks_now(rig));
        break_off(rig);
        assert_int_equal(PARKS_NOTHING, parks_now(rig));
        prig_free(rig);
    }
}

TEST(broken_off_base_is_asked_for_again)
{
    struct prig *rig = prig_start("no", "no");
    struct requests *rewrites = &rig->persist->requests[PERSIST_REWRITE];
    struct walker_job job = job_of(rig);

    full_state_start(&rig->persist->own, &job);
    rig->persist->step = STEP_BASE;
    assert_false(requests_are_due(rewrites));
    break_off(rig);
    assert_true(requests_are_due(rewrites));
    assert_int_equal(STEP_NONE, rig->persist->step);
    assert_false(walker_is_running(rig->persist->own.walker));
    assert_null(rig->journal);
    assert_false(prig_exists(rig, "full"));
    assert_false(prig_exists(rig, "full.tmp"));
    prig_free(rig);
}
