/* SPDX-License-Identifier: BSD-3-Clause */
#include "push/targets.h"

#include "../test.h"
#include "base/mem.h"
#include "net/conn.h"

#include <string.h>

/* Replaces receiver.c, which needs a loop. */
static unsigned cuts;
static struct targets *cut_unlocked; /* not NULL: its lock must be free */

void
receiver_cut(struct receiver *receiver)
{
    if (cut_unlocked != NULL) {
        assert_int_equal(0, pthread_mutex_trylock(&cut_unlocked->mutex));
        pthread_mutex_unlock(&cut_unlocked->mutex);
    }
    receiver->conn->state = CONN_CLOSING;
    cuts++;
}

void
receiver_push(struct receiver *receiver, struct buf *bytes, uint64_t hold_until)
{
    (void)receiver;
    (void)bytes;
    (void)hold_until;
}

bool
receiver_subscribes(const struct receiver *receiver)
{
    (void)receiver;
    return false;
}

enum { CROWD = 200 };

struct crowd {
    struct conn conns[CROWD];
    struct receiver receivers[CROWD];
    unsigned there, looked;
};

static void
crowd_init(struct crowd *crowd, unsigned there)
{
    memset(crowd, 0, sizeof(*crowd));
    for (unsigned i = 0; i < CROWD; i++) {
        crowd->conns[i].registered.id = i + 1;
        crowd->receivers[i].id = i + 1;
        crowd->receivers[i].conn = &crowd->conns[i];
    }
    crowd->there = there;
}

static struct receiver *
find(void *ctx, uint64_t id)
{
    struct crowd *crowd = ctx;

    crowd->looked++;
    return id <= crowd->there ? &crowd->receivers[id - 1] : NULL;
}

TEST(a_target_is_looked_up_once_and_kept_until_its_last_release)
{
    struct targets targets;
    struct crowd crowd;
    bool used = true;

    targets_init(&targets);
    crowd_init(&crowd, 3);
    assert_null(targets_get(&targets, 2, find, &crowd, &used));
    assert_false(used);
    assert_true(targets_use(&targets, 2));
    assert_true(targets_use(&targets, 2));
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(targets_get(&targets, 2, find, &crowd, &used),
                         &crowd.receivers[1]);
        assert_true(used);
    }
    assert_int_equal(crowd.looked, 1);
    assert_true(crowd.receivers[1].is_target);
    targets_release(&targets, 2);
    assert_non_null(targets_get(&targets, 2, find, &crowd, &used));
    targets_release(&targets, 2);
    assert_null(targets_get(&targets, 2, find, &crowd, &used));
    assert_false(used);
    targets_fini(&targets);
}

TEST(a_target_that_is_gone_is_not_looked_for_again)
{
    struct targets targets;
    struct crowd crowd;
    bool used = false;

    targets_init(&targets);
    crowd_init(&crowd, 1);
    assert_true(targets_use(&targets, 3));
    for (int i = 0; i < 3; i++) {
        assert_null(targets_get(&targets, 3, find, &crowd, &used));
        assert_true(used);
    }
    assert_int_equal(crowd.looked, 1);
    targets_release(&targets, 3);
    targets_fini(&targets);
}

TEST(a_closing_target_counts_as_gone_and_one_that_did_reset_does_not)
{
    struct targets targets;
    struct crowd crowd;
    bool used;

    targets_init(&targets);
    crowd_init(&crowd, 3);
    assert_true(targets_use(&targets, 1));
    assert_non_null(targets_get(&targets, 1, find, &crowd, &used));
    targets_forget(&targets, &crowd.receivers[0]); /* RESET */
    assert_false(crowd.receivers[0].is_target);
    assert_non_null(targets_get(&targets, 1, find, &crowd, &used));
    assert_true(crowd.receivers[0].is_target);
    crowd.conns[0].state = CONN_CLOSING;
    assert_null(targets_get(&targets, 1, find, &crowd, &used));
    targets_forget(&targets, &crowd.receivers[0]);
    crowd.there = 0;
    assert_null(targets_get(&targets, 1, find, &crowd, &used));
    assert_true(used);
    targets_release(&targets, 1);
    targets_fini(&targets);
}

TEST(all_targets_are_cut_also_those_not_looked_for_yet)
{
    struct targets targets;
    struct crowd crowd;

    targets_init(&targets);
    crowd_init(&crowd, 2);
    for (uint64_t id = 1; id <= 3; id++) {
        assert_true(targets_use(&targets, id));
    }
    cuts = 0;
    targets_cut(&targets, find, &crowd);
    assert_int_equal(cuts, 2);
    for (uint64_t id = 1; id <= 3; id++) {
        targets_release(&targets, id);
    }
    targets_fini(&targets);
}

TEST(however_many_targets_are_cut_with_no_lock_in_hand)
{
    static struct crowd crowd;
    struct targets targets;

    targets_init(&targets);
    crowd_init(&crowd, CROWD - 10);
    for (uint64_t id = 1; id <= CROWD; id++) {
        assert_true(targets_use(&targets, id));
    }
    cuts = 0;
    cut_unlocked = &targets;
    targets_cut(&targets, find, &crowd);
    cut_unlocked = NULL;
    assert_int_equal(cuts, CROWD - 10);
    assert_int_equal(crowd.looked, CROWD);
    for (uint64_t id = 1; id <= CROWD; id++) {
        targets_release(&targets, id);
    }
    targets_fini(&targets);
}

TEST(without_memory_there_is_no_target)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct targets targets;
        bool made;

        targets_init(&targets);
        mem_fail_at(nth);
        made = targets_use(&targets, 1);
        fired = mem_fail_clear();
        assert_int_equal(made, !fired);
        if (made) {
            targets_release(&targets, 1);
        }
        targets_fini(&targets);
    }
}
