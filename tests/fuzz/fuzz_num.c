/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as each kind of number: what is accepted has the value that the C
 * library reads, and what is written reads back as the same.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "target.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLE_TEXT_MAX = 511 };

/* Whether the text is an optional sign of these and then digits alone. */
static bool
has_digits(const char *text, size_t len, const char *signs)
{
    size_t sign = len > 0 && text[0] != '\0' && strchr(signs, text[0]) != NULL;

    return len > sign && strspn(text + sign, "0123456789") == len - sign;
}

static void
check_integers(struct slice given, const char *text)
{
    char again[NUM_U64_MAX + 2];
    int64_t wide = 0, strict = 0;
    uint64_t natural = 0;
    uint32_t narrow = 0;
    bool ok;
    long long value;

    errno = 0;
    value = strtoll(text, NULL, 10);
    ok = has_digits(text, given.len, "+-") && errno == 0;
    CHECK(num_parse_i64(given, &wide) == ok && wide == (ok ? value : 0));
    ok = ok && text[0] != '-' && value <= UINT32_MAX;
    CHECK(num_parse_u32(given, &narrow) == ok);
    CHECK(narrow == (ok ? (uint32_t)value : 0));
    if (slice_to_i64(given, &strict)) { /* one text a number */
        (void)snprintf(again, sizeof(again), "%lld", (long long)strict);
        CHECK(slice_equal(given, slice_of(again)) && strict == wide);
    }
    if (slice_to_u64(given, &natural)) {
        CHECK(num_format_u64(natural, again) <= NUM_U64_MAX);
        CHECK(has_digits(text, given.len, ""));
        CHECK(natural == strtoull(text, NULL, 10));
    }
}

static void
check_written(double value)
{
    char text[NUM_DOUBLE_MAX];
    char plain[NUM_PLAIN_MAX];
    double again = 0;
    size_t len = num_format_double(value, text);

    CHECK(len < sizeof(text) && strlen(text) == len);
    CHECK(num_parse_double((struct slice){ text, len }, &again));
    CHECK(again == value || (isnan(again) && isnan(value)));
    len = num_format_plain(value, plain);
    CHECK(len < sizeof(plain) && strlen(plain) == len);
    CHECK(num_parse_double((struct slice){ plain, len }, &again));
    CHECK(again == value || (isnan(again) && isnan(value)));
    CHECK(!isfinite(value) || strspn(plain, "-.0123456789") == len);
}

/* Rust's form is that of C without blanks, hexadecimal digits and payloads of
 * nan. */
static void
check_doubles(struct slice given, const char *text)
{
    double rust = 0, redis = 0, value;
    bool rust_ok = num_parse_double(given, &rust);
    bool redis_ok = num_parse_strtod(given, &redis);
    char *end = NULL;
    bool ok;

    errno = 0;
    value = strtod(text, &end);
    ok = given.len > 0 && given.len <= DOUBLE_TEXT_MAX &&
         end == text + given.len && isspace((unsigned char)text[0]) == 0;
    CHECK(rust_ok == (ok && strpbrk(text, "xX()") == NULL));
    CHECK(redis_ok == (ok && !isnan(value) &&
                       !(errno == ERANGE && (isinf(value) || value == 0))));
    if (rust_ok) {
        CHECK(rust == value || (isnan(rust) && isnan(value)));
        check_written(rust);
    }
    if (redis_ok) {
        CHECK(redis == value);
        check_written(redis);
    }
}

static void
check_sizes(struct slice given, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t bytes = 0;
    uint64_t value = 0;
    char unit;

    if (!num_parse_bytes(given, &bytes)) {
        return;
    }
    CHECK(digits > 0 && given.len - digits <= 2);
    for (size_t i = 0; i < digits; i++) {
        CHECK(
            !__builtin_mul_overflow(value, (uint64_t)10, &value) &&
            !__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value));
    }
    unit = slice_fold(text[digits]);
    for (const char *at = "kmgt"; unit != '\0' && unit != 'b'; at++) {
        uint64_t step = given.len - digits == 2 ? 1024 : 1000;

        CHECK(*at != '\0' && !__builtin_mul_overflow(value, step, &value));
        if (*at == unit) {
            break;
        }
    }
    CHECK(bytes == value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice given = { (const char *)data, size };
    char *text = mem_alloc(size + 1);
    double value;

    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    check_integers(given, text);
    check_doubles(given, text);
    check_sizes(given, text);
    if (size == sizeof(value)) {
        memcpy(&value, data, sizeof(value));
        check_written(value);
    }
    mem_free(text);
    return 0;
}

/* ---- inputs for replay.c: digits with signs, points, exponents and units --
 */

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    static const char bytes[] =
        "0123456789012345678901234567899.e+-EkKmMbBxinfa ";
    uint64_t random = seed;
    size_t len = (size_t)(fuzz_next(&random) % 24);

    CHECK(len <= max);
    for (size_t i = 0; i < len; i++) {
        to[i] = (uint8_t)bytes[fuzz_next(&random) % (sizeof(bytes) - 1)];
    }
    return len;
}
