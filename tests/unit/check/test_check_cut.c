/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The targets of truncate-to. test_restore.py cuts journals there.
 */
#include "check/check_cut.h"

#include "../test.h"

TEST(positions_and_times_are_told_apart)
{
    static const struct {
        const char *text;
        bool is_time;
        uint64_t value;
    } rows[] = {
        { "0", false, 0 },
        { "123", false, 123 },
        { "18446744073709551615", false, UINT64_MAX },
        { "0s", true, 0 },
        { "7s", true, 7000 },
        { "7ms", true, 7 },
        { "18446744073709551615ms", true, UINT64_MAX },
        { "1970-01-01T00:00:00Z", true, 0 },
        { "2000-02-29T00:00:00Z", true, 951782400000 },
        { "2000-02-29 00:00:00.5z", true, 951782400500 },
        { "2000-02-29t00:00:00.0019+00:00", true, 951782400001 },
        { "2000-02-28T23:59:60Z", true, 951782400000 },
        { "9999-12-31T23:59:59.999999Z", true, 253402300799999 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct check_target target = { .value = 42 };

        if (!check_cut_parse(rows[i].text, &target)) {
            fail_msg("refused: %s", rows[i].text);
        }
        assert_int_equal(rows[i].is_time, target.is_time);
        assert_int_equal(rows[i].value, target.value);
    }
}

TEST(anything_else_is_refused_and_changes_nothing)
{
    static const char *const texts[] = {
        "",
        "s",
        "ms",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.5s",
        "0x10",
        "18446744073709551616",
        "18446744073709551615s",
        "1m",
        "1h",
        "2001-02-29T00:00:00Z",
        "2000-04-31T00:00:00Z",
        "2000-13-01T00:00:00Z",
        "2000-00-01T00:00:00Z",
        "2000-01-00T00:00:00Z",
        "2000-01-01T24:00:00Z",
        "2000-01-01T00:60:00Z",
        "2000-01-01T00:00:61Z",
        "1969-12-31T23:59:59Z",
        "2000-01-01T00:00:00",
        "2000-01-01T00:00:00.Z",
        "2000-01-01T00:00:00+01:00",
        "2000-01-01T00:00Z",
        "2000-1-1T00:00:00Z",
        "2000-01-01T00:00:00ZZ",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct check_target target = { .value = 42 };

        if (check_cut_parse(texts[i], &target)) {
            fail_msg("accepted: %s", texts[i]);
        }
        assert_int_equal(42, target.value);
    }
}
