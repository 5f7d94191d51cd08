/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys of slots are deleted slice by slice, and which of them stay.
 */
#include "slots/slot_drop.h"

#include "../engine/rig.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/view_state.h"
#include "engine/loop0.h"
#include "keyspace/hash_slot.h"
#include "keyspace/key_hash.h"
#include "persist/persist_state.h"

enum { KEYS = 200 };

/* A primary with keys k0, k1 and so on; loop 0 is a loop of libuv alone. */
struct place {
    struct rig *rig;
    struct persist persist;
    struct loop0 loop0;
    uv_loop_t uv;
    struct slot_drop *drop;
    unsigned pokes;
};

static void
note_poke(void *ctx)
{
    struct place *place = ctx;

    place->pokes++;
}

static struct place *
place_new(void)
{
    struct place *place = mem_zalloc(sizeof(*place));
    char text[64];

    log_set_level(LOG_ERROR);
    key_hash_by_slot(true);
    place->rig = rig_new_threads(2);
    place->persist.journal = place->rig->journal;
    place->rig->service.persist = &place->persist;
    place->loop0 = (struct loop0){ .service = &place->rig->service,
                                   .worker = place->rig->worker };
    assert_int_equal(0, uv_loop_init(&place->uv));
    place->drop = slot_drop_new(&place->loop0, note_poke, place);
    slot_drop_start(place->drop, &place->uv);
    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(text, sizeof(text), "BF.ADD k%u x", i);
        run_text(place->rig, text, false);
    }
    return place;
}

static void
place_free(struct place *place)
{
    slot_drop_stop(place->drop);
    slot_drop_close(place->drop);
    (void)uv_run(&place->uv, UV_RUN_DEFAULT);
    assert_int_equal(0, uv_loop_close(&place->uv));
    slot_drop_free(place->drop);
    rig_free(place->rig);
    mem_free(place);
    key_hash_by_slot(false);
}

static struct slot_set
slots_of_keys(unsigned from, unsigned end)
{
    struct slot_set slots = { { 0 } };
    char name[16];

    for (unsigned i = from; i < end; i++) {
        (void)snprintf(name, sizeof(name), "k%u", i);
        slot_set_add(&slots, hash_slot_of(slice_of(name)));
    }
    return slots;
}

/* Counts the keys of these slots by their names. */
static unsigned
count_in(struct place *place, const struct slot_set *slots)
{
    unsigned count = 0;
    char text[16];

    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(text, sizeof(text), "k%u", i);
        if (slot_set_has(slots, hash_slot_of(slice_of(text)))) {
            const struct key key = key_named(slice_of(text), 0);

            count +=
                keyspace_find(place->rig->service.keyspace, &key, 0) != NULL;
        }
    }
    return count;
}

static unsigned
slots_left(const struct place *place, uint64_t *ret_deleted)
{
    struct slot_set slots;

    slot_drop_describe(place->drop, &slots, ret_deleted);
    return slot_set_count(&slots);
}

/* Begins, and runs the loop until no timer is left. */
static void
drop_all(struct place *place, const struct slot_set *slots)
{
    slot_drop_begin(place->drop, slots);
    assert_true(place->pokes > 0);
    slot_drop_look(place->drop);
    (void)uv_run(&place->uv, UV_RUN_DEFAULT);
}

TEST(keys_go_slice_by_slice_and_others_stay)
{
    struct place *place = place_new();
    struct slot_set slots = slots_of_keys(0, KEYS / 2);
    unsigned keys = count_in(place, &slots);
    uint64_t deleted;

    assert_int_equal(0, slots_left(place, &deleted));
    slot_drop_begin(place->drop, &slots);
    assert_int_equal(1, place->pokes);
    slot_drop_look(place->drop);
    slot_drop_look(place->drop); /* too early: the pause has begun */
    assert_int_equal(slot_set_count(&slots), slots_left(place, &deleted));
    assert_true(deleted < keys);
    assert_int_equal(keys - deleted, count_in(place, &slots));
    (void)uv_run(&place->uv, UV_RUN_DEFAULT);
    assert_int_equal(0, slots_left(place, &deleted));
    assert_int_equal(keys, deleted);
    assert_int_equal(0, count_in(place, &slots));
    assert_int_equal(KEYS - keys, count_keys(place->rig, 0));
    place_free(place);
}

TEST(slots_that_come_later_begin_it_anew)
{
    struct place *place = place_new();
    struct slot_set first = slots_of_keys(0, 10);
    struct slot_set later = slots_of_keys(10, KEYS);
    uint64_t deleted;

    slot_drop_begin(place->drop, &first);
    slot_drop_look(place->drop);
    drop_all(place, &later);
    assert_int_equal(0, slots_left(place, &deleted));
    assert_int_equal(KEYS, deleted);
    assert_int_equal(0, count_keys(place->rig, 0));
    place_free(place);
}

TEST(keys_of_slots_that_are_ended_stay)
{
    struct place *place = place_new();
    struct slot_set slots = slots_of_keys(0, KEYS);
    struct slot_set back = slots_of_keys(0, 5);
    unsigned keys = count_in(place, &back);

    slot_drop_begin(place->drop, &slots);
    slot_drop_end(place->drop, &back);
    slot_drop_look(place->drop);
    (void)uv_run(&place->uv, UV_RUN_DEFAULT);
    assert_int_equal(keys, count_in(place, &back));
    assert_int_equal(keys, count_keys(place->rig, 0));
    place_free(place);
}

TEST(a_replica_deletes_nothing)
{
    struct place *place = place_new();
    struct slot_set slots = slots_of_keys(0, KEYS);
    uint64_t deleted;

    place->rig->service.role.replica = true;
    drop_all(place, &slots);
    assert_int_equal(0, slots_left(place, &deleted));
    assert_int_equal(0, deleted);
    assert_int_equal(KEYS, count_keys(place->rig, 0));
    place->rig->service.role.replica = false;
    place_free(place);
}

TEST(slots_that_our_node_has_gained_meanwhile_stay)
{
    struct place *place = place_new();
    struct topology *topology = mem_zalloc(sizeof(*topology));
    struct cluster_view *view = mem_zalloc(sizeof(*view));
    struct cluster cluster = { .view = NULL };
    struct slot_set slots = slots_of_keys(0, KEYS);
    struct slot_set gained = slots_of_keys(0, 5);
    unsigned keys = count_in(place, &gained);

    topology->myself = 1;
    slot_set_foreach (&gained, slot) {
        topology->owner[slot] = 1;
    }
    view->topology = topology;
    cluster.view = view;
    place->rig->service.cluster = &cluster;
    drop_all(place, &slots);
    assert_int_equal(keys, count_in(place, &gained));
    place->rig->service.cluster = NULL;
    assert_int_equal(keys, count_keys(place->rig, 0));
    place_free(place);
    mem_free(view);
    mem_free(topology);
}

TEST(nothing_is_deleted_while_writes_are_parked)
{
    struct place *place = place_new();
    struct slot_set slots = slots_of_keys(0, KEYS);

    place->persist.info.parks = PARKS_WRITES;
    slot_drop_begin(place->drop, &slots);
    slot_drop_look(place->drop);
    (void)uv_run(&place->uv, UV_RUN_ONCE);
    assert_int_equal(KEYS, count_keys(place->rig, 0));
    place->persist.info.parks = PARKS_NOTHING;
    (void)uv_run(&place->uv, UV_RUN_DEFAULT);
    assert_int_equal(0, count_keys(place->rig, 0));
    place_free(place);
}

TEST(a_slice_without_memory_is_tried_again)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct place *place = place_new();
        struct slot_set slots = slots_of_keys(0, KEYS);
        uint64_t deleted;

        effects_clear(place->rig);
        slot_drop_begin(place->drop, &slots);
        mem_fail_from(nth);
        slot_drop_look(place->drop);
        fired = mem_fail_clear();
        (void)uv_run(&place->uv, UV_RUN_DEFAULT);
        assert_int_equal(0, slots_left(place, &deleted));
        assert_int_equal(0, count_keys(place->rig, 0));
        effects_take(place->rig);
        assert_int_equal(KEYS, place->rig->effects.count);
        place_free(place);
    }
}

TEST(a_server_that_ends_goes_no_further)
{
    struct place *place = place_new();
    struct slot_set slots = slots_of_keys(0, KEYS);
    uint64_t deleted;

    slot_drop_begin(place->drop, &slots);
    slot_drop_look(place->drop);
    atomic_store(&place->rig->service.ending, SERVICE_ENDS);
    (void)uv_run(&place->uv, UV_RUN_DEFAULT);
    assert_int_equal(slot_set_count(&slots), slots_left(place, &deleted));
    assert_true(deleted < KEYS);
    atomic_store(&place->rig->service.ending, SERVICE_RUNS);
    place_free(place);
}
