/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An earlier star is never tried again, since a later one can match the rest;
 * so each segment is searched for once, behind the previous one.
 */
#include "base/glob.h"

#include <string.h>

/* Bytes of text that are searched per unit of work. */
enum { SEARCHED_AT_ONCE = 2 };

static char
fold(char c, bool ignore_case)
{
    if (ignore_case) {
        return slice_fold(c);
    }
    return c;
}

/* Matches c against the class at *ret_at (after its '['), and moves *ret_at
 * after its ']'. An unterminated class ends with the pattern. */
static bool
match_class(struct slice pattern, size_t *ret_at, char c, bool ignore_case)
{
    size_t at = *ret_at;
    bool negated = at < pattern.len && pattern.data[at] == '^';
    bool found = false;

    at += negated ? 1 : 0;
    while (at < pattern.len && pattern.data[at] != ']') {
        unsigned char low;
        unsigned char high;
        unsigned char byte = (unsigned char)fold(c, ignore_case);

        if (pattern.data[at] == '\\' && at + 1 < pattern.len) {
            at++;
            low = high = (unsigned char)fold(pattern.data[at], ignore_case);
        } else if (at + 2 < pattern.len && pattern.data[at + 1] == '-') {
            low = (unsigned char)fold(pattern.data[at], ignore_case);
            high = (unsigned char)fold(pattern.data[at + 2], ignore_case);
            at += 2;
        } else {
            low = high = (unsigned char)fold(pattern.data[at], ignore_case);
        }
        if (low > high) {
            unsigned char swap = low;

            low = high;
            high = swap;
        }
        found = found || (byte >= low && byte <= high);
        at++;
    }
    *ret_at = at < pattern.len ? at + 1 : at;
    return found != negated;
}

/* Matches one text byte against the pattern element at *ret_at. */
static bool
match_one(struct slice pattern, size_t *ret_at, char c, bool ignore_case)
{
    char p = pattern.data[*ret_at];

    (*ret_at)++;
    if (p == '?') {
        return true;
    }
    if (p == '[') {
        return match_class(pattern, ret_at, c, ignore_case);
    }
    if (p == '\\' && *ret_at < pattern.len) {
        p = pattern.data[*ret_at];
        (*ret_at)++;
    }
    return fold(p, ignore_case) == fold(c, ignore_case);
}

/* ---- segments: the parts of a pattern between stars --------------------- */

struct segment {
    size_t begin, end; /* in the pattern */
    size_t len;        /* bytes of text that it matches */
    bool literal;      /* neither ? nor a class, though there may be \ */
};

/* Returns the place after a class that begins at `at`, after its '['. */
static size_t
skip_class(struct slice pattern, size_t at)
{
    at += at < pattern.len && pattern.data[at] == '^' ? 1 : 0;
    while (at < pattern.len && pattern.data[at] != ']') {
        if (pattern.data[at] == '\\' && at + 1 < pattern.len) {
            at += 2;
        } else {
            at += at + 2 < pattern.len && pattern.data[at + 1] == '-' ? 3 : 1;
        }
    }
    return at < pattern.len ? at + 1 : at;
}

/* Returns the segment from `at` up to the next star or the end. It is empty if
 * there is a star at `at`. */
static struct segment
segment_at(struct slice pattern, size_t at)
{
    struct segment segment = { at, at, 0, true };

    while (at < pattern.len && pattern.data[at] != '*') {
        char c = pattern.data[at++];

        segment.literal = segment.literal && c != '?' && c != '[';
        if (c == '[') {
            at = skip_class(pattern, at);
        } else if (c == '\\' && at < pattern.len) {
            at++;
        }
        segment.len++;
    }
    segment.end = at;
    return segment;
}

struct matching {
    struct slice pattern, text;
    bool ignore_case;
    size_t work;
};

static bool
spend(struct matching *matching, size_t work)
{
    bool enough = work <= matching->work;

    matching->work -= enough ? work : matching->work;
    return enough;
}

/* Compares the pattern from *ret_at up to a star, or its end, with the text at
 * `from`, which may be too short. Moves *ret_at and *ret_t after the bytes that
 * it compared. */
static enum glob_verdict
compare(struct matching *matching, size_t *ret_at, size_t from, size_t *ret_t)
{
    struct slice pattern = matching->pattern;
    size_t begin = *ret_at;
    size_t most = matching->work;
    size_t at = begin;
    size_t t = from;
    bool equal = true;

    while (equal && at < pattern.len && pattern.data[at] != '*' &&
           at - begin <= most) {
        equal = t < matching->text.len &&
                match_one(pattern, &at, matching->text.data[t],
                          matching->ignore_case);
        t++;
    }
    *ret_at = at;
    *ret_t = t;
    if (!spend(matching, at - begin)) {
        return GLOB_OVER;
    }
    return equal ? GLOB_YES : GLOB_NO;
}

/* Finds the leftmost match of the segment in the text from *ret_t on, and moves
 * *ret_t after it. */
static enum glob_verdict
find_slowly(struct matching *matching, const struct segment *segment,
            size_t *ret_t)
{
    size_t t = *ret_t;
    enum glob_verdict verdict = GLOB_NO;

    while (verdict == GLOB_NO && matching->text.len - t >= segment->len) {
        size_t at = segment->begin;

        verdict = compare(matching, &at, t++, ret_t);
    }
    return verdict;
}

/* Does the same for a literal segment, which is a string once its backslashes
 * are removed. */
static enum glob_verdict
find_literal(struct matching *matching, const struct segment *segment,
             size_t *ret_t)
{
    const char *from = matching->text.data + *ret_t;
    size_t left = matching->text.len - *ret_t;
    char string[GLOB_PATTERN_MAX];
    const char *found;
    size_t reach;
    size_t len = 0;

    for (size_t at = segment->begin; at < segment->end; at++) {
        const char *c = &matching->pattern.data[at];

        if (*c == '\\' && at + 1 < segment->end) {
            at++;
            c++;
        }
        string[len++] = *c;
    }
    if (!spend(matching, segment->end - segment->begin)) {
        return GLOB_OVER;
    }
    reach = left / SEARCHED_AT_ONCE <= matching->work
                ? left
                : matching->work * SEARCHED_AT_ONCE;
    found = memmem(from, reach, string, len);
    if (found == NULL) {
        (void)spend(matching, reach / SEARCHED_AT_ONCE);
        return reach < left ? GLOB_OVER : GLOB_NO;
    }
    reach = (size_t)(found - from) + len;
    (void)spend(matching, reach / SEARCHED_AT_ONCE);
    *ret_t += reach;
    return GLOB_YES;
}

static enum glob_verdict
find_segment(struct matching *matching, const struct segment *segment,
             size_t *ret_t)
{
    if (matching->text.len - *ret_t < segment->len) {
        return GLOB_NO;
    }
    return segment->literal && !matching->ignore_case &&
                   segment->end - segment->begin <= GLOB_PATTERN_MAX
               ? find_literal(matching, segment, ret_t)
               : find_slowly(matching, segment, ret_t);
}

/* Matches the pattern from the first star on. */
static enum glob_verdict
match_segments(struct matching *matching, size_t p, size_t t)
{
    struct slice pattern = matching->pattern;
    struct slice text = matching->text;

    for (;;) {
        struct segment segment;
        enum glob_verdict verdict;

        while (p < pattern.len && pattern.data[p] == '*') {
            p++;
        }
        if (p == pattern.len) {
            return GLOB_YES;
        }
        segment = segment_at(pattern, p);
        if (segment.end == pattern.len) { /* can only match at the end */
            return segment.len > text.len - t
                       ? GLOB_NO
                       : compare(matching, &p, text.len - segment.len, &t);
        }
        p = segment.end;
        verdict = find_segment(matching, &segment, &t);
        if (verdict != GLOB_YES) {
            return verdict;
        }
    }
}

enum glob_verdict
glob_match(struct slice pattern, struct slice text, bool ignore_case,
           size_t *work)
{
    struct matching matching = { pattern, text, ignore_case, *work };
    enum glob_verdict verdict;
    size_t p = 0;
    size_t t;

    if (slice_equal(pattern, text) && glob_is_plain(pattern)) {
        return GLOB_YES;
    }
    verdict = compare(&matching, &p, 0, &t);
    if (verdict == GLOB_YES) {
        if (p < pattern.len) {
            verdict = match_segments(&matching, p, t);
        } else {
            verdict = t == text.len ? GLOB_YES : GLOB_NO;
        }
    }
    *work = matching.work;
    return verdict;
}

/* Segments are searched for one after the other, so each byte of the text is
 * tried as the beginning of at most one of them. */
size_t
glob_work_max(struct slice pattern, size_t text_len)
{
    struct segment segment = segment_at(pattern, 0);
    size_t slowest = 0;

    for (size_t p = segment.end; p < pattern.len; p = segment.end) {
        size_t bytes;

        segment = segment_at(pattern, p + 1);
        bytes = segment.end - segment.begin;
        if (!segment.literal && segment.end < pattern.len && bytes > slowest) {
            slowest = bytes;
        }
    }
    return pattern.len + text_len / SEARCHED_AT_ONCE + text_len * slowest;
}

bool
glob_is_plain(struct slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.data[i];

        if (c == '*' || c == '?' || c == '[' || c == '\\') {
            return false;
        }
    }
    return true;
}

bool
glob_is_fair(struct slice pattern)
{
    return pattern.len <= GLOB_PATTERN_MAX || glob_is_plain(pattern);
}
