/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which histories share a past, and up to where.
 */
#include "journal/history.h"

#include "../test.h"

#include <stdio.h>

/* The id of that number. */
static const char *
id_of(unsigned n)
{
    static char ids[4][HISTORY_ID_CHARS + 1];
    static unsigned next;
    char *id = ids[next++ % 4];

    (void)snprintf(id, sizeof(ids[0]), "%040x", n);
    return id;
}

static bool
covers(const struct history *history, unsigned n, uint64_t position)
{
    return history_covers(history, slice_of(id_of(n)), position);
}

TEST(a_new_history_has_a_random_id_and_no_past)
{
    struct history a, b;

    memset(&a, 'x', sizeof(a));
    history_begin(&a, NULL);
    history_begin(&b, NULL);
    assert_true(history_is_id(slice_of(a.id)));
    assert_string_not_equal(a.id, b.id);
    assert_string_equal(a.past[0].id, "");
    assert_true(history_covers(&a, slice_of(a.id), UINT64_MAX));
    assert_false(history_covers(&a, slice_of(b.id), 0));
    history_begin(&a, id_of(7));
    assert_string_equal(a.id, id_of(7));
    history_begin(&a, a.id); /* its own */
    assert_string_equal(a.id, id_of(7));
}

TEST(what_went_on_covers_the_past_up_to_there)
{
    struct history history;

    history_begin(&history, id_of(1));
    history_go_on(&history, id_of(2), 100);
    history_go_on(&history, id_of(3), 250);
    assert_string_equal(history.id, id_of(3));
    assert_true(covers(&history, 3, 0) && covers(&history, 3, UINT64_MAX));
    assert_true(covers(&history, 2, 250) && covers(&history, 2, 0));
    assert_false(covers(&history, 2, 251));
    assert_true(covers(&history, 1, 100));
    assert_false(covers(&history, 1, 101));
    assert_false(covers(&history, 4, 0));
}

TEST(going_on_with_the_present_id_changes_nothing)
{
    struct history history, before;

    history_begin(&history, id_of(1));
    history_go_on(&history, id_of(2), 100);
    before = history;
    history_go_on(&history, id_of(2), 900);
    history_go_on(&history, history.id, 50);
    assert_memory_equal(&before, &history, sizeof(before));
}

/* 3 continues from a position at which 2 still equals 1; behind it 1 is no
 * past. */
TEST(an_older_past_ends_where_a_newer_one_does)
{
    struct history history;

    history_begin(&history, id_of(1));
    history_go_on(&history, id_of(2), 200);
    history_go_on(&history, id_of(3), 150);
    assert_true(covers(&history, 2, 150) && covers(&history, 1, 150));
    assert_false(covers(&history, 2, 151));
    assert_false(covers(&history, 1, 151));
}

TEST(the_oldest_past_is_forgotten_first)
{
    struct history history;

    history_begin(&history, id_of(0));
    for (unsigned i = 1; i <= HISTORY_PAST_MAX + 1; i++) {
        assert_true(covers(&history, 0, 5));
        history_go_on(&history, id_of(i), 10 * (uint64_t)i);
    }
    assert_false(covers(&history, 0, 5));
    for (unsigned i = 1; i <= HISTORY_PAST_MAX; i++) {
        assert_true(covers(&history, i, 10 * (uint64_t)i + 10));
        assert_false(covers(&history, i, 10 * (uint64_t)i + 11));
    }
}

TEST(a_history_may_go_on_with_an_id_of_its_own_past)
{
    struct history history;

    history_begin(&history, id_of(1));
    history_go_on(&history, id_of(2), 10);
    history_go_on(&history, history.past[0].id, 20);
    assert_string_equal(history.id, id_of(1));
    assert_true(covers(&history, 2, 20));
    assert_false(covers(&history, 2, 21));
}

/* Returns where two logs part; UINT64_MAX: they have nothing in common. */
static uint64_t
common(const struct history *ours, uint64_t our_end,
       const struct history *theirs, uint64_t their_end)
{
    uint64_t position;

    return history_common(ours, our_end, theirs, their_end, &position)
               ? position
               : UINT64_MAX;
}

TEST(two_logs_part_where_the_first_of_them_left_their_history)
{
    struct history ours, theirs;

    history_begin(&ours, id_of(1));
    history_begin(&theirs, id_of(1));
    assert_int_equal(common(&ours, 500, &theirs, 300), 300);
    assert_int_equal(common(&ours, 200, &theirs, 300), 200);
    /* They were promoted at 300, we were not. */
    history_go_on(&theirs, id_of(2), 300);
    assert_int_equal(common(&ours, 500, &theirs, 900), 300);
    assert_int_equal(common(&ours, 200, &theirs, 900), 200);
    /* We have restarted at 400 since, and they at 600. */
    history_go_on(&ours, id_of(3), 400);
    history_go_on(&theirs, id_of(4), 600);
    assert_int_equal(common(&ours, 500, &theirs, 900), 300);
    assert_int_equal(common(&theirs, 900, &ours, 500), 300);
    /* Our restart was at 250, before they left. */
    history_begin(&ours, id_of(1));
    history_go_on(&ours, id_of(3), 250);
    assert_int_equal(common(&ours, 500, &theirs, 900), 250);
}

TEST(logs_without_a_common_history_have_no_common_position)
{
    struct history ours, theirs;

    history_begin(&ours, id_of(1));
    history_begin(&theirs, id_of(2));
    assert_int_equal(common(&ours, 5, &theirs, 9), UINT64_MAX);
    for (unsigned i = 0; i <= HISTORY_PAST_MAX; i++) {
        history_go_on(&ours, id_of(10 + i), 10 + i);
        history_go_on(&theirs, id_of(30 + i), 10 + i);
    }
    assert_int_equal(common(&ours, 99, &theirs, 99), UINT64_MAX);
    /* The newest of two common histories counts. */
    history_begin(&ours, id_of(1));
    history_go_on(&ours, id_of(2), 10);
    history_go_on(&ours, id_of(3), 20);
    history_begin(&theirs, id_of(1));
    history_go_on(&theirs, id_of(2), 10);
    history_go_on(&theirs, id_of(4), 30);
    assert_int_equal(common(&ours, 99, &theirs, 99), 20);
}

TEST(an_id_is_forty_digits)
{
    struct history history = { 0 };
    char text[HISTORY_ID_CHARS + 2];

    assert_true(
        history_is_id(slice_lit("0123456789abcdef0123456789abcdef01234567")));
    assert_false(
        history_is_id(slice_lit("0123456789abcdef0123456789abcdef0123456")));
    assert_false(
        history_is_id(slice_lit("0123456789abcdef0123456789abcdef012345678")));
    assert_false(history_is_id(slice_lit("")));
    for (int c = 0; c < 256; c++) {
        (void)snprintf(text, sizeof(text), "%s", id_of(0xabc));
        text[c % HISTORY_ID_CHARS] = (char)c;
        assert_int_equal(
            c != 0 && strchr("0123456789abcdef", c) != NULL,
            history_is_id((struct slice){ text, HISTORY_ID_CHARS }));
    }
    /* An empty id matches no history. */
    assert_false(history_covers(&history, slice_lit(""), 0));
    history_begin(&history, id_of(1));
    assert_false(history_covers(&history, slice_lit(""), 0));
    assert_false(history_covers(
        &history, (struct slice){ history.id, HISTORY_ID_CHARS - 1 }, 0));
}

TEST(history_takes_the_past_from_an_older_record)
{
    static const char *const ids[] = {
        "0000000000000000000000000000000000000001",
        "0000000000000000000000000000000000000002",
        "0000000000000000000000000000000000000003",
        "0000000000000000000000000000000000000004",
    };
    struct history older;
    struct history history;

    history_begin(&older, ids[0]);
    history_go_on(&older, ids[1], 10);
    history_begin(&history, ids[1]); /* of a base */
    history_extend(&history, &older);
    assert_string_equal(ids[0], history.past[0].id);
    assert_true(history.past[0].until == 10);

    history_begin(&history, ids[1]);
    history_go_on(&history, ids[2], 20);
    history_go_on(&history, ids[3], 30);
    for (int i = 0; i < 2; i++) { /* the second time changes nothing */
        history_extend(&history, &older);
        assert_string_equal(ids[2], history.past[0].id);
        assert_string_equal(ids[1], history.past[1].id);
        assert_string_equal(ids[0], history.past[2].id);
        assert_true(history.past[2].until == 10);
        assert_true(history.past[3].id[0] == '\0');
    }

    history_begin(&history, ids[3]); /* of another server */
    history_extend(&history, &older);
    assert_true(history.past[0].id[0] == '\0');
    for (uint64_t i = 0; i < 2 * HISTORY_PAST_MAX; i++) { /* it is full */
        char id[HISTORY_ID_CHARS + 1];

        (void)snprintf(id, sizeof(id), "%040u", 100 + (unsigned)i);
        history_go_on(&older, id, 40 + i);
        history_extend(&history, &older);
        history_go_on(&history, id, 40 + i);
    }
    history_extend(&history, &older);
    assert_true(history.past[HISTORY_PAST_MAX - 1].id[0] != '\0');
}

TEST(histories_with_the_same_past_are_equal)
{
    static const char *const ids[] = {
        "1111111111111111111111111111111111111111",
        "2222222222222222222222222222222222222222",
    };
    struct history history;
    struct history other;

    memset(&other, 'x',
           sizeof(other)); /* what follows the end does not count */
    history_begin(&history, ids[0]);
    history_begin(&other, ids[0]);
    memset(other.past[0].id + 1, 'x', HISTORY_ID_CHARS - 1);
    assert_true(history_equals(&history, &other));
    history_go_on(&history, ids[1], 10);
    assert_false(history_equals(&history, &other));
    history_go_on(&other, ids[1], 11);
    assert_false(history_equals(&history, &other));
    other.past[0].until = 10;
    assert_true(history_equals(&history, &other));
}
