/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A large filter comes in pieces that are exact, in order, and copied in short
 * holds.
 */
#include "core/codec.h"
#include "keyspace/gate.h"
#include "keyspace/walk.h"
#include "keyspace/walk_internal.h"
#include "support.h"

enum { LARGE = 4 * 1000 * 1000 };

struct seen {
    struct buf form;
    unsigned items, pieces, ends;
    uint64_t form_bytes, next;
};

static int
on_item(void *ctx, const struct walk_item *item)
{
    struct seen *seen = ctx;

    assert_false(item->whole);
    seen->items++;
    seen->form_bytes = item->form_bytes;
    buf_append_slice(&seen->form, item->form);
    return 0;
}

static int
on_lines(void *ctx, uint32_t layer, uint64_t offset, struct slice lines,
         bool last)
{
    struct seen *seen = ctx;

    assert_int_equal(0, layer);
    assert_int_equal(seen->next, offset);
    assert_true(lines.len > 0 && lines.len <= WALK_PIECE_BYTES);
    assert_int_equal(0, seen->ends);
    seen->next += lines.len;
    seen->pieces++;
    seen->ends += last;
    buf_append_slice(&seen->form, lines);
    return 0;
}

static int
on_gone(void *ctx, const struct walk_item *item)
{
    (void)ctx;
    (void)item;
    fail_msg("nothing has gone");
    return 0;
}

TEST(a_large_filter_comes_in_pieces_of_short_holds)
{
    struct keyspace *ks = test_keyspace(1);
    struct walk *walk = walk_try_new(ks);
    struct seen seen = { .items = 0 };
    const struct walk_sink sink = {
        .item = on_item, .lines = on_lines, .gone = on_gone, .ctx = &seen
    };
    struct test_key key;
    const struct entry *entry;
    const char *lines;
    size_t bytes;

    (void)test_put_sized(ks, test_key_set(&key, 0, 7), LARGE);
    entry = keyspace_find(ks, test_key_set(&key, 0, 7), 0);
    lines = bloom_layer_lines(&entry->bloom, 0, &bytes);
    gate_raise(ks->gate, 0);
    walk_begin(walk, 1, NULL);
    gate_lower(ks->gate, 0);
    assert_int_equal(0, walk_run(walk, 0, &sink));
    gate_raise(ks->gate, 0);
    walk_end(walk);
    gate_lower(ks->gate, 0);
    assert_int_equal(1, seen.items);
    assert_int_equal(1, seen.ends);
    assert_int_equal((bytes + WALK_PIECE_BYTES - 1) / WALK_PIECE_BYTES,
                     seen.pieces);
    assert_true(walk_figures(walk).holds > bytes / WALK_HOLD_BYTES);
    assert_int_equal(seen.form_bytes, seen.form.len);
    assert_memory_equal(seen.form.data + seen.form.len - bytes, lines, bytes);
    walk_free(walk);
    buf_free(&seen.form);
    keyspace_free(ks);
}
