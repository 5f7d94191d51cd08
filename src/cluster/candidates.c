/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/candidates.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

void
slot_counts_write(const struct slot_tally slot[CLUSTER_SLOTS], struct buf *out)
{
    for (unsigned i = 0; i < CLUSTER_SLOTS; i++) {
        if (slot[i].filters > 0) {
            buf_printf(out, "%u %" PRIu64 " %" PRIu64 "\n", i, slot[i].filters,
                       slot[i].items);
        }
    }
}

static bool
read_counts(struct slice text, struct slot_tally slot[CLUSTER_SLOTS])
{
    while (text.len > 0) {
        struct slice line;
        struct slice word;
        uint64_t number[3];

        if (!slice_take_until(&text, '\n', &line)) {
            return false;
        }
        for (int i = 0; i < 3; i++) {
            if (!slice_next_word(&line, &word) ||
                !slice_to_u64(word, &number[i])) {
                return false;
            }
        }
        if (number[0] >= CLUSTER_SLOTS) {
            return false;
        }
        slot[number[0]].filters = number[1];
        slot[number[0]].items = number[2];
    }
    return true;
}

struct candidate *
candidate_new(const char *node, const struct slot_set *set,
              const struct holdings *holdings, struct slice counts)
{
    struct candidate *candidate = mem_try_zalloc(sizeof(*candidate));

    if (candidate == NULL || !read_counts(counts, candidate->slot)) {
        mem_free(candidate);
        return NULL;
    }
    (void)snprintf(candidate->node, sizeof(candidate->node), "%s", node);
    slot_set_foreach (set, slot) {
        struct slot_tally *tally = &candidate->slot[slot];

        tally->epoch = holdings->held[slot];
        if (tally->epoch != 0 || tally->filters > 0) {
            slot_set_add(&candidate->has, slot);
        }
    }
    return candidate;
}

void
candidates_free(struct candidate *first)
{
    while (first != NULL) {
        struct candidate *next = first->next;

        mem_free(first);
        first = next;
    }
}

struct candidate *
candidates_find(struct candidate *first, const char *node)
{
    while (first != NULL && strcmp(first->node, node) != 0) {
        first = first->next;
    }
    return first;
}

struct candidate *
candidates_copy(struct candidate *first, unsigned slot)
{
    struct candidate *best = NULL;

    for (struct candidate *at = first; at != NULL; at = at->next) {
        if (slot_set_has(&at->has, slot) && at->slot[slot].epoch == 0 &&
            (best == NULL || at->slot[slot].items > best->slot[slot].items)) {
            best = at;
        }
    }
    return best;
}

bool
candidate_next_row(const struct candidate *candidate, struct slot_set *left,
                   struct candidate_row *ret_row)
{
    bool found = false;

    slot_set_foreach (left, slot) {
        const struct slot_tally *tally = &candidate->slot[slot];
        bool chosen = slot_set_has(&candidate->chosen, slot);

        if (!found) {
            found = true;
            *ret_row = (struct candidate_row){ .node = candidate->node,
                                               .epoch = tally->epoch,
                                               .chosen = chosen };
        }
        if (tally->epoch == ret_row->epoch && chosen == ret_row->chosen) {
            slot_set_add(&ret_row->set, slot);
            ret_row->filters += tally->filters;
            ret_row->items += tally->items;
        }
    }
    if (found) {
        slot_set_subtract(left, &ret_row->set);
    }
    return found;
}
