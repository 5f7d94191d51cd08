/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file says that a slot is held when the disk has its data, and a start
 * believes it only of that data.
 */
#include "cluster/sidecar_disk.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar_state.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

/* The node of A has got slots 0 to 3 of B, which holds them at epoch 2. */
#define GAINED                                                                 \
    RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-3\n" RIG_B   \
          " 10.0.0.2:7001@17001 master - 0 1 2 connected 4-10922\n"
#define OF_B                                                                   \
    RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected\n" RIG_B       \
          " 10.0.0.2:7001@17001 master - 0 1 2 connected 0-10922\n"

static const struct slot_set four = { .bits[0] = 0xf };

/* Fetches four slots, of which 70 bytes of our log have everything. */
static void
fetch(struct rig *rig)
{
    const struct sidecar_answer keys = { .kind = SIDECAR_HAS_KEYS };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &four,
                                           .position = 40 };

    rig_poll(rig, OF_B);
    rig_tick(rig, 50);
    rig_poll(rig, GAINED);
    rig_answer(rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &keys);
    rig->position = 70;
    sidecar_pull_is_near(rig->sidecar, rig->now_ms);
    rig_answer(rig, RIG_B, SIDECAR_ASK_FENCE, &fenced);
    sidecar_pull_ended(rig->sidecar, true, "", rig->now_ms);
    rig_tick(rig, 50);
}

TEST(a_claim_is_written_and_served_when_the_journal_has_its_data)
{
    struct rig rig;

    rig_init(&rig, NULL);
    rig.disk_lags = true;
    rig.stored = 69 + 1;
    fetch(&rig);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(rig.kept.held[0], 0);
    assert_true(rig.stores > 0);
    rig.stored = 70 + 1;
    rig_tick(&rig, 200);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[0], 10);
    assert_int_equal(rig.kept.from, 70);
    assert_string_equal(rig.kept.data[0], rig.history);
    assert_true(slot_set_is_empty(&sidecar_holdings(rig.sidecar)->claimed));
    rig_fini(&rig);
}

TEST(without_a_journal_a_claim_is_served_before_it_is_written)
{
    struct rig rig;

    rig_init(&rig, NULL);
    rig.disk_lags = true;
    rig.snapshots = true;
    fetch(&rig);
    rig_tick(&rig, 500);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[0], 0);
    assert_int_equal(rig.kept.known[0], 10); /* nobody has older data */
    assert_true(rig.stores > 0);
    /* For others it is being claimed: its source keeps what it has. */
    assert_int_equal(sidecar_holdings(rig.sidecar)->held[0], 10);
    assert_true(slot_set_has(&sidecar_holdings(rig.sidecar)->claimed, 0));
    rig.stored = 70 + 1;
    rig_tick(&rig, 100);
    assert_int_equal(rig.kept.held[0], 10);
    assert_false(slot_set_has(&sidecar_holdings(rig.sidecar)->claimed, 0));
    rig_fini(&rig);
}

static struct holdings *
file_of(const char *history, uint64_t position)
{
    struct holdings *file = rig_file(RIG_A, 1);

    (void)snprintf(file->data[0], sizeof(file->data[0]), "%040d", 77);
    (void)snprintf(file->data[1], sizeof(file->data[1]), "%s", history);
    file->from = position;
    return file;
}

/* Returns the state of slot 0 after a start with data up to position 50. */
static int
state_after_start(const struct holdings *file)
{
    struct rig rig;
    int state;

    rig_init(&rig, file);
    rig.position = 50;
    rig_poll(&rig, RIG_NODES);
    rig_tick(&rig, 50);
    state = rig.state[0];
    assert_int_equal(rig.kept.held[0], state == SLOT_SERVED ? 2 : 0);
    assert_int_equal(rig.kept.known[0], 2);
    rig_fini(&rig);
    return state;
}

TEST(a_start_holds_only_what_its_data_has)
{
    char history[HISTORY_ID_CHARS + 1];
    struct holdings *good;
    struct holdings *late;
    struct holdings *other = file_of(RIG_C, 50);
    struct holdings *old = rig_file(RIG_A, 1); /* of 1.0.0 */

    (void)snprintf(history, sizeof(history), "%040d", 1);
    good = file_of(history, 50);
    late = file_of(history, 51);
    assert_int_equal(state_after_start(good), SLOT_SERVED);
    assert_int_equal(state_after_start(late), SLOT_HELD);
    assert_int_equal(state_after_start(other), SLOT_HELD);
    assert_int_equal(state_after_start(old), SLOT_SERVED);
    mem_free(good);
    mem_free(late);
    mem_free(other);
    mem_free(old);
}

TEST(a_file_names_the_histories_that_a_start_may_find)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    for (int life = 1; life < 20; life++) {
        (void)snprintf(rig.history, sizeof(rig.history), "%040d", life);
        (void)snprintf(rig.snapshot, sizeof(rig.snapshot), "%040d", 5);
        rig.continues = true;
        rig_tick(&rig, 50);
    }
    assert_string_equal(rig.kept.data[0], rig.history);
    assert_int_equal(rig.kept.data[1][HISTORY_ID_CHARS - 1], '8');
    assert_string_equal(rig.kept.data[HOLDINGS_DATA_MAX - 1], rig.snapshot);
    rig_fini(&rig);
    mem_free(file);
}

/* As after DEBUG RELOAD NOSAVE. */
TEST(data_that_was_replaced_holds_nothing)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    rig.history[0] = 'f';
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(rig.kept.held[0], 0);
    rig_fini(&rig);
    mem_free(file);
}

TEST(a_copy_is_written_when_the_disk_has_it)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct sidecar_answer holds = { .kind = SIDECAR_HOLDS,
                                    .holdings = of_b,
                                    .position = 60 };
    struct rig rig;

    rig_init(&rig, NULL);
    rig.disk_lags = true;
    rig.position = 60;
    memcpy(holds.history, rig.history, sizeof(holds.history));
    holdings_set(of_b, &four, 3);
    rig_poll(&rig, RIG_A " 10.0.0.1:7000@17000 myself,slave " RIG_B
                         " 0 0 2 connected\n" RIG_B
                         " 10.0.0.2:7001@17001 master - 0 1 2 connected 0-9\n");
    rig_tick(&rig, 50);
    while (rig.asks > 0) {
        rig_answer(&rig, RIG_B, SIDECAR_ASK_HOLDINGS, &holds);
    }
    rig_tick(&rig, 50);
    assert_int_equal(sidecar_holdings(rig.sidecar)->held[0], 3);
    assert_int_equal(rig.kept.held[0], 0);
    rig.stored = 60 + 1;
    rig_tick(&rig, 50);
    assert_int_equal(rig.kept.held[0], 3);
    assert_string_equal(rig.kept.follows, RIG_B);
    rig_fini(&rig);
    mem_free(of_b);
}
