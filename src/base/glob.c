/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two cursors and one place to return to: the last star. An earlier star never
 * has to be tried again, since the later one can take what it left.
 */
#include "base/glob.h"

static char
fold(char c, bool ignore_case)
{
    if (ignore_case) {
        return slice_fold(c);
    }
    return c;
}

/* Matches c against the class at *ret_at (just behind '['), and moves *ret_at
 * behind its ']'. An unterminated class ends with the pattern. */
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

bool
glob_match(struct slice pattern, struct slice text, bool ignore_case)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX; /* pattern position behind the last star */
    size_t star_text = 0;

    while (t < text.len) {
        if (p < pattern.len && pattern.data[p] == '*') {
            star = ++p;
            star_text = t;
            continue;
        }
        if (p < pattern.len &&
            match_one(pattern, &p, text.data[t], ignore_case)) {
            t++;
            continue;
        }
        if (star == SIZE_MAX) {
            return false;
        }
        p = star;
        t = ++star_text;
    }
    while (p < pattern.len && pattern.data[p] == '*') {
        p++;
    }
    return p == pattern.len;
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
