/* SPDX-License-Identifier: BSD-3-Clause */
#include "dump_help.h"

#include "core/codec.h"

void
dump_of(const struct entry *entry, struct buf *ret_dump)
{
    size_t bytes = (size_t)codec_dump_bytes(&entry->bloom);

    assert_non_null(buf_reserve(ret_dump, bytes));
    codec_dump(&entry->bloom, entry->incarnation, ret_dump->data);
    ret_dump->len = bytes;
}

/* Compares expired keys as well: both servers have them, or neither. */
static bool
compare_entry(void *ctx, uint32_t db, const struct entry *entry,
              uint64_t expires_at_ms)
{
    struct comparison *c = ctx;
    struct slice name = entry_name(entry);
    struct key key = key_named(name, db);
    const struct entry *twin = keyspace_find(c->other, &key, 0);
    struct buf one = { 0 };
    struct buf two = { 0 };

    assert_non_null(twin);
    assert_int_equal(entry->incarnation, twin->incarnation);
    assert_int_equal(expires_at_ms, keyspace_expiry(c->other, &key, twin));
    dump_of(entry, &one);
    dump_of(twin, &two);
    assert_true(slice_equal(buf_slice(&one), buf_slice(&two)));
    buf_free(&one);
    buf_free(&two);
    c->keys++;
    return true;
}

size_t
compare_dumps(struct rig *from, struct rig *to)
{
    struct comparison there = { .other = to->service.keyspace };
    struct comparison back = { .other = from->service.keyspace };

    assert_true(keyspace_each(from->service.keyspace, compare_entry, &there));
    assert_true(keyspace_each(to->service.keyspace, compare_entry, &back));
    return there.keys;
}
