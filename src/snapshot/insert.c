/* SPDX-License-Identifier: BSD-3-Clause
 *
 * While the keys come, each epoch of a database is like a database of its own.
 * Before each key, the keyspace is set to the epoch of that key.
 */
#include "snapshot/insert.h"

#include "base/err.h"
#include "base/hash.h"
#include "core/parts.h"
#include "keyspace/arrival.h"

#include <stdarg.h>
#include <stdio.h>

/* Keeps the first failure. Returns false. */
__attribute__((format(printf, 2, 3))) static bool
fail(struct insert *insert, const char *format, ...)
{
    va_list args;

    if (!insert->failed) {
        insert->failed = true;
        va_start(args, format);
        (void)vsnprintf(insert->why, sizeof(insert->why), format, args);
        va_end(args);
    }
    return false;
}

/* Makes the epoch of this record current, and returns its key. */
static bool
select_key(struct insert *insert, const struct snapshot_record *record,
           struct key *ret_key)
{
    unsigned databases = keyspace_databases(insert->keyspace);

    if (record->db >= databases) {
        return fail(insert,
                    "a key of database %u, but the option databases is %u",
                    (unsigned)record->db, databases);
    }
    arrival_set_epoch(insert->keyspace, record->db, record->epoch);
    insert->epochs = insert->epochs || record->epoch > 0;
    *ret_key = key_named(record->name, record->db);
    return true;
}

/* Puts the filter into the keyspace. Returns false if there is no memory: then
 * the keyspace owns the filter, or it is freed. */
static bool
put_filter(struct insert *insert, const struct key *key,
           const struct snapshot_record *record, struct bloom *bloom)
{
    struct entry *entry;

    if (keyspace_put(insert->keyspace, key, bloom, record->incarnation,
                     &entry) != OK) {
        bloom_fini(bloom, insert->env);
        return false;
    }
    if (bloom_has_pieces(&entry->bloom)) {
        insert->pieces = true;
    }
    if (record->expires_at_ms > 0 &&
        keyspace_set_expiry(insert->keyspace, key, entry,
                            record->expires_at_ms) != OK) {
        return false;
    }
    arrival_set_copied(entry, record->copied_at);
    return true;
}

bool
insert_filter(void *ctx, const struct snapshot_record *record,
              struct bloom *bloom)
{
    struct insert *insert = ctx;
    struct entry *entry;
    struct key key;

    if (!select_key(insert, record, &key)) {
        bloom_fini(bloom, insert->env);
        return false;
    }
    entry = keyspace_find(insert->keyspace, &key, 0);
    if (entry != NULL) {
        keyspace_remove(insert->keyspace, &key, entry);
    }
    return put_filter(insert, &key, record, bloom) ||
           fail(insert, "not enough memory");
}

static void
expect_keys(void *ctx, uint64_t keys)
{
    const struct insert *insert = ctx;

    arrival_expect(insert->keyspace, keys);
}

static void
fetch_soon(void *ctx, uint64_t hash, uint32_t db)
{
    const struct insert *insert = ctx;
    struct key key = { .hash = hash, .db = db };

    if (db < keyspace_databases(insert->keyspace)) {
        keyspace_prefetch_line(insert->keyspace, &key);
    }
}

bool
insert_gone(void *ctx, const struct snapshot_record *record)
{
    struct insert *insert = ctx;
    struct entry *entry;
    struct key key;

    if (!select_key(insert, record, &key)) {
        return false;
    }
    entry = keyspace_find(insert->keyspace, &key, 0);
    if (entry != NULL) {
        keyspace_remove(insert->keyspace, &key, entry);
    }
    return true;
}

static void
reset_epochs(struct insert *insert)
{
    for (uint32_t db = 0;
         insert->epochs && db < keyspace_databases(insert->keyspace); db++) {
        arrival_set_epoch(insert->keyspace, db, 0);
    }
}

bool
insert_effects(void *ctx, const struct snapshot_effects *effects)
{
    struct insert *insert = ctx;

    if (insert->completion == NULL) {
        return fail(insert, "it has effects, which cannot be executed here");
    }
    if (insert->completing == NULL) {
        reset_epochs(insert);
        insert->completing = insert->completion->open(insert->part);
    }
    if (insert->completing == NULL) {
        return fail(insert, "its effects need more memory than there is");
    }
    return insert->completion->group(insert->completing, insert->keyspace,
                                     effects, insert->why, sizeof(insert->why));
}

void
insert_fini(struct insert *insert)
{
    if (insert->completing != NULL) {
        insert->completion->close(insert->completing);
        insert->completing = NULL;
    }
}

bool
insert_end(void *ctx, const struct snapshot_stamp *end)
{
    struct insert *insert = ctx;
    uint64_t keys;

    insert->ended = true;
    if (insert->pieces) {
        arrival_forget_pieces(insert->keyspace);
    }
    if (insert->completing == NULL) {
        reset_epochs(insert);
    } else {
        insert->left_out = insert->completion->left_out(insert->completing);
    }
    if (!arrival_end(insert->keyspace, end->position, insert->epochs)) {
        return fail(insert, "a key of a flush that never was");
    }
    keys = keyspace_count_keys(insert->keyspace);
    if (keys != end->keys && end->keys != SNAPSHOT_KEYS_UNKNOWN &&
        !insert->incomplete) {
        return fail(insert,
                    "the number of its keys is %llu, but its end says %llu",
                    (unsigned long long)keys, (unsigned long long)end->keys);
    }
    return true;
}

struct snapshot_visitor
insert_visitor(struct insert *insert)
{
    return (struct snapshot_visitor){ .expect = expect_keys,
                                      .filter = insert_filter,
                                      .soon = fetch_soon,
                                      .gone = insert_gone,
                                      .effects = insert_effects,
                                      .end = insert_end,
                                      .threads = insert->threads,
                                      .ctx = insert };
}
