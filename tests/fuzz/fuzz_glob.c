/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as a pattern and a text: the matcher agrees with a slow one that
 * tries all places of each star, and the bound of its work holds. The first
 * byte picks whether letter case counts; a line end divides pattern and text.
 */
#include "base/err.h"
#include "base/glob.h"
#include "base/mem.h"
#include "target.h"

#include <string.h>

enum { SLOW_MAX = 2048 /* bytes of both together */ };

/* ---- the slow matcher ---------------------------------------------------- */

struct slow {
    const char *p, *end; /* what is left of the pattern */
    bool ignore_case;
};

static unsigned char
folded(const struct slow *slow, char c)
{
    return (unsigned char)(slow->ignore_case ? slice_fold(c) : c);
}

/* Whether a class has c; passes over the class, behind its '['. */
static bool
class_takes(struct slow *slow, char c)
{
    unsigned char byte = folded(slow, c);
    bool negated = slow->p < slow->end && *slow->p == '^';
    bool found = false;

    for (slow->p += negated; slow->p < slow->end && *slow->p != ']';
         slow->p++) {
        unsigned char a, b;

        if (*slow->p == '\\' && slow->p + 1 < slow->end) {
            slow->p++;
            found = found || folded(slow, *slow->p) == byte;
            continue;
        }
        a = b = folded(slow, *slow->p);
        if (slow->p + 2 < slow->end && slow->p[1] == '-') {
            slow->p += 2;
            b = folded(slow, *slow->p);
        }
        found = found || (a <= byte && byte <= b) || (b <= byte && byte <= a);
    }
    slow->p += slow->p < slow->end;
    return found != negated;
}

/* Whether what the pattern begins with, which is no star, takes c; passes over
 * it. */
static bool
takes(struct slow *slow, char c)
{
    char p = *slow->p++;

    if (p == '?') {
        return true;
    }
    if (p == '[') {
        return class_takes(slow, c);
    }
    if (p == '\\' && slow->p < slow->end) {
        p = *slow->p++;
    }
    return folded(slow, p) == folded(slow, c);
}

/* Follows all places of the text that the pattern can have reached. */
static bool
match_slowly(struct slice pattern, struct slice text, bool ignore_case)
{
    struct slow slow = { pattern.data, pattern.data + pattern.len,
                         ignore_case };
    bool *reached = mem_zalloc(text.len + 1);
    bool matched;

    reached[0] = true;
    while (slow.p < slow.end) {
        const char *begin = slow.p;

        if (*begin == '*') {
            slow.p++;
            for (size_t t = 0; t < text.len; t++) {
                reached[t + 1] = reached[t + 1] || reached[t];
            }
            continue;
        }
        (void)takes(&slow, 0);
        for (size_t t = text.len; t-- > 0;) {
            struct slow one = { begin, slow.end, ignore_case };

            reached[t + 1] = reached[t] && takes(&one, text.data[t]);
        }
        reached[0] = false;
    }
    matched = reached[text.len];
    mem_free(reached);
    return matched;
}

/* ---- the two together ---------------------------------------------------- */

static void
play(struct slice pattern, struct slice text, bool ignore_case)
{
    bool expected = match_slowly(pattern, text, ignore_case);
    size_t work = ignore_case ? SIZE_MAX : glob_work_max(pattern, text.len);
    size_t most = work;

    CHECK(glob_match(pattern, text, ignore_case, &work) ==
          (expected ? GLOB_YES : GLOB_NO));
    CHECK(work <= most);
    /* With less work the answer may be unknown, but it is not wrong. */
    for (size_t bits = 0; bits < 12; bits++) {
        enum glob_verdict verdict;

        work = (size_t)1 << bits;
        verdict = glob_match(pattern, text, ignore_case, &work);
        CHECK(verdict == GLOB_OVER || (verdict == GLOB_YES) == expected);
        CHECK(work <= (size_t)1 << bits);
    }
    if (glob_is_plain(pattern) && !ignore_case) {
        CHECK(expected == slice_equal(pattern, text));
        CHECK(glob_is_fair(pattern));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    const char *end = text + size - 1;
    const char *divide;

    if (size == 0 || size > SLOW_MAX) {
        return 0;
    }
    divide = memchr(text, '\n', size - 1);
    if (divide != NULL) {
        play((struct slice){ text, (size_t)(divide - text) },
             (struct slice){ divide + 1, (size_t)(end - divide - 1) },
             data[0] % 2 != 0);
    }
    return 0;
}

/* ---- inputs for replay.c: few letters, so that many match ---------------- */

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    static const char pattern[] = "aab**?[]^-\\B";
    uint64_t random = seed;
    uint64_t scale = fuzz_next(&random) % 8 == 0 ? 600 : 16;
    size_t pattern_len = (size_t)(fuzz_next(&random) % scale);
    size_t text_len = (size_t)(fuzz_next(&random) % scale);
    size_t len = 0;

    CHECK(pattern_len + text_len + 2 <= max);
    to[len++] = (uint8_t)fuzz_next(&random);
    for (; pattern_len > 0; pattern_len--) {
        to[len++] = (uint8_t)pattern[fuzz_next(&random) % 12];
    }
    to[len++] = '\n';
    for (; text_len > 0; text_len--) {
        to[len++] = (uint8_t) "aaabB"[fuzz_next(&random) % 5];
    }
    return len;
}
