/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A set of slots against an array of flags, and its text.
 */
#include "base/slot_set.h"

#include "../test.h"

#include <string.h>

static void
assert_text(const struct slot_set *set, const char *text)
{
    struct buf out = { 0 };

    slot_set_write(&out, set);
    assert_int_equal(out.len, strlen(text));
    assert_true(out.len == 0 || memcmp(out.data, text, out.len) == 0);
    buf_free(&out);
}

TEST(an_empty_set_has_no_ranges_and_an_empty_text)
{
    struct slot_set set = { { 0 } };
    unsigned at = 0;
    unsigned first = 7;
    unsigned last = 8;

    assert_true(slot_set_is_empty(&set));
    assert_int_equal(slot_set_count(&set), 0);
    assert_false(slot_set_next(&set, &at, &first, &last));
    assert_int_equal(first, 7);
    assert_int_equal(last, 8);
    assert_text(&set, "");
}

TEST(ranges_are_whole_across_words_and_at_both_ends)
{
    struct slot_set set = { { 0 } };

    slot_set_add_range(&set, 0, 5460);
    slot_set_add(&set, 9000);
    slot_set_add_range(&set, 16300, 16383);
    assert_text(&set, "0-5460 9000 16300-16383");
    assert_int_equal(slot_set_count(&set), 5461 + 1 + 84);
    slot_set_remove(&set, 63);
    slot_set_remove(&set, 64);
    assert_text(&set, "0-62 65-5460 9000 16300-16383");
    slot_set_add_range(&set, 0, CLUSTER_SLOTS - 1);
    assert_text(&set, "0-16383");
}

TEST(texts_with_blanks_and_commas_are_read)
{
    static const char *const texts[] = { "0-5460 9000", "0-5460,9000",
                                         "  9000  0-5460 ",
                                         "0-3000,3001-5460 9000,9000" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct slot_set set;

        assert_true(slot_set_parse(slice_of(texts[i]), &set));
        assert_text(&set, "0-5460 9000");
    }
}

TEST(malformed_texts_leave_the_set_untouched)
{
    static const char *const texts[] = {
        "x",     "1-",      "-1",  "2-1",
        "16384", "0-16384", "1,",  ",1",
        "1,,2",  "1--2",    "01",  "+1",
        "1 - 2", "1-2-3",   "0x1", "18446744073709551616"
    };
    struct slot_set set = { { 0 } };

    slot_set_add(&set, 5);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_false(slot_set_parse(slice_of(texts[i]), &set));
        assert_text(&set, "5");
    }
    assert_true(slot_set_parse(slice_of(""), &set));
    assert_true(slot_set_is_empty(&set));
}

TEST(random_sets_are_what_an_array_of_flags_says)
{
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 50 * test_rounds(); round++) {
        static bool flags[2][CLUSTER_SLOTS];
        struct slot_set sets[2] = { { { 0 } }, { { 0 } } };
        struct slot_set both;
        struct slot_set again;
        struct buf text = { 0 };
        unsigned count = 0;
        bool meet = false;

        memset(flags, 0, sizeof(flags));
        for (unsigned i = 0; i < 2; i++) {
            for (unsigned left = 20; left > 0; left--) {
                unsigned first =
                    (unsigned)test_random_below(&random, CLUSTER_SLOTS);
                unsigned last =
                    first + (unsigned)test_random_below(
                                &random, (CLUSTER_SLOTS - first + 99) / 100);

                slot_set_add_range(&sets[i], first, last);
                memset(&flags[i][first], 1, last - first + 1);
            }
        }
        both = sets[0];
        slot_set_unite(&both, &sets[1]);
        for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
            assert_int_equal(slot_set_has(&both, slot),
                             flags[0][slot] || flags[1][slot]);
            count += flags[0][slot] || flags[1][slot];
            meet = meet || (flags[0][slot] && flags[1][slot]);
        }
        assert_int_equal(slot_set_count(&both), count);
        slot_set_foreach (&both, slot) {
            assert_true(flags[0][slot] || flags[1][slot]);
            count--;
        }
        assert_int_equal(count, 0);
        assert_int_equal(slot_set_intersects(&sets[0], &sets[1]), meet);
        slot_set_write(&text, &both);
        assert_true(slot_set_parse(buf_slice(&text), &again));
        assert_true(slot_set_equal(&again, &both));
        buf_free(&text);
        slot_set_subtract(&both, &sets[1]);
        for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
            assert_int_equal(slot_set_has(&both, slot),
                             flags[0][slot] && !flags[1][slot]);
        }
    }
}
