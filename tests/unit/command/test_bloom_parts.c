/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of many items without a socket: as many parts as the limit of words
 * makes, one effect each, and the answers of all as one array. With others in
 * between: tests/scenario/test_parts.py.
 */
#include "command/bloom_parts.h"

#include "rig.h"

#include <stdlib.h>

enum { ITEMS = 40000, PARTS_MIN = 3, ITEM_BYTES = 8 };

/* A command of its own batch; the words lie in text. */
struct command_text {
    struct batch batch;
    struct buf text;
};

static void
add_word(struct command_text *command, struct slice word)
{
    struct batch *batch = &command->batch;

    assert_true(batch_reserve(batch, 1));
    batch->argv[batch->argv_count++] =
        (struct slice){ command->text.data + command->text.len, word.len };
    buf_append_slice(&command->text, word);
}

/* The words of head, and so many items from `first` on. */
static void
put(struct command_text *command, const char *head, unsigned first,
    unsigned count)
{
    struct batch *batch = &command->batch;

    *command = (struct command_text){ .batch = { .count = 0 } };
    assert_non_null(
        buf_reserve(&command->text, strlen(head) + ITEMS * ITEM_BYTES));
    while (*head != '\0') {
        struct slice word = { head, strcspn(head, " ") };

        add_word(command, word);
        head += word.len;
        head += *head == ' ';
    }
    for (unsigned i = first; i < first + count; i++) {
        char item[ITEM_BYTES];
        int len = snprintf(item, sizeof(item), "i%u", i);

        add_word(command, (struct slice){ item, (size_t)len });
    }
    batch->command[batch->count++] =
        (struct batch_command){ .argc = (uint32_t)batch->argv_count };
}

static void
drop(struct command_text *command)
{
    batch_fini(&command->batch);
    buf_free(&command->text);
}

/* Calls it until it is done; how often. */
static unsigned
run(struct rig *rig, const struct command_text *command)
{
    unsigned calls = 0;
    uint32_t done = 0;

    rig->out.len = 0;
    while (done == 0) {
        done = dispatch_batch(rig->worker, &rig->session, &command->batch, 0,
                              UINT64_MAX, &rig->out);
        calls++;
        assert_true(done == 1 || rig->session.again != NULL);
        assert_true(done == 1 || rig->out.len == 0);
    }
    assert_null(rig->session.again);
    return calls;
}

static unsigned
call(struct rig *rig, const char *head, unsigned first, unsigned count)
{
    struct command_text command;
    unsigned calls;

    put(&command, head, first, count);
    calls = run(rig, &command);
    drop(&command);
    return calls;
}

static int64_t
number(struct rig *rig, const char *head)
{
    (void)call(rig, head, 0, 0);
    assert_int_equal(':', rig->out.data[0]);
    buf_append(&rig->out, "", 1);
    return strtoll(rig->out.data + 1, NULL, 10);
}

/* An array of so many integers; how many are 1. */
static unsigned
ones(const struct rig *rig, unsigned count)
{
    char header[16];
    int len = snprintf(header, sizeof(header), "*%u\r\n", count);
    unsigned sum = 0;

    assert_int_equal((size_t)len + 4 * count, rig->out.len);
    assert_memory_equal(header, rig->out.data, (size_t)len);
    for (unsigned i = 0; i < count; i++) {
        const char *answer = rig->out.data + len + 4 * i;

        assert_true(answer[0] == ':' && answer[2] == '\r');
        sum += answer[1] == '1';
    }
    return sum;
}

TEST(each_part_is_an_effect_and_the_reply_is_one)
{
    struct rig *rig = rig_new();
    unsigned calls;
    unsigned added;

    (void)call(rig, "BF.RESERVE k 0.001 100000", 0, 0);
    effects_clear(rig);
    calls = call(rig, "BF.MADD k", 0, ITEMS);
    assert_true(calls >= PARTS_MIN);
    added = ones(rig, ITEMS);
    effects_take(rig);
    assert_int_equal(calls, rig->effects.count);
    assert_memory_equal("0: BF.MADD k i0 i1 ", rig->effects.text.data, 19);
    assert_int_equal(added, number(rig, "BF.CARD k"));
    assert_true(call(rig, "BF.MEXISTS k", 0, ITEMS) >= PARTS_MIN);
    assert_int_equal(ITEMS, ones(rig, ITEMS));
    assert_true(call(rig, "BF.MEXISTS none", 0, ITEMS) >= PARTS_MIN);
    assert_int_equal(0, ones(rig, ITEMS));
    rig_free(rig);
}

TEST(a_creation_lists_the_items_of_the_first_part)
{
    struct rig *rig = rig_new();
    unsigned calls = call(rig, "BF.INSERT k CAPACITY 100000 ITEMS", 0, ITEMS);

    (void)ones(rig, ITEMS);
    effects_take(rig);
    assert_int_equal(calls, rig->effects.count);
    assert_memory_equal("0: BF.INSERT k CAPACITY 100000 ",
                        rig->effects.text.data, 31);
    assert_non_null(strstr(rig->effects.text.data, "\n0: BF.MADD k i"));
    rig_free(rig);
}

TEST(what_does_not_fit_ends_the_array_in_any_part)
{
    static const unsigned capacities[] = { 10, 20000, ITEMS - 1000 };

    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new();
        char head[64];
        unsigned answers;
        char *end;

        (void)snprintf(head, sizeof(head),
                       "BF.INSERT k CAPACITY %u NONSCALING ITEMS",
                       capacities[i]);
        (void)call(rig, head, 0, ITEMS);
        answers = (unsigned)strtoul(rig->out.data + 1, &end, 10) - 1;
        assert_true(answers >= capacities[i] && answers < ITEMS);
        assert_memory_equal("\r\n:1\r\n", end, 6);
        assert_int_equal('-', end[2 + 4 * answers]);
        assert_int_equal(capacities[i], number(rig, "BF.CARD k"));
        rig_free(rig);
    }
}

TEST(a_transaction_and_who_obeys_do_not_pause)
{
    struct rig *rig = rig_new();

    (void)call(rig, "MULTI", 0, 0);
    (void)call(rig, "BF.MADD k", 0, ITEMS);
    effects_clear(rig);
    assert_int_equal(1, call(rig, "EXEC", 0, 0));
    effects_take(rig);
    assert_int_equal(1, rig->effects.count);
    (void)call(rig, "BF.RESERVE other 0.001 100000", 0, 0);
    effects_clear(rig);
    rig->session.obey = true;
    assert_int_equal(1, call(rig, "BF.MADD other", 0, ITEMS));
    effects_take(rig); /* there was room for all of it */
    assert_int_equal(1, rig->effects.count);
    rig_free(rig);
}

/* What it worked before is none of the next command's time. */
TEST(a_command_that_is_refused_between_two_parts_leaves_nothing)
{
    struct rig *rig = rig_new();
    struct command_text command;

    (void)call(rig, "BF.RESERVE k 0.001 100000", 0, 0);
    put(&command, "BF.MADD k", 0, ITEMS);
    rig->out.len = 0;
    assert_int_equal(0,
                     dispatch_batch(rig->worker, &rig->session, &command.batch,
                                    0, UINT64_MAX, &rig->out));
    assert_non_null(rig->session.again);
    assert_true(rig->session.worked_ns > 0);
    rig->service.role.replica = true;
    assert_int_equal(1,
                     dispatch_batch(rig->worker, &rig->session, &command.batch,
                                    0, UINT64_MAX, &rig->out));
    assert_memory_equal("-READONLY", rig->out.data, 9);
    assert_null(rig->session.again);
    assert_int_equal(0, rig->session.worked_ns);
    drop(&command);
    rig_free(rig);
}

TEST(a_first_part_that_has_no_item_yet_is_one_all_the_same)
{
    struct rig *rig = rig_new();
    struct buf head = { 0 };

    /* More words before the items than a part has. */
    buf_append_slice(&head, slice_lit("BF.INSERT k"));
    for (int i = 0; i < 9000; i++) {
        buf_append_slice(&head, slice_lit(" CAPACITY 500"));
    }
    buf_append(&head, " ITEMS", 7);
    (void)call(rig, head.data, 0, 100);
    if (rig->out.data[0] == '*') {
        (void)ones(rig, 100);
        assert_true(number(rig, "BF.CARD k") > 90);
    }
    buf_free(&head);
    rig_free(rig);
}

TEST(without_memory_nothing_is_lost_that_was_answered)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct rig *rig = rig_new();
        struct command_text command;
        unsigned added = 0;

        (void)call(rig, "BF.RESERVE k 0.001 100000", 0, 0);
        put(&command, "BF.MADD k", 0, ITEMS);
        effects_clear(rig);
        mem_fail_at(nth);
        (void)run(rig, &command);
        fired = mem_fail_clear();
        if (rig->out.data[0] == '*') {
            added = ones(rig, ITEMS);
            assert_int_equal(added, number(rig, "BF.CARD k"));
        } else {
            assert_true(fired);
            assert_int_equal('-', rig->out.data[0]);
        }
        drop(&command);
        rig_free(rig);
    }
}
