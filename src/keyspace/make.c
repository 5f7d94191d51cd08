/* SPDX-License-Identifier: BSD-3-Clause
 *
 * make_parts allocates all parts. If one is missing, free_parts frees the
 * others.
 */
#include "keyspace/make.h"

#include "base/clock.h"
#include "base/mem.h"
#include "keyspace/databases.h"
#include "keyspace/gate.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/reaper.h"

enum {
    COUNT_SHARDS = 16, /* with several threads; each for 64 stripes */
    DATABASES_MAX = 1 << DB_SLOT_BITS
};

/* Returns false if memory runs out; free_parts then frees the parts that exist.
 */
static bool
make_parts(struct keyspace *ks, enum thread_life life)
{
    ks->counts_bytes = (size_t)ks->shards * ks->databases * sizeof(*ks->counts);
    ks->db_ids = mem_try_zalloc(ks->databases * sizeof(*ks->db_ids));
    ks->swaps = mem_try_zalloc(ks->databases * sizeof(*ks->swaps));
    ks->slot_ids = mem_try_zalloc(ks->databases * sizeof(*ks->slot_ids));
    ks->slot_dbs = mem_try_zalloc(ks->databases * sizeof(*ks->slot_dbs));
    ks->epochs = mem_try_zalloc(ks->databases * sizeof(*ks->epochs));
    ks->counts = mem_try_lines(ks->counts_bytes);
    ks->lock_slots.slot =
        mem_try_lines(ks->threads * sizeof(*ks->lock_slots.slot));
    ks->gate = gate_try_new(ks->threads);
    if (ks->db_ids == NULL || ks->swaps == NULL || ks->slot_ids == NULL ||
        ks->slot_dbs == NULL || ks->epochs == NULL || ks->counts == NULL ||
        ks->lock_slots.slot == NULL || ks->gate == NULL) {
        return false;
    }
    ks->reaper = reaper_try_new(life);
    return ks->reaper != NULL;
}

static void
free_parts(struct keyspace *ks)
{
    reaper_free(ks->reaper);
    gate_free(ks->gate);
    mem_free_lines(ks->lock_slots.slot,
                   ks->threads * sizeof(*ks->lock_slots.slot));
    mem_free_lines(ks->counts, ks->counts_bytes);
    mem_free(ks->epochs);
    mem_free(ks->slot_dbs);
    mem_free(ks->slot_ids);
    mem_free(ks->db_ids);
    mem_free(ks->swaps);
    mem_free_lines(ks, sizeof(*ks));
}

static void
init_databases(struct keyspace *ks)
{
    for (uint32_t db = 0; db < ks->databases; db++) {
        atomic_store(&ks->db_ids[db], db); /* generation 0 */
        atomic_store(&ks->slot_ids[db], db);
        ks->slot_dbs[db] = db;
    }
}

static struct keyspace *
make_keyspace(const struct keyspace_options *options, enum thread_life life)
{
    struct keyspace *ks = mem_try_lines(sizeof(*ks));

    CHECK(options->threads > 0 && options->databases > 0 &&
          options->databases < DATABASES_MAX);
    if (ks == NULL) {
        return NULL;
    }
    ks->threads = options->threads;
    ks->shared = ks->threads > 1;
    ks->databases = options->databases;
    ks->shards = ks->threads > 1 ? COUNT_SHARDS : 1;
    ks->expiry = options->expiry;
    if (!make_parts(ks, life)) {
        free_parts(ks);
        return NULL;
    }
    init_databases(ks);
    access_init(&ks->access, clock_wall_ms());
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        atomic_store(&ks->next_expiry_ms[i], UINT64_MAX);
    }
    ks->lock_slots.threads = ks->threads;
    return ks;
}

struct keyspace *
keyspace_new(const struct keyspace_options *options)
{
    struct keyspace *ks = make_keyspace(options, THREAD_LASTS);

    CHECK(ks != NULL);
    return ks;
}

struct keyspace *
keyspace_try_new(const struct keyspace_options *options)
{
    return make_keyspace(options, THREAD_PASSES);
}

void
keyspace_free(struct keyspace *ks)
{
    if (ks == NULL) {
        return;
    }
    keyspace_flush_all(ks);
    reaper_wait(ks->reaper);
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        table_fini(&ks->stripes[i].table);
        expire_fini(&ks->stripes[i].expire);
    }
    free_parts(ks);
}
