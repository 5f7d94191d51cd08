/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mistake is a letter that is missing, too many or wrong, or two neighbours
 * that are exchanged (optimal string alignment). Distances count half mistakes.
 * If a name of at least 4 letters is the beginning of another one, such as
 * tls-cert of tls-cert-file, the distance is at most one and a half mistakes.
 */
#include "conf/conf_near.h"

#include <strings.h>

enum { NAME_MAX_LEN = 63, PART_LEN = 4, PART_DISTANCE = 3, FAR = 1000 };

static unsigned
least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Fills row i of the table from the two rows before it. */
static void
fill_row(unsigned rows[3][NAME_MAX_LEN + 1], unsigned i, struct slice a,
         struct slice b)
{
    const unsigned *before = rows[(i - 1) % 3], *second = rows[(i + 1) % 3];
    unsigned *row = rows[i % 3];

    row[0] = i;
    for (size_t j = 1; j <= b.len; j++) {
        char x = slice_fold(a.data[i - 1]), y = slice_fold(b.data[j - 1]);

        row[j] = least(before[j], row[j - 1]) + 1;
        row[j] = least(row[j], before[j - 1] + (x == y ? 0 : 1));
        if (i > 1 && j > 1 && x == slice_fold(b.data[j - 2]) &&
            y == slice_fold(a.data[i - 2])) {
            row[j] = least(row[j], second[j - 2] + 1);
        }
    }
}

static bool
begins(struct slice text, struct slice with)
{
    return with.len >= PART_LEN && text.len >= with.len &&
           strncasecmp(text.data, with.data, with.len) == 0;
}

static unsigned
distance(struct slice a, struct slice b)
{
    unsigned rows[3][NAME_MAX_LEN + 1];
    unsigned found;

    if (a.len == 0 || b.len == 0 || a.len > NAME_MAX_LEN ||
        b.len > NAME_MAX_LEN) {
        return FAR;
    }
    for (unsigned j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (unsigned i = 1; i <= a.len; i++) {
        fill_row(rows, i, a, b);
    }
    found = 2 * rows[a.len % 3][b.len];
    return begins(a, b) || begins(b, a) ? least(found, PART_DISTANCE) : found;
}

/* Returns the first distance that is too far for a name of this length. */
static unsigned
too_far(struct slice name)
{
    return name.len < 5 ? 4 : name.len < 9 ? 6 : 8;
}

const struct conf_row *
conf_near_option(struct slice name, const char *section)
{
    const struct conf_row *best = NULL;
    unsigned best_distance = too_far(name);

    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        bool here =
            section != NULL && slice_is_word(slice_of(section), row->section);
        unsigned found = distance(name, slice_of(row->name));

        if (here) {
            found = least(found, distance(name, slice_of(conf_key(row))));
        }
        found += here ? 0 : 1;
        if (found < best_distance) {
            best_distance = found;
            best = row;
        }
    }
    return best;
}

const char *
conf_near_section(struct slice name)
{
    const char *best = NULL;
    unsigned best_distance = too_far(name);

    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        unsigned found = distance(name, slice_of(conf_table[i].section));

        if (found < best_distance) {
            best_distance = found;
            best = conf_table[i].section;
        }
    }
    return best;
}
