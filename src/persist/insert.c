/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A snapshot is not trusted: it may name a key twice.
 */
#include "persist/insert.h"

#include "base/err.h"
#include "base/hash.h"

#include <stdio.h>

bool
insert_record(struct keyspace *ks, const struct bloom_env *env,
              const struct snapshot_record *record, struct bloom *bloom,
              char *ret_why, size_t why_size)
{
    const struct key key = key_named(record->name, record->db);
    unsigned databases = keyspace_databases(ks);
    struct entry *entry;

    if (record->db >= databases) {
        (void)snprintf(ret_why, why_size,
                       "a key of database %u, but the option databases is %u",
                       (unsigned)record->db, databases);
    } else if (keyspace_find(ks, &key, 0) != NULL) {
        (void)snprintf(ret_why, why_size, "two keys of the same name");
    } else if (keyspace_insert(ks, &key, bloom, record->incarnation, &entry) !=
               OK) {
        (void)snprintf(ret_why, why_size, "not enough memory");
    } else if (record->expires_at_ms > 0 &&
               keyspace_set_expiry(ks, &key, entry, record->expires_at_ms) !=
                   OK) {
        (void)snprintf(ret_why, why_size, "not enough memory");
        return false; /* the keyspace owns the filter already */
    } else {
        return true;
    }
    bloom_free(bloom, env);
    return false;
}
