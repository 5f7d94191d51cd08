/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds equal items of a list while many are added to it: the first look-ups
 * read the list, later ones a map. All zero: nothing is known. It belongs to
 * the list, to whose end items are added; after any other change of the list,
 * call item_index_fini().
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"

struct item_index {
    struct map places;  /* item -> its place in the list, +1 */
    size_t known;       /* bytes of the list that the map has */
    unsigned looked_up; /* number of look-ups so far */
};

enum { ITEM_INDEX_LINEAR = 64 /* look-ups that read the list */ };

static inline void
item_index_fini(struct item_index *index)
{
    map_free(&index->places);
    *index = (struct item_index){ 0 };
}

/* Reads the item at *at, and moves *at behind it. False: the list ends. */
typedef bool (*item_index_next_fn)(const struct buf *list, size_t *at,
                                   struct slice *ret_item);

/* Returns the place of an equal item in the list, or SIZE_MAX. */
static inline size_t
item_index_find(struct item_index *index, const struct buf *list,
                item_index_next_fn next, struct slice wanted)
{
    bool mapped = ++index->looked_up > ITEM_INDEX_LINEAR;
    struct slice item;
    size_t at;

    for (at = index->known; mapped && next(list, &at, &item);) {
        size_t place = (size_t)(item.data - list->data);

        /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is never followed */
        mapped = map_put(&index->places, item, (void *)(place + 1));
        index->known = mapped ? at : index->known;
    }
    if (mapped) {
        return (size_t)map_find(&index->places, wanted) - 1;
    }
    for (at = 0; next(list, &at, &item);) {
        if (slice_equal(item, wanted)) {
            return (size_t)(item.data - list->data);
        }
    }
    return SIZE_MAX;
}
