/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The walk must not change the keyspace, so the names are collected first.
 */
#include "snapshot/left_out.h"

#include "base/buf.h"
#include "core/filter.h"
#include "core/keyed.h"
#include "keyspace/keyspace.h"
#include "keyspace/scan.h"

#include <string.h>

bool
left_out_begin(uint64_t fingerprint)
{
    if (keyed_is_held(fingerprint)) {
        return false;
    }
    (void)keyed_accept_all(true);
    return true;
}

void
left_out_end(void)
{
    (void)keyed_accept_all(false);
}

struct left_out {
    uint64_t only, other, count;
    struct buf names; /* for each name: database, length, bytes */
};

static void
append_u32(struct buf *buf, uint32_t value)
{
    char bytes[sizeof(value)];

    memcpy(bytes, &value, sizeof(value));
    buf_append_slice(buf, (struct slice){ bytes, sizeof(bytes) });
}

static bool
on_entry(void *ctx, uint32_t db, const struct entry *entry,
         uint64_t expires_at_ms)
{
    struct left_out *left = ctx;
    struct slice name = entry_name(entry);
    uint64_t fingerprint;

    (void)expires_at_ms;
    if (!bloom_is_keyed(&entry->bloom)) {
        return true;
    }
    fingerprint = bloom_keyed_of(&entry->bloom)->fingerprint;
    if (keyed_is_held(fingerprint)) {
        return true;
    }
    if (left->only != 0 && fingerprint != left->only) {
        left->other = fingerprint;
        return false;
    }
    left->count++;
    append_u32(&left->names, db);
    append_u32(&left->names, (uint32_t)name.len);
    buf_append_slice(&left->names, name);
    return !left->names.failed;
}

static void
remove_named(struct keyspace *ks, const struct buf *names)
{
    size_t at = 0;

    while (at < names->len) {
        uint32_t db, len;
        struct slice name;
        struct key key;

        memcpy(&db, names->data + at, sizeof(db));
        memcpy(&len, names->data + at + sizeof(db), sizeof(len));
        at += sizeof(db) + sizeof(len);
        name = (struct slice){ names->data + at, len };
        at += len;
        key = key_named(name, db);
        (void)keyspace_delete(ks, &key, 0); /* even if it is expired */
    }
}

bool
left_out_remove(struct keyspace *ks, uint64_t only, uint64_t *ret_count,
                uint64_t *ret_other)
{
    struct left_out left = { .only = only };
    bool whole = keyspace_each(ks, on_entry, &left);

    if (whole) {
        remove_named(ks, &left.names);
        *ret_count = left.count;
    } else {
        *ret_other = left.other;
    }
    buf_free(&left.names);
    return whole;
}
