/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An operator declares that the data of slots is lost.
 */
#include "cluster/sidecar_force.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/candidates.h"
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

/* B's node owns the slot, too, by its view of the cluster, and B has just said
 * that it serves what it has. A's claim ends when a survey shows B's. */
TEST(two_servers_do_not_keep_what_nobody_holds_at_once)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    begin_missing(&rig, of_b);
    assert_true(force(&rig, 7, 7));
    for (int round = 0; round < 20 && rig.sidecar->claim.state == CLAIM_NONE;
         round++) {
        survey(&rig, 1, of_b, NULL);
    }
    assert_int_equal(rig.sidecar->claim.state, CLAIM_CHECKS);
    assert_true(slot_set_has(&sidecar_holdings(rig.sidecar)->claimed, 7));
    slot_set_add(&of_b->claimed, 7);
    survey(&rig, 3, of_b, NULL);
    assert_int_equal(rig.state[7], SLOT_HELD);
    assert_int_equal(rig.kept.held[7], 0); /* nor would a restart serve it */
    slot_set_remove(&of_b->claimed, 7);
    survey(&rig, 4, of_b, NULL);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(of_b);
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

/* Waits until a survey lets the rig fetch from B. silent: it may have newer
 * data; or NULL. */
static void
pull_from_b(struct rig *rig, const struct holdings *of_b, const char *silent)
{
    const struct sidecar_answer keys = { .kind = SIDECAR_HAS_KEYS };

    for (int round = 0; round < 20 && !rig->pulls; round++) {
        survey(rig, 1, of_b, silent);
        for (size_t i = 0; i < rig->asks; i++) {
            if (rig->ask[i].question == SIDECAR_ASK_FENCE_EMPTY) {
                rig_answer(rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &keys);
                break;
            }
        }
    }
    assert_true(rig->pulls);
}

/* Begins to fetch slot 7 from B. */
static void
begin_pull_from_b(struct rig *rig, const char *silent)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));

    of_b->held[7] = of_b->known[7] = 2;
    rig_init(rig, NULL);
    rig_poll(rig, RIG_NODES);
    pull_from_b(rig, of_b, silent);
    mem_free(of_b);
}

/* C, which is silent, may have taken the slot and served it since. */
TEST(clients_are_not_sent_to_a_source_while_a_server_is_silent)
{
    struct rig rig;

    begin_pull_from_b(&rig, RIG_C);
    assert_int_equal(rig.state[7], SLOT_HELD);
    rig_fini(&rig);
}

/* An operator has had C serve the slot meanwhile. What clients write at B would
 * be lost. */
TEST(clients_are_not_sent_to_a_source_once_a_server_has_newer_data)
{
    struct holdings *of_c = mem_zalloc(sizeof(*of_c));
    struct rig rig;

    of_c->held[7] = of_c->known[7] = 5;
    begin_pull_from_b(&rig, NULL);
    assert_int_equal(rig.state[7], SLOT_PULLED);
    rig_tick(&rig, 150);
    rig_answer_survey(&rig, RIG_C, of_c, NULL);
    rig_tick(&rig, 10);
    assert_false(rig.pulls);
    assert_int_equal(rig.state[7], SLOT_HELD);
    rig_fini(&rig);
    mem_free(of_c);
}

TEST(clients_are_not_sent_to_a_source_with_an_older_state)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    of_b->held[7] = 2;
    of_b->known[7] = 5;
    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    survey(&rig, 4, of_b, RIG_C);
    assert_int_equal(rig.state[7], SLOT_MISSING);
    assert_true(force(&rig, 7, 7));
    pull_from_b(&rig, of_b, RIG_C);
    assert_true(slot_set_has(&rig.pulled, 7));
    assert_int_equal(rig.state[7], SLOT_HELD);
    rig_fini(&rig);
    mem_free(of_b);
}

/* ---- which data is served ------------------------------------------------ */

/* Puts what the server beside a node has of slot 7 before the others. items: 0
 * for no filter. */
static struct candidate *
put(struct candidate *others, const char *node, uint64_t epoch_plus_1,
    unsigned items)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    struct slot_set set = { { 0 } };
    char counts[32] = "";
    struct candidate *candidate;

    slot_set_add(&set, 7);
    holdings->held[7] = epoch_plus_1;
    if (items > 0) {
        (void)snprintf(counts, sizeof(counts), "7 1 %u\n", items);
    }
    candidate = candidate_new(node, &set, holdings, slice_of(counts));
    assert_non_null(candidate);
    candidate->next = others;
    mem_free(holdings);
    return candidate;
}

static bool
force_from(struct rig *rig, const char *from, struct candidate *candidates)
{
    return rig_force(rig, 7, 7, from, candidates, true, reason, sizeof(reason));
}

static bool
is_chosen(struct candidate *candidates, const char *node)
{
    return slot_set_has(&candidates_find(candidates, node)->chosen, 7);
}

/* B holds slot 7 at an epoch, and C, which is silent, at a higher one. */
static void
begin_older(struct rig *rig, struct holdings *of_b)
{
    of_b->held[7] = 2;
    of_b->known[7] = 5;
    rig_init(rig, NULL);
    rig_poll(rig, RIG_NODES);
    survey(rig, 4, of_b, RIG_C);
    assert_int_equal(rig->state[7], SLOT_MISSING);
}

/* Returns the fence that the daemon asks this node for, or NULL. */
static const struct rig_ask *
await_fence(struct rig *rig, const char *node, const struct holdings *of_b)
{
    for (int round = 0; round < 20; round++) {
        survey(rig, 1, of_b, RIG_C);
        for (size_t i = 0; i < rig->asks; i++) {
            if (rig->ask[i].question == SIDECAR_ASK_FENCE_EMPTY &&
                strcmp(rig->ask[i].node, node) == 0) {
                return &rig->ask[i];
            }
        }
    }
    return NULL;
}

TEST(the_data_of_the_highest_epoch_is_served)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct candidate *all = put(put(NULL, RIG_A, 0, 2), RIG_B, 2, 3);
    const struct rig_ask *ask;
    struct rig rig;

    begin_older(&rig, of_b);
    assert_true(force_from(&rig, "", all));
    assert_true(is_chosen(all, RIG_B));
    assert_false(is_chosen(all, RIG_A)); /* a part of a copy */
    ask = await_fence(&rig, RIG_B, of_b);
    assert_non_null(ask);
    assert_false(ask->chosen);
    rig_fini(&rig);
    candidates_free(all);
    mem_free(of_b);
}

/* A replica of C had the data, and had not heard that it holds it. */
TEST(a_copy_of_the_data_that_is_lost_is_served_without_holdings)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct candidate *all = put(put(NULL, RIG_A, 0, 4), RIG_B, 2, 3);
    struct rig rig;

    begin_older(&rig, of_b);
    assert_true(force_from(&rig, "", all));
    assert_true(is_chosen(all, RIG_A));
    assert_false(is_chosen(all, RIG_B));
    survey(&rig, 5, of_b, RIG_C);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    assert_int_equal(rig.kept.held[7], 6); /* above C, if that comes back */
    assert_false(rig.pulls);
    rig_fini(&rig);
    candidates_free(all);
    mem_free(of_b);
}

TEST(such_a_copy_of_another_server_is_fetched)
{
    const struct sidecar_answer keys = { .kind = SIDECAR_HAS_KEYS };
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct candidate *all =
        put(put(put(NULL, RIG_A, 0, 4), RIG_B, 2, 3), RIG_R, 0, 5);
    const struct rig_ask *ask;
    struct rig rig;

    begin_older(&rig, of_b);
    assert_true(force_from(&rig, "", all));
    assert_true(is_chosen(all, RIG_R));
    ask = await_fence(&rig, RIG_R, of_b);
    assert_non_null(ask);
    assert_true(ask->chosen && ask->surveyed);
    rig_answer(&rig, RIG_R, SIDECAR_ASK_FENCE_EMPTY, &keys);
    assert_string_equal(rig.pulled_from, RIG_R);
    assert_int_equal(rig.state[7], SLOT_HELD); /* nobody is sent there */
    /* B's data is newer than R's as far as its epoch tells: R's was chosen. */
    survey(&rig, 2, of_b, RIG_C);
    sidecar_pull_is_near(rig.sidecar, rig.now_ms);
    rig_tick(&rig, 50);
    assert_int_equal(rig.sidecar->claim.state, CLAIM_FENCES);
    rig_fini(&rig);
    candidates_free(all);
    mem_free(of_b);
}

TEST(the_data_of_a_node_that_the_operator_names_is_served)
{
    const struct sidecar_answer refused = { .kind = SIDECAR_REFUSED,
                                            .reason = "it has let it go" };
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct candidate *all = put(put(NULL, RIG_A, 0, 4), RIG_B, 2, 3);
    const struct rig_ask *ask;
    struct rig rig;

    begin_older(&rig, of_b);
    assert_true(force_from(&rig, RIG_B, all));
    assert_true(is_chosen(all, RIG_B));
    ask = await_fence(&rig, RIG_B, of_b);
    assert_non_null(ask);
    assert_true(ask->chosen);
    /* It cannot be had: the operator is asked again. */
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &refused);
    survey(&rig, 4, of_b, RIG_C);
    assert_int_equal(rig.state[7], SLOT_MISSING);
    assert_true(force_from(&rig, RIG_A, all));
    survey(&rig, 5, of_b, RIG_C);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    assert_false(rig.pulls);
    rig_fini(&rig);
    candidates_free(all);
    mem_free(of_b);
}

TEST(a_node_without_the_data_is_refused)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct candidate *all = put(NULL, RIG_B, 2, 0);
    struct rig rig;

    begin_older(&rig, of_b);
    assert_false(
        force_from(&rig, "0000000000000000000000000000000000000000", all));
    assert_non_null(strstr(reason, "is not in our node's view"));
    assert_false(force_from(&rig, RIG_A, all));
    assert_non_null(strstr(reason, RIG_A " has no data of slot 7"));
    assert_false(sidecar_is_forced(rig.sidecar, 7));
    assert_true(
        force_from(&rig, RIG_B, all)); /* which holds it, without keys */
    rig_fini(&rig);
    candidates_free(all);
    mem_free(of_b);
}
