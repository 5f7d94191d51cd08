/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The array doubles when full and halves when three quarters are empty; without
 * memory it is not halved.
 */
#include "keyspace/expire.h"

#include "base/err.h"
#include "base/mem.h"

enum { CAPACITY_MIN = 4 };

static void
place(struct expire *expire, uint32_t index, struct expire_item item)
{
    expire->items[index] = item;
    item.entry->heap_index = index;
}

/* Moves the hole at index up or down until item fits in, and puts it there. */
static void
settle_item(struct expire *expire, uint32_t index, struct expire_item item)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / 2;

        if (expire->items[parent].at_ms <= item.at_ms) {
            break;
        }
        place(expire, index, expire->items[parent]);
        index = parent;
    }
    for (;;) {
        uint64_t child = 2 * (uint64_t)index + 1;

        if (child >= expire->count) {
            break;
        }
        if (child + 1 < expire->count &&
            expire->items[child + 1].at_ms < expire->items[child].at_ms) {
            child++;
        }
        if (expire->items[child].at_ms >= item.at_ms) {
            break;
        }
        place(expire, index, expire->items[child]);
        index = (uint32_t)child;
    }
    place(expire, index, item);
}

static bool
resize(struct expire *expire, uint32_t capacity)
{
    size_t bytes = (size_t)capacity * sizeof(*expire->items);
    struct expire_item *items = mem_try_realloc(expire->items, bytes);

    if (items == NULL) {
        return false;
    }
    expire->items = items;
    expire->capacity = capacity;
    return true;
}

bool
expire_set(struct expire *expire, struct entry *entry, uint64_t at_ms)
{
    uint32_t index = entry->heap_index;

    if (index == EXPIRE_NONE) {
        if (expire->count == expire->capacity) {
            uint32_t capacity =
                expire->capacity > 0 ? expire->capacity * 2 : CAPACITY_MIN;

            CHECK(capacity > expire->capacity);
            if (!resize(expire, capacity)) {
                return false;
            }
        }
        index = expire->count++;
    }
    settle_item(expire, index, (struct expire_item){ at_ms, entry });
    return true;
}

void
expire_remove(struct expire *expire, struct entry *entry)
{
    uint32_t index = entry->heap_index;
    struct expire_item last;

    CHECK(index < expire->count && expire->items[index].entry == entry);
    entry->heap_index = EXPIRE_NONE;
    last = expire->items[--expire->count];
    if (index < expire->count) {
        settle_item(expire, index, last);
    }
    if (expire->capacity > CAPACITY_MIN &&
        expire->count < expire->capacity / 4) {
        (void)resize(expire, expire->capacity / 2);
    }
}

void
expire_fini(struct expire *expire)
{
    mem_free(expire->items);
    *expire = (struct expire){ NULL, 0, 0 };
}
