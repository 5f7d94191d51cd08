/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys of slots are deleted, each by a DEL in the log, and no others.
 */
#include "slots/sweep.h"

#include "../engine/rig.h"
#include "keyspace/gate.h"
#include "keyspace/hash_slot.h"
#include "keyspace/key_hash.h"
#include "keyspace/make.h"
#include "replay/inject.h"

static struct rig *
rig_of_slots(void)
{
    key_hash_by_slot(true);
    return rig_new_threads(2);
}

static void
sweep_all(struct rig *rig, struct sweep *sweep)
{
    struct gate *gate = keyspace_gate(rig->service.keyspace);
    char reason[256] = "";

    while (!sweep->done) {
        gate_enter(gate, 0);
        assert_true(sweep_step(sweep, reason, sizeof(reason)));
        gate_leave(gate, 0);
        inject_wake(sweep->inject);
    }
}

/* Makes 300 keys of {s} and one other in databases 0 and 1. */
static void
fill(struct rig *rig)
{
    char text[64];

    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(text, sizeof(text), "SELECT %u; BF.ADD %u{s} x", i % 2,
                       i);
        run_text(rig, text, false);
    }
    run_text(rig, "BF.ADD other x; SELECT 0; BF.ADD other x", false);
    assert_int_equal(151, count_keys(rig, 0));
    assert_int_equal(151, count_keys(rig, 1));
}

TEST(all_keys_of_the_slots_go_and_no_others)
{
    struct rig *rig = rig_of_slots();
    struct slot_set slots = { { 0 } };
    struct sweep sweep = { .inject = inject_new(rig->worker),
                           .ks = rig->service.keyspace,
                           .slots = &slots };

    fill(rig);
    slot_set_add(&slots, hash_slot_of(slice_lit("{s}")));
    sweep_all(rig, &sweep);
    assert_int_equal(300, sweep.deleted);
    assert_int_equal(1, count_keys(rig, 0));
    assert_int_equal(1, count_keys(rig, 1));
    inject_free(sweep.inject);
    sweep_fini(&sweep);
    rig_free(rig);
    key_hash_by_slot(false);
}

TEST(one_database_may_be_swept_alone)
{
    struct rig *rig = rig_of_slots();
    struct slot_set slots = { { 0 } };
    struct sweep sweep = { .inject = inject_new(rig->worker),
                           .ks = rig->service.keyspace,
                           .slots = &slots,
                           .one_db = true,
                           .db = 1 };

    fill(rig);
    slot_set_add(&slots, hash_slot_of(slice_lit("{s}")));
    sweep_all(rig, &sweep);
    assert_int_equal(150, sweep.deleted);
    assert_int_equal(151, count_keys(rig, 0));
    assert_int_equal(1, count_keys(rig, 1));
    inject_free(sweep.inject);
    sweep_fini(&sweep);
    rig_free(rig);
    key_hash_by_slot(false);
}

TEST(keys_that_are_to_be_kept_stay)
{
    struct rig *rig = rig_of_slots(), *kept = rig_of_slots();
    struct slot_set slots = { { 0 } };
    struct sweep sweep = { .inject = inject_new(rig->worker),
                           .ks = rig->service.keyspace,
                           .slots = &slots,
                           .keep = kept->service.keyspace };

    fill(rig);
    run_text(kept, "BF.ADD 0{s} x; BF.ADD 1{s} x", false);
    slot_set_add(&slots, hash_slot_of(slice_lit("{s}")));
    sweep_all(rig, &sweep);
    assert_int_equal(299, sweep.deleted); /* 1{s} is of another database */
    run_and_expect(rig, "EXISTS 0{s} 2{s} other", ":2\r\n");
    inject_free(sweep.inject);
    sweep_fini(&sweep);
    rig_free(kept);
    rig_free(rig);
    key_hash_by_slot(false);
}

TEST(a_list_of_keys_gives_them_back_in_order)
{
    const struct key keys[] = { key_named(slice_lit("a"), 0),
                                key_named(slice_lit(""), 15),
                                key_named(slice_lit("with\0nul"), 1) };
    struct buf list = { 0 };
    struct key key;
    size_t at = 0;

    for (size_t i = 0; i < 3; i++) {
        sweep_note(&list, &keys[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(sweep_next(&list, &at, &key));
        assert_int_equal(keys[i].db, key.db);
        assert_true(keys[i].hash == key.hash);
        assert_true(slice_equal(keys[i].name, key.name));
    }
    assert_false(sweep_next(&list, &at, &key));
    buf_free(&list);
}
