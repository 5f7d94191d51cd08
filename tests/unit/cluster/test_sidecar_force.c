/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An operator declares that the data of slots is lost.
 */
#include "cluster/sidecar_force.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar.h"
#include "cluster/sidecar_state.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

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

/* Slots 7 and 8 were held once, and by nobody that answers. */
static void
begin_missing(struct rig *rig, struct holdings *of_b)
{
    of_b->known[7] = of_b->known[8] = 2;
    rig_init(rig, NULL);
    rig_poll(rig, RIG_NODES);
    survey(rig, 4, of_b, NULL);
    assert_int_equal(rig->state[7], SLOT_MISSING);
    assert_int_equal(rig->state[8], SLOT_MISSING);
}

TEST(a_missing_slot_is_served_when_an_operator_says_so_and_the_disk_has_it)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    begin_missing(&rig, of_b);
    rig.disk_fails = true;
    assert_true(force(&rig, 7, 7));
    survey(&rig, 3, of_b, NULL);
    assert_int_equal(rig.state[7], SLOT_HELD);
    rig.disk_fails = false;
    survey(&rig, 1, of_b, NULL);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    assert_int_equal(rig.kept.held[7], 2); /* so a restart serves it, too */
    assert_int_equal(rig.state[8], SLOT_MISSING);
    assert_false(sidecar_is_forced(rig.sidecar, 7)); /* it was said once */
    rig_fini(&rig);
    mem_free(of_b);
}

TEST(a_silent_daemon_has_its_lease_first)
{
    struct holdings *file = mem_zalloc(sizeof(*file));
    struct rig rig;

    (void)snprintf(file->node, sizeof(file->node), "%s", RIG_A);
    file->known[7] = 2;
    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    survey(&rig, 2, NULL, RIG_C);
    assert_int_equal(rig.state[7], SLOT_MISSING);
    assert_true(force(&rig, 7, 7));
    assert_int_not_equal(rig.state[7], SLOT_SERVED);
    rig_tick(&rig, 50);
    assert_int_not_equal(rig.state[7], SLOT_SERVED);
    survey(&rig, 3, NULL, RIG_C);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(file);
}

TEST(slots_that_are_not_missing_are_refused_with_the_reason)
{
    const struct sidecar_answer keys = { .kind = SIDECAR_HAS_KEYS };
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    rig_init(&rig, NULL);
    assert_false(force(&rig, 7, 7));
    assert_non_null(strstr(reason, "does not answer"));
    rig_poll(&rig, RIG_NODES);
    assert_false(force(&rig, 7, 7));
    assert_non_null(strstr(reason, "still asking the others"));
    rig_fini(&rig);

    begin_missing(&rig, of_b);
    leased = false;
    assert_false(force(&rig, 7, 7));
    assert_non_null(strstr(reason, "does not answer"));
    leased = true;
    assert_false(force(&rig, 7, 9));
    assert_string_equal(reason, "slot 9 is served: it is not missing");
    assert_int_equal(rig.state[7], SLOT_MISSING); /* all or none */
    assert_false(sidecar_is_forced(rig.sidecar, 7));
    assert_false(force(&rig, 5461, 5461));
    assert_non_null(strstr(reason, "does not own slot 5461"));
    of_b->held[7] = 2; /* B comes back with the data */
    survey(&rig, 3, of_b, NULL);
    for (size_t i = 0; i < rig.asks; i++) {
        if (rig.ask[i].question == SIDECAR_ASK_FENCE_EMPTY) {
            rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &keys);
            break;
        }
    }
    assert_true(rig.pulls);
    assert_false(force(&rig, 7, 7));
    assert_non_null(strstr(reason, "the server beside node " RIG_B));
    rig_fini(&rig);
    mem_free(of_b);
}

TEST(what_was_said_does_not_outlast_the_ownership)
{
    static const char lost[] =
        RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-6\n" RIG_B
              " 10.0.0.2:7001@17001 master - 0 1 5 connected 7-10922\n";
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    begin_missing(&rig, of_b);
    rig.disk_fails = true;
    assert_true(force(&rig, 7, 8));
    rig_poll(&rig, lost);
    assert_false(sidecar_is_forced(rig.sidecar, 7));
    rig_fini(&rig);
    mem_free(of_b);
}

/* C, which is silent, has newer data than B. When it comes back the claim turns
 * to it: what clients had written at B until then would be lost. */
TEST(clients_are_not_sent_to_a_source_with_an_older_state)
{
    const struct sidecar_answer keys = { .kind = SIDECAR_HAS_KEYS };
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    of_b->held[7] = 2;
    of_b->known[7] = 5;
    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    survey(&rig, 4, of_b, RIG_C);
    assert_int_equal(rig.state[7], SLOT_MISSING);
    assert_true(force(&rig, 7, 7));
    for (int round = 0; round < 20 && !rig.pulls; round++) {
        survey(&rig, 1, of_b, RIG_C);
        for (size_t i = 0; i < rig.asks; i++) {
            if (rig.ask[i].question == SIDECAR_ASK_FENCE_EMPTY) {
                rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &keys);
                break;
            }
        }
    }
    assert_true(rig.pulls);
    assert_true(slot_set_has(&rig.pulled, 7));
    assert_int_equal(rig.state[7], SLOT_HELD);
    rig_fini(&rig);
    mem_free(of_b);
}
