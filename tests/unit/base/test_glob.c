/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redis's patterns by example, and the iterative matcher against a plain
 * recursive one over random patterns of few bytes.
 */
#include "base/glob.h"

#include "../test.h"
#include "base/mem.h"

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

        if (glob_match(pattern, text, false) != c->matches ||
            glob_match(pattern, text, true) != c->matches_any_case) {
            fail_msg("[%s] and [%s]", c->pattern, c->text);
        }
    }
}

TEST(zero_and_high_bytes_are_bytes_like_others)
{
    assert_true(glob_match(slice_lit("a\0*"), slice_lit("a\0b\0c"), false));
    assert_false(glob_match(slice_lit("a\0b"), slice_lit("a\0c"), false));
    assert_true(glob_match(slice_lit("\xff?"), slice_lit("\xff\x80"), false));
    assert_true(glob_match(slice_lit("[\x80-\xff]"), slice_lit("\xc3"), false));
    assert_false(glob_match(slice_lit("[\x80-\xff]"), slice_lit("a"), false));
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

/* The reference: classes without ranges and escapes, tried recursively. */
static bool
match_slowly(const char *p, size_t plen, const char *t, size_t tlen)
{
    if (plen == 0) {
        return tlen == 0;
    }
    if (*p == '*') {
        return match_slowly(p + 1, plen - 1, t, tlen) ||
               (tlen > 0 && match_slowly(p, plen, t + 1, tlen - 1));
    }
    if (tlen == 0) {
        return false;
    }
    if (*p == '?' || *p == *t) {
        return match_slowly(p + 1, plen - 1, t + 1, tlen - 1);
    }
    return false;
}

TEST(random_patterns_match_as_the_plain_recursion_says)
{
    uint64_t x = test_seed() | 1;
    unsigned matched = 0;

    for (int i = 0; i < 200000; i++) {
        char pattern[8];
        char text[10];
        size_t plen;
        size_t tlen;
        bool expected;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        plen = x % 8;
        tlen = (x >> 8) % 10;
        for (size_t k = 0; k < plen; k++) {
            pattern[k] = "ab*?"[x >> (16 + 2 * k) & 3];
        }
        for (size_t k = 0; k < tlen; k++) {
            text[k] = "ab"[x >> (40 + k) & 1];
        }
        expected = match_slowly(pattern, plen, text, tlen);
        matched += expected;
        if (expected != glob_match((struct slice){ pattern, plen },
                                   (struct slice){ text, tlen }, false)) {
            fail_msg("[%.*s] and [%.*s]", (int)plen, pattern, (int)tlen, text);
        }
    }
    assert_true(matched > 10000);
}

/* A recursive matcher needs longer than the universe has for this. */
TEST(many_stars_do_not_explode)
{
    enum { TEXT = 20000, STARS = 200 };
    char *text = mem_alloc(TEXT);
    char pattern[2 * STARS + 1];

    memset(text, 'a', TEXT);
    for (int i = 0; i < STARS; i++) {
        pattern[2 * i] = 'a';
        pattern[2 * i + 1] = '*';
    }
    pattern[2 * STARS] = 'b';
    assert_false(glob_match((struct slice){ pattern, sizeof(pattern) },
                            (struct slice){ text, TEXT }, false));
    mem_free(text);
}
