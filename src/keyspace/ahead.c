/* SPDX-License-Identifier: BSD-3-Clause
 *
 * There are several stages. Each one goes through all keys, reads what the
 * previous stage has fetched, and fetches what the next one reads.
 */
#include "keyspace/ahead.h"

#include "base/err.h"
#include "keyspace/keyspace_internal.h"

void
keyspace_look_ahead(const struct keyspace *ks, struct key *keys, size_t count)
{
    const struct table *tables[KEYSPACE_AHEAD_MAX];
    uint64_t places[KEYSPACE_AHEAD_MAX];

    CHECK(count <= KEYSPACE_AHEAD_MAX);
    for (size_t i = 0; i < count; i++) {
        tables[i] = &ks->stripes[keyspace_stripe_of(keys[i].hash)].table;
        places[i] = table_place(keys[i].hash, db_id_of(ks, keys[i].db));
        table_prefetch_line(tables[i], places[i]);
    }
    for (size_t i = 0; i < count; i++) {
        table_prefetch_entry(tables[i], places[i]);
    }
    for (size_t i = 0; i < count; i++) {
        keys[i].entry = table_find(tables[i], keys[i].hash, keys[i].name,
                                   db_id_of(ks, keys[i].db));
        keys[i].seen = tables[i]->changes + 1;
        if (keys[i].entry != NULL) {
            bloom_fetch_layers(&keys[i].entry->bloom);
        }
    }
}
