/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers in and out: what is taken and refused by example, and doubles of
 * random bits through both formats and back.
 */
#include "base/num.h"

#include "../test.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct int_case {
    const char *text;
    bool ok;
    int64_t value;
};

TEST(integers_parse_as_in_rust)
{
    static const struct int_case cases[] = {
        { "0", true, 0 },
        { "+5", true, 5 },
        { "05", true, 5 },
        { "-0", true, 0 },
        { "-00012", true, -12 },
        { "9223372036854775807", true, INT64_MAX },
        { "-9223372036854775808", true, INT64_MIN },
        { "9223372036854775808", false, 0 },
        { "-9223372036854775809", false, 0 },
        { "", false, 0 },
        { "+", false, 0 },
        { "-", false, 0 },
        { "+-1", false, 0 },
        { " 1", false, 0 },
        { "1 ", false, 0 },
        { "1.0", false, 0 },
        { "1e3", false, 0 },
        { "0x10", false, 0 },
        { "1_000", false, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t value = 4711;

        if (num_parse_i64(slice_of(cases[i].text), &value) != cases[i].ok ||
            value != (cases[i].ok ? cases[i].value : 4711)) {
            fail_msg("[%s]", cases[i].text);
        }
    }
}

TEST(small_integers_refuse_a_minus_and_what_is_too_large)
{
    uint32_t value = 4711;

    assert_true(num_parse_u32(slice_lit("4294967295"), &value));
    assert_int_equal(UINT32_MAX, value);
    assert_true(num_parse_u32(slice_lit("+007"), &value));
    assert_int_equal(7, value);
    assert_false(num_parse_u32(slice_lit("4294967296"), &value));
    assert_false(num_parse_u32(slice_lit("-1"), &value));
    assert_false(num_parse_u32(slice_lit("-0"), &value));
    assert_false(num_parse_u32(slice_lit(""), &value));
    assert_int_equal(7, value);
}

struct double_case {
    const char *text;
    double value;
};

typedef bool parse_double_fn(struct slice text, double *ret_value);

static void
expect_doubles(parse_double_fn *parse, const struct double_case *good,
               size_t count)
{
    double value = 0;

    for (size_t i = 0; i < count; i++) {
        if (!parse(slice_of(good[i].text), &value) ||
            !(value == good[i].value)) {
            fail_msg("[%s]", good[i].text);
        }
    }
    /* Cut out of longer text. */
    assert_true(parse((struct slice){ "0.12345", 3 }, &value));
    assert_true(value == 0.1);
}

/* A refused text leaves the value alone. */
static void
expect_refused(parse_double_fn *parse, const char *const *bad, size_t count)
{
    double value = 7;

    for (size_t i = 0; i < count; i++) {
        if (parse(slice_of(bad[i]), &value) || !(value == 7.0)) {
            fail_msg("[%s]", bad[i]);
        }
    }
    assert_false(parse(slice_lit("1\0"), &value));
}

TEST(doubles_parse_as_in_rust)
{
    static const struct double_case good[] = {
        { "0.01", 0.01 },
        { "1e-3", 1e-3 },
        { ".5", 0.5 },
        { "5.", 5 },
        { "+0.5", 0.5 },
        { "-1E+2", -100 },
        { "00.50", 0.5 },
        { "1e400", HUGE_VAL },
        { "1e-400", 0 },
        { "inf", HUGE_VAL },
        { "-INF", -HUGE_VAL },
        { "Infinity", HUGE_VAL },
        { "4.9e-324", 4.9e-324 },
    };
    static const char *const bad[] = {
        "",      " 1",     "1 ",  "0x1", "1f",  "0.01f", "1e",
        "1e+",   ".",      "+",   "-.",  ".e1", "1.2.3", "in",
        "infin", "nan(1)", "1,5", "--1", "e5",  "1e5.0"
    };
    double value = 0;

    expect_doubles(num_parse_double, good, sizeof(good) / sizeof(good[0]));
    assert_true(num_parse_double(slice_lit("nAn"), &value));
    assert_true(isnan(value));
    expect_refused(num_parse_double, bad, sizeof(bad) / sizeof(bad[0]));
}

TEST(doubles_parse_as_in_redis)
{
    static const struct double_case good[] = {
        { "0.01", 0.01 },
        { "1e-3", 1e-3 },
        { ".5", 0.5 },
        { "5.", 5 },
        { "+0.5", 0.5 },
        { "0x0.1p0", 0.0625 },
        { "1e-310", 1e-310 },
        { "inf", HUGE_VAL },
        { "-INF", -HUGE_VAL },
        { "infinity", HUGE_VAL },
        { "0", 0 },
        { "4.9e-324", 4.9e-324 },
    };
    static const char *const bad[] = { "",     " 1",   "1 ",  "\t1",   "nan",
                                       "-nan", "1f",   "x",   "1e400", "-1e999",
                                       "1e",   "1..2", "1,5", "1e-400" };

    expect_doubles(num_parse_strtod, good, sizeof(good) / sizeof(good[0]));
    expect_refused(num_parse_strtod, bad, sizeof(bad) / sizeof(bad[0]));
}

struct bytes_case {
    const char *text;
    bool ok;
    uint64_t value;
};

TEST(sizes_take_units_as_in_redis)
{
    static const struct bytes_case cases[] = {
        { "0", true, 0 },
        { "1", true, 1 },
        { "1b", true, 1 },
        { "2k", true, 2000 },
        { "2kb", true, 2048 },
        { "3m", true, 3000000 },
        { "3MB", true, 3145728 },
        { "1g", true, 1000000000 },
        { "1Gb", true, 1073741824 },
        { "1t", true, 1000000000000 },
        { "1tb", true, 1099511627776 },
        { "18446744073709551615", true, UINT64_MAX },
        { "16777215tb", true, UINT64_MAX - 1099511627775 },
        { "16777216tb", false, 0 },
        { "18446744073709551616", false, 0 },
        { "", false, 0 },
        { "mb", false, 0 },
        { "-1", false, 0 },
        { "-1mb", false, 0 },
        { "+1", false, 0 },
        { "1 mb", false, 0 },
        { "1mbb", false, 0 },
        { "1x", false, 0 },
        { "1.5gb", false, 0 },
        { "1m2", false, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t value = 4711;

        if (num_parse_bytes(slice_of(cases[i].text), &value) != cases[i].ok ||
            value != (cases[i].ok ? cases[i].value : 4711)) {
            fail_msg("[%s]", cases[i].text);
        }
    }
}

struct format_case {
    double value;
    const char *text, *plain;
};

/* The examples of valkey-bloom's replies, and edges around its rule. */
static const struct format_case formats[] = {
    { 0.01, "0.01", "0.01" },
    { 1e-6, "0.000001", "0.000001" },
    { 1e-7, "1e-7", "0.0000001" },
    { 1.25e-5, "1.25e-5", "0.0000125" },
    { 0.5, "0.5", "0.5" },
    { 0.1, "0.1", "0.1" },
    { 0.001, "0.001", "0.001" },
    { 0.0012345678901234567, "0.0012345678901234567", "0.0012345678901234567" },
    { 1.0 / 3, "0.3333333333333333", "0.3333333333333333" },
    { 0, "0", "0" },
    { 1, "1", "1" },
    { -2.5, "-2.5", "-2.5" },
    { 1e15, "1000000000000000", "1000000000000000" },
    { 1e-300, "1e-300", NULL },
    { DBL_MIN, "2.2250738585072014e-308", NULL },
    { HUGE_VAL, "inf", "inf" },
    { -HUGE_VAL, "-inf", "-inf" },
};

TEST(doubles_are_written_as_valkey_writes_them)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        char text[NUM_DOUBLE_MAX];
        char plain[NUM_PLAIN_MAX];

        assert_int_equal(strlen(formats[i].text),
                         num_format_double(formats[i].value, text));
        assert_string_equal(formats[i].text, text);
        if (formats[i].plain != NULL) {
            assert_int_equal(strlen(formats[i].plain),
                             num_format_plain(formats[i].value, plain));
            assert_string_equal(formats[i].plain, plain);
        }
    }
}

static void
check_round_trip(double value)
{
    char text[NUM_DOUBLE_MAX + 1];
    char plain[NUM_PLAIN_MAX + 1];
    size_t len;
    double back = 0;

    memset(text, '#', sizeof(text));
    memset(plain, '#', sizeof(plain));
    len = num_format_double(value, text);
    assert_int_equal('\0', text[len]);
    assert_int_equal('#', text[NUM_DOUBLE_MAX]);
    assert_true(num_parse_double((struct slice){ text, len }, &back));
    if (!(back == value)) {
        fail_msg("%.17g became %s", value, text);
    }
    len = num_format_plain(value, plain);
    assert_int_equal('\0', plain[len]);
    assert_int_equal('#', plain[NUM_PLAIN_MAX]);
    assert_int_equal(len, strspn(plain, "-.0123456789"));
    assert_true(num_parse_double((struct slice){ plain, len }, &back));
    if (!(back == value)) {
        fail_msg("%.17g became %s", value, plain);
    }
}

TEST(random_doubles_read_back_from_both_formats)
{
    static const double edges[] = { DBL_MAX,  -DBL_MAX,    DBL_MIN,
                                    4.9e-324, -4.9e-324,   1e22,
                                    1e23,     DBL_EPSILON, 9007199254740993.0 };
    uint64_t random = test_seed();

    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        check_round_trip(edges[i]);
    }
    for (int i = 0; i < 5000; i++) {
        uint64_t bits = test_random(&random);
        double value;

        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value)) {
            check_round_trip(value);
        }
        /* And rates, which is what is written in practice. */
        check_round_trip((double)(bits >> 11) * 0x1p-53 + 0x1p-60);
    }
}

/* A number of few digits is written with just these. */
TEST(few_digits_stay_few)
{
    uint64_t random = test_seed();

    for (unsigned i = 0; i < 20000; i++) {
        int digits = 1 + (int)(test_random(&random) % 17);
        int places = (int)(test_random(&random) % 20);
        uint64_t whole = test_random(&random);
        char text[64];
        char plain[NUM_PLAIN_MAX];
        int written = 0;
        double value;
        size_t len;

        while (digits < 20 && whole >= (uint64_t)pow(10, digits)) {
            whole /= 10;
        }
        (void)snprintf(text, sizeof(text), "%" PRIu64 "e-%d", whole, places);
        value = strtod(text, NULL);
        len = num_format_plain(value, plain);
        assert_true(strtod(plain, NULL) == value);
        for (size_t at = strspn(plain, "0."); at < len; at++) {
            written += plain[at] != '.';
        }
        /* Zeros at the end of a whole number are no digits. */
        if (strchr(plain, '.') != NULL && written > digits) {
            fail_msg("%s became %s", text, plain);
        }
    }
}

TEST(whole_numbers_are_written_in_decimal)
{
    uint64_t random = test_seed();

    for (unsigned i = 0; i < 5000; i++) {
        uint64_t value = test_random(&random) >> (i % 64);
        char expected[NUM_U64_MAX + 1];
        char text[NUM_U64_MAX];
        size_t len;

        value = i < 2 ? UINT64_MAX + i : value; /* and 0 */
        len = num_format_u64(value, text);
        assert_int_equal(
            len, snprintf(expected, sizeof(expected), "%" PRIu64, value));
        assert_memory_equal(expected, text, len);
    }
}
