/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranges are found word by word.
 */
#include "base/slot_set.h"

#include "base/err.h"

void
slot_set_add_range(struct slot_set *set, unsigned first, unsigned last)
{
    CHECK(first <= last && last < CLUSTER_SLOTS);
    for (unsigned slot = first; slot <= last; slot++) {
        slot_set_add(set, slot);
    }
}

void
slot_set_intersect(struct slot_set *set, const struct slot_set *other)
{
    for (unsigned i = 0; i < SLOT_SET_WORDS; i++) {
        set->bits[i] &= other->bits[i];
    }
}

void
slot_set_unite(struct slot_set *set, const struct slot_set *other)
{
    for (unsigned i = 0; i < SLOT_SET_WORDS; i++) {
        set->bits[i] |= other->bits[i];
    }
}

void
slot_set_subtract(struct slot_set *set, const struct slot_set *other)
{
    for (unsigned i = 0; i < SLOT_SET_WORDS; i++) {
        set->bits[i] &= ~other->bits[i];
    }
}

unsigned
slot_set_count(const struct slot_set *set)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SLOT_SET_WORDS; i++) {
        count += (unsigned)__builtin_popcountll(set->bits[i]);
    }
    return count;
}

bool
slot_set_is_empty(const struct slot_set *set)
{
    return slot_set_from(set, 0) == CLUSTER_SLOTS;
}

bool
slot_set_equal(const struct slot_set *a, const struct slot_set *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

bool
slot_set_intersects(const struct slot_set *a, const struct slot_set *b)
{
    for (unsigned i = 0; i < SLOT_SET_WORDS; i++) {
        if ((a->bits[i] & b->bits[i]) != 0) {
            return true;
        }
    }
    return false;
}

/* Returns the first slot from `at` on that the set lacks. */
static unsigned
find_lacking(const struct slot_set *set, unsigned at)
{
    while (at < CLUSTER_SLOTS) {
        uint64_t word = ~set->bits[at / 64] >> at % 64;

        if (word != 0) {
            return at + (unsigned)__builtin_ctzll(word);
        }
        at += 64 - at % 64;
    }
    return CLUSTER_SLOTS;
}

bool
slot_set_next(const struct slot_set *set, unsigned *at, unsigned *ret_first,
              unsigned *ret_last)
{
    unsigned first = slot_set_from(set, *at);

    if (first == CLUSTER_SLOTS) {
        *at = CLUSTER_SLOTS;
        return false;
    }
    *at = find_lacking(set, first);
    *ret_first = first;
    *ret_last = *at - 1;
    return true;
}

bool
slot_set_parse_range(struct slice text, unsigned *ret_first, unsigned *ret_last)
{
    const char *dash = text.len > 0 ? memchr(text.data, '-', text.len) : NULL;
    size_t len = dash != NULL ? (size_t)(dash - text.data) : text.len;
    uint64_t first;
    uint64_t last;

    if (!slice_to_u64((struct slice){ text.data, len }, &first)) {
        return false;
    }
    last = first;
    if (dash != NULL &&
        !slice_to_u64((struct slice){ dash + 1, text.len - len - 1 }, &last)) {
        return false;
    }
    if (first > last || last >= CLUSTER_SLOTS) {
        return false;
    }
    *ret_first = (unsigned)first;
    *ret_last = (unsigned)last;
    return true;
}

/* Cuts the text before the next comma off the front of a word. */
static struct slice
cut_part(struct slice *word)
{
    const char *comma = memchr(word->data, ',', word->len);
    size_t len = comma != NULL ? (size_t)(comma - word->data) : word->len;
    struct slice part = { word->data, len };

    word->data += len;
    word->len -= len;
    return part;
}

static bool
parse_word(struct slice word, struct slot_set *set)
{
    unsigned first;
    unsigned last;

    for (;;) {
        if (!slot_set_parse_range(cut_part(&word), &first, &last)) {
            return false;
        }
        slot_set_add_range(set, first, last);
        if (word.len == 0) {
            return true;
        }
        word.data++; /* a comma, behind which another range must stand */
        word.len--;
    }
}

bool
slot_set_parse(struct slice text, struct slot_set *ret_set)
{
    struct slot_set set = { { 0 } };
    struct slice word;

    while (slice_next_word(&text, &word)) {
        if (!parse_word(word, &set)) {
            return false;
        }
    }
    *ret_set = set;
    return true;
}

void
slot_set_write(struct buf *out, const struct slot_set *set)
{
    const char *between = "";
    unsigned at = 0;
    unsigned first;
    unsigned last;

    while (slot_set_next(set, &at, &first, &last)) {
        if (first == last) {
            buf_printf(out, "%s%u", between, first);
        } else {
            buf_printf(out, "%s%u-%u", between, first, last);
        }
        between = " ";
    }
}
