/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adds to deletable filters, and deletions: random ones, whose effects make the
 * same filter again.
 */
#include "bloom/adds.h"

#include "../engine/dump_help.h"
#include "../engine/pieces_help.h"
#include "../engine/rig.h"

enum { ITEMS = 60, ITEMS_MOST = 150, COMMANDS = 3000 };

/* Appends a random command. */
static void
put_command(struct rig *rig, uint64_t *rng)
{
    static const char *const commands[] = { "BF.ADD k", "BF.DEL k", "BF.MADD k",
                                            "BF.MDEL k",
                                            "BF.INSERT k NOCREATE ITEMS" };
    size_t kind = (size_t)test_random_below(rng, 5);
    uint64_t items = 1;
    struct buf line = { 0 };

    if (kind > 1) {
        items = 1 + test_random_below(
                        rng, test_random_below(rng, 20) == 0 ? ITEMS_MOST : 4);
    }
    buf_printf(&line, "%s", commands[kind]);
    for (uint64_t i = 0; i < items; i++) {
        buf_printf(&line, " i%u", (unsigned)test_random_below(rng, ITEMS));
    }
    buf_append(&line, "", 1);
    batch_text(rig, line.data);
    buf_free(&line);
}

static void
check_replay(const char *make, uint64_t *rng)
{
    struct rig *rig = rig_new();
    struct rig *again = rig_new();

    run_text(rig, make, false);
    for (unsigned i = 0; i < COMMANDS; i++) {
        bool txn = test_random_below(rng, 10) == 0;

        batch_begin(rig);
        if (txn) {
            batch_text(rig, "MULTI");
        }
        for (uint64_t n = test_random_below(rng, 6); n > 0; n--) {
            put_command(rig, rng);
        }
        if (txn) {
            batch_text(rig, "EXEC");
        }
        batch_run(rig);
        if (i % 100 == 99) {
            effects_take(rig);
            repeat_effects(again, buf_slice(&rig->effects.raw));
            effects_clear(rig);
            assert_int_equal(1, compare_dumps(rig, again));
        }
    }
    rig_free(again);
    rig_free(rig);
}

TEST(effects_make_the_same_filter_again)
{
    uint64_t rng = test_seed();

    check_replay("BF.RESERVE k 0.01 200 DELETABLE", &rng);
    check_replay("BF.RESERVE k 0.1 4 DELETABLE 1", &rng);
    check_replay("BF.RESERVE k 0.0001 3 DELETABLE 8 EXPANSION 1", &rng);
    check_replay("BF.RESERVE k 0.2 20 NONSCALING DELETABLE 4", &rng);
}

/* The kernel clears a page for nearly each item. Other clients wait for some of
 * these pages only, and the adds are still one step and one effect. */
TEST(many_items_get_the_pages_of_a_fresh_filter_in_pieces)
{
    enum { MANY = 20000, PIECES_MIN = 3 };
    static const char *const heads[] = { "BF.MADD k", "BF.INSERT k ITEMS" };
    struct rig *rig = rig_new();

    rig->service.limits.multi_bytes_max = 64 << 20;
    for (size_t i = 0; i < 2; i++) {
        run_text(rig, "BF.RESERVE k 0.01 80000000", false);
        effects_clear(rig);
        assert_true(call(rig, heads[i], 0, MANY) >= PIECES_MIN);
        assert_true(ones(rig, MANY) > MANY - 10);
        effects_take(rig);
        assert_int_equal(1, rig->effects.count);
        assert_int_equal(1, call(rig, heads[i], MANY, 256));
        (void)call(rig, "MULTI", 0, 0);
        (void)call(rig, heads[i], 2 * MANY, MANY);
        assert_int_equal(1, call(rig, "EXEC", 0, 0));
        (void)call(rig, "DEL k", 0, 0);
    }
    rig_free(rig);
}

static const struct bloom *
find_key(struct rig *rig, const char *name)
{
    struct key key = { .name = slice_of(name),
                       .hash = hash_name(slice_of(name)) };
    struct entry *entry = keyspace_find(rig->service.keyspace, &key, 1);

    return entry != NULL ? &entry->bloom : NULL;
}

static void
make_key(struct rig *rig, const char *name)
{
    struct key key = { .name = slice_of(name),
                       .hash = hash_name(slice_of(name)) };
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 100000,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };
    struct entry *entry;

    assert_int_equal(BLOOM_OK,
                     keyspace_create(rig->service.keyspace, &key, &params,
                                     &rig->service.bloom_env, 1, &entry));
}

/* Calls a command once, which pauses. */
static void
call_piece(struct rig *rig, const struct command_text *command)
{
    rig->out.len = 0;
    assert_int_equal(0,
                     dispatch_batch(rig->worker, &rig->session, &command->batch,
                                    0, UINT64_MAX, &rig->out));
    assert_non_null(rig->session.again);
}

/* The filter is not there before all of them are. */
TEST(a_new_filter_gets_its_pages_in_pieces)
{
    enum { MANY = 20000, PIECES_MIN = 3 };
    static const char head[] = "BF.INSERT k CAPACITY 80000000 ITEMS";
    struct rig *rig = rig_new(), *again = rig_new();
    struct command_text command;

    rig->service.limits.multi_bytes_max = 64 << 20;
    put(&command, head, 0, MANY);
    call_piece(rig, &command);
    assert_null(find_key(rig, "k"));
    assert_true(run(rig, &command) >= PIECES_MIN - 1);
    assert_true(ones(rig, MANY) > MANY - 10);
    drop(&command);
    effects_take(rig);
    assert_int_equal(1, rig->effects.count);
    repeat_effects(again, buf_slice(&rig->effects.raw));
    assert_int_equal(1, compare_dumps(rig, again));
    rig_free(again);
    remove_key(rig, "k");
    (void)call(rig, "MULTI", 0, 0);
    (void)call(rig, head, 0, MANY);
    assert_int_equal(1, call(rig, "EXEC", 0, 0));
    rig_free(rig);
}

/* The filter that was made is not needed, or nobody wants it any more. */
TEST(a_key_may_come_while_its_filter_is_made)
{
    enum { MANY = 20000 };
    struct rig *rig = rig_new();
    struct command_text command;

    for (int ends = 0; ends < 2; ends++) {
        put(&command, "BF.INSERT k CAPACITY 80000000 ITEMS", 0, MANY);
        call_piece(rig, &command);
        if (ends == 0) {
            make_key(rig, "k");
            (void)run(rig, &command);
            assert_true(ones(rig, MANY) > MANY * 9 / 10);
            assert_int_equal(100000, bloom_capacity(find_key(rig, "k")));
            remove_key(rig, "k");
        }
        drop(&command);
    }
    rig_free(rig);
}

TEST(a_fresh_filter_may_go_between_two_pieces)
{
    enum { MANY = 20000 };
    struct rig *rig = rig_new();
    struct command_text command;

    run_text(rig, "BF.RESERVE k 0.01 80000000", false);
    put(&command, "BF.MADD k", 0, MANY);
    rig->out.len = 0;
    assert_int_equal(0,
                     dispatch_batch(rig->worker, &rig->session, &command.batch,
                                    0, UINT64_MAX, &rig->out));
    assert_non_null(rig->session.again);
    remove_key(rig, "k");
    assert_int_equal(1, run(rig, &command));
    assert_true(ones(rig, MANY) > MANY * 9 / 10);
    drop(&command);
    rig_free(rig);
}

/* The reply of an add that fails is shorter, and the effect has what came
 * before it. */
TEST(a_full_filter_adds_what_it_has_room_for)
{
    struct rig *rig = rig_new();

    run_and_expect(rig, "BF.RESERVE k 0.01 2 NONSCALING DELETABLE", "+OK\r\n");
    run_and_expect(
        rig, "BF.MADD k a a b c d",
        "*4\r\n:1\r\n:0\r\n:1\r\n-ERR non scaling filter is full\r\n");
    effects_take(rig);
    buf_append(&rig->effects.text, "", 1);
    assert_non_null(
        strstr(rig->effects.text.data, "0: BF.INSERT k PLACED + a 0 a + b"));
    assert_null(strstr(rig->effects.text.data, " c"));
    rig_free(rig);
}
