/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redis's patterns by example, and the matcher against a plain recursive one
 * over random patterns of few bytes. The work that it counts is bounded.
 */
#include "base/glob.h"

#include "../test.h"
#include "base/mem.h"

static bool
matches(struct slice pattern, struct slice text, bool ignore_case)
{
    size_t work = GLOB_WORK;
    enum glob_verdict verdict = glob_match(pattern, text, ignore_case, &work);

    assert_int_not_equal(GLOB_OVER, verdict);
    return verdict == GLOB_YES;
}

struct glob_case {
    const char *pattern, *text;
    bool matches, matches_any_case;
};

static const struct glob_case cases[] = {
    { "", "", true, true },
    { "", "a", false, false },
    { "*", "", true, true },
    { "*", "anything", true, true },
    { "***", "anything", true, true },
    { "?", "", false, false },
    { "?", "a", true, true },
    { "?", "ab", false, false },
    { "a*", "abc", true, true },
    { "*c", "abc", true, true },
    { "a*c", "abcbc", true, true },
    { "a*d", "abcbc", false, false },
    { "a*?c", "ac", false, false },
    { "ABC", "abc", false, true },
    { "user:*:name", "user:1:2:name", true, true },
    { "user:*:name", "user:name", false, false },
    { "[abc]", "b", true, true },
    { "[abc]", "d", false, false },
    { "[^abc]", "b", false, false },
    { "[^abc]", "d", true, true },
    { "[^abc]", "^", true, true },
    { "[a^]", "^", true, true },
    { "[a-c]x", "bx", true, true },
    { "[c-a]x", "bx", true, true }, /* a range either way round */
    { "[a-c]", "B", false, true },
    { "[A-C]", "b", false, true },
    { "[a-]", "-", false, false }, /* a range up to ']' */
    { "[a-]", "^", true, true },
    { "[-a]", "-", true, true },
    { "[]", "]", false, false }, /* an empty class takes nothing */
    { "[]a]", "a]", false, false },
    { "[^]", "x", true, true }, /* and its negation everything */
    { "[a", "a", true, true },  /* an open class ends with the pattern */
    { "[a", "b", false, false },
    { "[", "[", false, false },
    { "[\\]]", "]", true, true },
    { "[\\-x]", "-", true, true },
    { "\\*", "*", true, true },
    { "\\*", "x", false, false },
    { "\\?", "?", true, true },
    { "\\[a]", "[a]", true, true },
    { "\\a", "a", true, true },
    { "a\\", "a\\", true, true }, /* nothing behind it: itself */
    { "\\\\", "\\", true, true },
    { "*\\*", "x*", true, true },
    { "h[ae]llo*w?rld", "hello, world", true, true },
};

TEST(patterns_match_as_in_redis)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct glob_case *c = &cases[i];
        struct slice pattern = slice_of(c->pattern);
        struct slice text = slice_of(c->text);

        if (matches(pattern, text, false) != c->matches ||
            matches(pattern, text, true) != c->matches_any_case) {
            fail_msg("[%s] and [%s]", c->pattern, c->text);
        }
    }
}

TEST(zero_and_high_bytes_are_bytes_like_others)
{
    assert_true(matches(slice_lit("a\0*"), slice_lit("a\0b\0c"), false));
    assert_false(matches(slice_lit("a\0b"), slice_lit("a\0c"), false));
    assert_true(matches(slice_lit("\xff?"), slice_lit("\xff\x80"), false));
    assert_true(matches(slice_lit("[\x80-\xff]"), slice_lit("\xc3"), false));
    assert_false(matches(slice_lit("[\x80-\xff]"), slice_lit("a"), false));
}

TEST(a_plain_pattern_has_no_special_byte)
{
    assert_true(glob_is_plain(slice_lit("")));
    assert_true(glob_is_plain(slice_lit("user:1-2]^")));
    assert_false(glob_is_plain(slice_lit("user:*")));
    assert_false(glob_is_plain(slice_lit("user:?")));
    assert_false(glob_is_plain(slice_lit("[u]")));
    assert_false(glob_is_plain(slice_lit("\\u")));
}

/* What costs its length for each byte of each text has a bound; what can only
 * be compared has none. */
TEST(a_long_pattern_is_fair_without_special_bytes_only)
{
    static const char special[] = "*?[\\";
    char *text = mem_alloc(100000);
    struct slice pattern = { text, GLOB_PATTERN_MAX };

    memset(text, 'a', 100000);
    for (size_t i = 0; i < sizeof(special) - 1; i++) {
        for (size_t at = 0; at < GLOB_PATTERN_MAX; at += 341) {
            text[at] = special[i];
            pattern.len = GLOB_PATTERN_MAX;
            assert_true(glob_is_fair(pattern));
            pattern.len++;
            assert_false(glob_is_fair(pattern));
            text[at] = 'a';
            assert_true(glob_is_fair(pattern));
        }
    }
    pattern.len = 100000;
    assert_true(glob_is_fair(pattern));
    text[pattern.len - 1] = '*';
    assert_false(glob_is_fair(pattern));
    assert_true(glob_is_fair(slice_lit("")));
    mem_free(text);
}

/* The reference: Redis's stringmatchlen, told as a recursion that tries all. */
static bool
takes(const char **p, const char *pend, char c)
{
    bool negated = false;
    bool found = false;

    if (**p == '?') {
        (*p)++;
        return true;
    }
    if (**p != '[') {
        *p += **p == '\\' && *p + 1 < pend;
        return *(*p)++ == c;
    }
    (*p)++;
    if (*p < pend && **p == '^') {
        negated = true;
        (*p)++;
    }
    for (; *p < pend && **p != ']'; (*p)++) {
        if (**p == '\\' && *p + 1 < pend) {
            (*p)++;
            found = found || **p == c;
        } else if (*p + 2 < pend && (*p)[1] == '-') {
            char low = **p < (*p)[2] ? **p : (*p)[2];
            char high = **p < (*p)[2] ? (*p)[2] : **p;

            found = found || (low <= c && c <= high);
            *p += 2;
        } else {
            found = found || **p == c;
        }
    }
    *p += *p < pend;
    return found != negated;
}

static bool
match_slowly(const char *p, const char *pend, const char *t, const char *tend)
{
    if (p == pend) {
        return t == tend;
    }
    if (*p == '*') {
        return match_slowly(p + 1, pend, t, tend) ||
               (t < tend && match_slowly(p, pend, t + 1, tend));
    }
    return t < tend && takes(&p, pend, *t) &&
           match_slowly(p, pend, t + 1, tend);
}

/* Of few letters, so that a good part of them matches. */
static void
fill(uint64_t *x, const char *letters, char *ret_text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ret_text[i] = letters[test_random_below(x, strlen(letters))];
    }
}

static void
compare_with_reference(const char *letters, size_t pattern_max, size_t text_max,
                       unsigned rounds)
{
    uint64_t x = test_seed();
    unsigned matched = 0;

    rounds = test_times(rounds);
    for (unsigned i = 0; i < rounds; i++) {
        char pattern[32];
        char text[32];
        size_t plen = test_random_below(&x, pattern_max);
        size_t tlen = test_random_below(&x, text_max);
        bool expected;
        size_t work;
        enum glob_verdict verdict;

        fill(&x, letters, pattern, plen);
        fill(&x, "aab", text, tlen);
        expected = match_slowly(pattern, pattern + plen, text, text + tlen);
        matched += expected;
        work = glob_work_max((struct slice){ pattern, plen }, tlen);
        verdict = glob_match((struct slice){ pattern, plen },
                             (struct slice){ text, tlen }, false, &work);
        if (verdict != (expected ? GLOB_YES : GLOB_NO)) {
            fail_msg("[%.*s] and [%.*s]: %d", (int)plen, pattern, (int)tlen,
                     text, (int)verdict);
        }
        /* With less, it may not be known, but is never wrong. */
        work = test_random_below(&x, 8);
        verdict = glob_match((struct slice){ pattern, plen },
                             (struct slice){ text, tlen }, false, &work);
        assert_true(verdict == GLOB_OVER ||
                    verdict == (expected ? GLOB_YES : GLOB_NO));
    }
    assert_true(matched > rounds / 50);
}

TEST(random_patterns_match_as_the_plain_recursion_says)
{
    compare_with_reference("ab*?", 8, 10, 200000);
    compare_with_reference("aab**", 16, 24, 200000);
    compare_with_reference("a**b?[]^-\\", 14, 12, 400000);
    compare_with_reference("ab*\\", 12, 12, 200000);
}

/* ---- work ---------------------------------------------------------------- */

enum { LONG = 1 << 20, PART = 1000 };

/* `times` a star and so many times c, and then the end. */
static struct slice
stars_and(char *ret_pattern, unsigned times, unsigned count, char c,
          const char *end)
{
    size_t len = 0;

    for (unsigned i = 0; i < times; i++) {
        ret_pattern[len++] = '*';
        memset(ret_pattern + len, c, count);
        len += count;
    }
    memcpy(ret_pattern + len, end, strlen(end));
    return (struct slice){ ret_pattern, len + strlen(end) };
}

static size_t
work_of(struct slice pattern, struct slice text, enum glob_verdict expected)
{
    size_t work = SIZE_MAX;

    assert_int_equal(expected, glob_match(pattern, text, false, &work));
    return SIZE_MAX - work;
}

/* It was the product of both: 1,000,000,000 steps for a star, 1,000 letters and
 * 1 MB of the same letter. */
TEST(stars_and_literals_take_work_linear_in_the_text)
{
    char *text = mem_alloc(LONG);
    char pattern[2 * GLOB_PATTERN_MAX];
    struct slice all = { text, LONG };
    size_t most = LONG / 2 + GLOB_PATTERN_MAX + 1;

    memset(text, 'a', LONG);
    assert_true(work_of(stars_and(pattern, 1, PART, 'a', ""), all, GLOB_YES) <=
                PART);
    assert_true(work_of(stars_and(pattern, 1, PART, 'a', "*"), all, GLOB_YES) <=
                most);
    assert_true(work_of(stars_and(pattern, 1, PART, 'a', "b*"), all, GLOB_NO) <=
                most);
    assert_true(work_of(stars_and(pattern, 1, PART, 'a', "b"), all, GLOB_NO) <=
                PART + 1);
    assert_true(work_of(stars_and(pattern, 100, 9, 'a', "*b"), all, GLOB_NO) <=
                most);
    assert_true(work_of(stars_and(pattern, 500, 1, 'a', "b*"), all, GLOB_NO) <=
                most);
    assert_true(work_of(slice_lit("*\\a\\a\\b*"), all, GLOB_NO) <= most);
    mem_free(text);
}

TEST(a_pattern_with_classes_stops_at_the_bound)
{
    char *text = mem_alloc(LONG);
    char pattern[GLOB_PATTERN_MAX];
    struct slice all = { text, LONG };
    struct slice slow = stars_and(pattern, 1, 500, 'a', "?b*");
    size_t work = GLOB_WORK;

    memset(text, 'a', LONG);
    assert_int_equal(GLOB_OVER, glob_match(slow, all, false, &work));
    assert_int_equal(0, work);
    assert_true(glob_work_max(slow, LONG) > GLOB_WORK);
    assert_true(glob_work_max(slice_lit("*a?b*"), 16 << 10) < GLOB_WORK);
    assert_true(glob_work_max(slice_lit("news.*"), SIZE_MAX / 4) <
                SIZE_MAX / 4);
    /* What begins or ends it has one place only. */
    assert_true(work_of(slice_lit("b[ab]?*[b]b"), all, GLOB_NO) < 20);
    assert_true(work_of(slice_lit("a[ab]?*[a]a"), all, GLOB_YES) < 20);
    mem_free(text);
}
