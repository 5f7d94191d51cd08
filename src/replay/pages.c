/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A command is found again by its place in the group, whose bytes may have
 * moved. If they belong to another group with the same number, there may be no
 * command at that place: then nothing more is done.
 */
#include "replay/pages.h"

#include "base/clock.h"
#include "keyspace/keyspace.h"

enum {
    BATCH = 64, /* items under one lock */
    PIECE_NS = 500 * 1000,
    PIECES_MOST = 32 /* of a group, since each piece reads it again */
};

/* A piece ends after until_ns, once it has also reached `until`. */
struct turn {
    uint64_t until_ns;
    const char *group;
    size_t until;
};

void
pages_fini(struct pages *pages)
{
    logged_fini(&pages->reader);
}

static bool
turn_is_over(const struct turn *turn, size_t at)
{
    return at >= turn->until && clock_mono_ns() >= turn->until_ns;
}

/* Clears the pages of some items. Returns false if the key has no filter with
 * untouched pages. */
static bool
clear_some(struct worker *worker, const struct key *key,
           const struct logged *logged, size_t first, size_t count)
{
    struct keyspace *ks = worker->service->keyspace;
    unsigned stripe = keyspace_stripe_of(key->hash);
    const struct entry *entry;
    bool is_fresh;

    keyspace_lock(ks, worker->index, stripe, true);
    entry = keyspace_find(ks, key, 0); /* a log ignores the clock */
    is_fresh =
        entry != NULL && logged->row->touch(entry, logged->argv + first, count);
    keyspace_unlock(ks, worker->index, stripe);
    return is_fresh;
}

/* Clears pages for a command. False: the piece is over. */
static bool
clear_command(struct pages *pages, struct worker *worker,
              const struct logged *logged, const struct turn *turn)
{
    enum { KEY_AT = 1, ITEM_AT = 2 };
    struct key key = key_named(logged->argv[KEY_AT], (uint32_t)pages->db);
    size_t at = pages->word < ITEM_AT ? ITEM_AT : pages->word;
    bool is_fresh = true;

    while (is_fresh && at < logged->argc) {
        size_t left = logged->argc - at;
        size_t count = left < BATCH ? left : BATCH;

        is_fresh = clear_some(worker, &key, logged, at, count);
        at += count;
        if (is_fresh && at < logged->argc) {
            pages->reached = (size_t)(logged->argv[at].data - turn->group);
            if (turn_is_over(turn, pages->reached)) {
                pages->word = at;
                return false;
            }
        }
    }
    pages->word = 0;
    return true;
}

/* Clears what one command needs. False: the piece is over. */
static bool
clear_for(struct pages *pages, struct worker *worker,
          const struct logged *logged, const struct turn *turn)
{
    bool is_long = logged->row != NULL && logged->row->touch != NULL &&
                   logged->argc > PAGES_LONG;

    if (logged->kind == LOGGED_SELECT &&
        !slice_to_u64(logged->argv[1], &pages->db)) {
        pages->db = UINT64_MAX; /* obey_group() refuses it */
    }
    return !is_long || pages->db >= service_databases(worker->service) ||
           clear_command(pages, worker, logged, turn);
}

/* Commands that end a piece, or are behind its end, are read again. */
bool
pages_clear(struct pages *pages, struct worker *worker, uint32_t db,
            struct slice group, uint64_t sequence)
{
    struct turn turn = { .until_ns = clock_mono_ns() + PIECE_NS,
                         .group = group.data };
    struct logged logged;
    size_t begin;

    if (pages->sequence != sequence) {
        pages->sequence = sequence;
        pages->at = pages->word = pages->reached = 0;
        pages->db = db;
    }
    begin = pages->at < group.len ? pages->at : group.len;
    turn.until = pages->reached + group.len / PIECES_MOST;
    logged_begin(&pages->reader,
                 (struct slice){ group.data + begin, group.len - begin });
    while (logged_next(&pages->reader, &logged)) {
        pages->at = begin + logged.begin;
        if (!clear_for(pages, worker, &logged, &turn)) {
            return false;
        }
    }
    pages->at = group.len;
    return true;
}
