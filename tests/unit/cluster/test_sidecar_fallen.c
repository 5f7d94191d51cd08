/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An owner whose epoch has fallen.
 */
#include "cluster/sidecar_fallen.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

/* The slots 7 and 8 of A are B's. */
#define MOVED_TO_B                                                             \
    RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-6 "          \
          "9-5460\n" RIG_B                                                     \
          " 10.0.0.2:7001@17001 master - 0 1 50 connected 7-8 5461-10922\n"

static char reason[256];
static bool leased = true;

static bool
force(struct rig *rig, unsigned first, unsigned last)
{
    return rig_force(rig, first, last, "", NULL, leased, reason,
                     sizeof(reason));
}

static void
survey(struct rig *rig, int rounds, const struct holdings *of_b,
       const char *silent)
{
    for (int round = 0; round < rounds; round++) {
        rig_tick(rig, 150);
        rig_answer_survey(rig, RIG_B, of_b, silent);
    }
    rig_tick(rig, 50);
}

/* The cluster was made anew: A owns its slots at the epoch 1, and B's daemon
 * holds two of them since the epoch 50 of the old cluster. */
static struct holdings *
of_old_cluster(void)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));

    of_b->held[7] = of_b->known[7] = 51;
    of_b->held[8] = of_b->known[8] = 51;
    return of_b;
}

static void
begin_fallen(struct rig *rig, const struct holdings *of_b)
{
    rig_init(rig, NULL);
    rig_poll(rig, RIG_NODES);
    survey(rig, 10, of_b, NULL);
    assert_int_equal(rig->state[6], SLOT_SERVED);
    assert_int_equal(rig->state[7], SLOT_MISSING);
    assert_int_equal(slot_set_count(&rig->sidecar->fallen), 2);
}

TEST(a_slot_whose_owners_epoch_has_fallen_is_missing_until_it_rises)
{
    struct holdings *of_b = of_old_cluster();
    struct rig rig;

    begin_fallen(&rig, of_b);
    rig_poll(&rig, RIG_A
             " 10.0.0.1:7000@17000 myself,master - 0 0 51 connected "
             "0-5460\n" RIG_B " 10.0.0.2:7001@17001 master - 0 1 2 connected "
             "5461-10922\n");
    rig_tick(&rig, 50);
    survey(&rig, 3, of_b, NULL);
    assert_int_equal(slot_set_count(&rig.sidecar->fallen), 0);
    assert_int_equal(rig.sidecar->claim.state, CLAIM_ASKS);
    rig_fini(&rig);
    mem_free(of_b);
}

TEST(a_fallen_slot_that_is_forced_is_fetched_above_its_holders_epoch)
{
    const struct slot_set granted = { .bits[0] = 1 << 7 };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &granted };
    struct holdings *of_b = of_old_cluster();
    struct holdings *kept = mem_alloc(sizeof(*kept));
    struct rig rig;

    begin_fallen(&rig, of_b);
    assert_true(force(&rig, 7, 7));
    for (int round = 0; round < 10 && rig.sidecar->claim.state != CLAIM_ASKS;
         round++) {
        survey(&rig, 1, of_b, NULL);
    }
    assert_int_equal(rig.sidecar->claim.raised, 52);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    assert_int_equal(rig.state[8], SLOT_MISSING);
    assert_int_equal(rig.kept.held[7], 52);
    /* Another start finds the old holder, which has not let go of it. */
    *kept = rig.kept;
    rig_fini(&rig);
    rig_init(&rig, kept);
    rig_poll(&rig, RIG_NODES);
    survey(&rig, 10, of_b, NULL);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    assert_int_equal(rig.state[8], SLOT_MISSING);
    assert_int_equal(rig.kept.held[7], 52);
    rig_fini(&rig);
    mem_free(of_b);
    mem_free(kept);
}

/* A daemon with a higher epoch began to claim the slot, and its node lost it
 * before the end. What we have is a copy of what B has. */
TEST(a_copy_of_what_its_holder_gives_to_a_higher_epoch_only_is_fallen)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct holdings *kept = mem_zalloc(sizeof(*kept));
    struct rig rig;

    of_b->held[7] = 1;
    of_b->known[7] = 19;
    kept->held[7] = kept->known[7] = 1;
    kept->copied[7] = 100;
    rig_init(&rig, kept);
    rig_poll(&rig, RIG_NODES);
    survey(&rig, 10, of_b, NULL);
    assert_int_equal(rig.state[7], SLOT_MISSING);
    assert_int_equal(slot_set_count(&rig.sidecar->fallen), 1);
    assert_true(force(&rig, 7, 7));
    for (int round = 0; round < 10 && rig.sidecar->claim.state != CLAIM_ASKS;
         round++) {
        survey(&rig, 1, of_b, NULL);
    }
    assert_int_equal(rig.sidecar->claim.raised, 20);
    rig_fini(&rig);
    mem_free(of_b);
    mem_free(kept);
}

/* B's daemon has claimed a slot of ours at a higher epoch, and told us nothing
 * of it. Now our node names itself as the owner again, with its old epoch. */
TEST(a_slot_that_comes_back_from_a_higher_epoch_is_not_served_at_once)
{
    struct holdings *of_b = of_old_cluster();
    struct holdings *kept = rig_file(RIG_A, 1);
    static const struct sidecar_answer silence = { .kind = SIDECAR_SILENT };
    struct rig rig;

    for (int claimed = 0; claimed < 2; claimed++) {
        rig_init(&rig, kept);
        rig_poll(&rig, RIG_NODES);
        assert_int_equal(rig.state[7], SLOT_SERVED);
        rig_poll(&rig, MOVED_TO_B);
        assert_int_not_equal(rig.state[7], SLOT_SERVED);
        rig_poll(&rig, RIG_NODES);
        assert_int_not_equal(rig.state[7], SLOT_SERVED);
        assert_int_equal(rig.state[9], SLOT_SERVED);
        rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &silence);
        survey(&rig, 10, claimed ? of_b : NULL, NULL);
        assert_int_equal(rig.state[7], claimed ? SLOT_MISSING : SLOT_SERVED);
        rig_fini(&rig);
    }
    mem_free(kept);
    mem_free(of_b);
}
