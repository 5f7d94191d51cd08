/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries are visited in the order of SCAN, which is stable while tables grow
 * and shrink; a key may come twice. A hold copies several small filters; of a
 * large one it only notes the name (walk_large.c).
 */
#include "keyspace/walk.h"
#include "base/mem.h"
#include "keyspace/gate.h"
#include "keyspace/scan.h"
#include "keyspace/walk_internal.h"
#include "keyspace/walk_part.h"

#include <errno.h>

struct walk *
walk_try_new(struct keyspace *ks)
{
    struct walk *walk = mem_try_zalloc(sizeof(*walk));

    if (walk == NULL) {
        return NULL;
    }
    walk->ks = ks;
    walk->numbers = mem_try_zalloc(ks->databases * sizeof(*walk->numbers));
    walk->epochs = mem_try_zalloc(ks->databases * sizeof(*walk->epochs));
    if (walk->numbers == NULL || walk->epochs == NULL) {
        walk_free(walk);
        return NULL;
    }
    return walk;
}

void
walk_free(struct walk *walk)
{
    if (walk == NULL) {
        return;
    }
    buf_free(&walk->pieces);
    buf_free(&walk->batch);
    mem_free(walk->epochs);
    mem_free(walk->numbers);
    mem_free(walk);
}

static void
forget_marks(const struct walk *walk)
{
    for (unsigned i = 0; i < OCCUPIED_WORDS; i++) {
        atomic_store_explicit(&walk->ks->again[walk->number][i], 0,
                              memory_order_relaxed);
    }
}

/* Bits in entries that an earlier walk left behind do no harm: such an entry is
 * copied once more, and only if its stripe is marked again. */
void
walk_begin(struct walk *walk, uint64_t position, const struct walk_part *part)
{
    struct keyspace *ks = walk->ks;

    walk->number = (ks->walks & 1) != 0 ? 1 : 0;
    CHECK((ks->walks >> walk->number & 1) == 0);
    walk->begin = position;
    walk->part = part;
    atomic_store(&walk->holds, 0);
    atomic_store(&walk->rounds, 0);
    for (uint32_t slot = 0; slot < ks->databases; slot++) {
        walk->numbers[slot] = (uint16_t)ks->slot_dbs[slot];
        walk->epochs[slot] = ks->epochs[slot];
    }
    forget_marks(walk);
    ks->walks |= 1U << walk->number;
}

void
walk_end(struct walk *walk)
{
    CHECK((walk->ks->walks >> walk->number & 1) != 0);
    walk->ks->walks &= ~(1U << walk->number);
    forget_marks(walk);
}

unsigned
walk_thread(const struct walk *walk)
{
    return walk->ks->threads + walk->number;
}

void
keyspace_share(struct keyspace *ks, bool on)
{
    CHECK(on || ks->shares > 0);
    ks->shares += on ? 1U : -1U;
    gate_share(ks->gate, ks->shares > 0);
    /* With several loops `shared` stays true, and other threads read it. */
    if (ks->threads == 1) {
        ks->shared = ks->shares > 0;
    }
}

struct walk_figures
walk_figures(const struct walk *walk)
{
    return (struct walk_figures){ atomic_load(&walk->holds),
                                  atomic_load(&walk->rounds) };
}

static bool
is_in_part(const struct walk *walk, const struct entry *entry)
{
    return walk->part == NULL ||
           walk_part_has(walk->part, walk->numbers[db_slot_of(entry->db_id)],
                         entry_name(entry));
}

/* ---- marks --------------------------------------------------------------- */

static _Atomic uint64_t *
mark_word(struct keyspace *ks, unsigned number, unsigned stripe,
          uint64_t *ret_bit)
{
    *ret_bit = (uint64_t)1 << (stripe % 64);
    return &ks->again[number][stripe / 64];
}

void
keyspace_walk_again(struct keyspace *ks, const struct key *key)
{
    unsigned stripe = keyspace_stripe_of(key->hash);
    struct entry *entry;
    uint64_t bit;

    if (ks->walks == 0) {
        return;
    }
    entry = table_find(&ks->stripes[stripe].table, key->hash, key->name,
                       db_id_of(ks, key->db));
    if (entry == NULL) {
        return;
    }
    entry->again = 1;
    for (unsigned i = 0; i < GATE_WALKERS; i++) {
        if ((ks->walks >> i & 1) != 0) {
            _Atomic uint64_t *word = mark_word(ks, i, stripe, &bit);

            (void)atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
        }
    }
}

bool
walk_has_again(const struct walk *walk)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < OCCUPIED_WORDS; i++) {
        all |= atomic_load_explicit(&walk->ks->again[walk->number][i],
                                    memory_order_relaxed);
    }
    return all != 0;
}

/* ---- in a hold: noting entries ------------------------------------------- */

/* Writes the stored form of a small filter. */
static size_t
put_form(const struct entry *entry, uint8_t *to)
{
    size_t len = codec_put_head(&entry->bloom, entry->incarnation, to);
    const void *lines;
    size_t bytes;

    for (uint32_t i = 0;
         (lines = bloom_layer_lines(&entry->bloom, i, &bytes)) != NULL; i++) {
        const void *stored = codec_stored(lines, bytes, to + len);

        if (stored != to + len) {
            memcpy(to + len, stored, bytes);
        }
        len += bytes;
    }
    return len;
}

/* Returns whether no other walk needs the marks of entries. An entry that stays
 * marked is copied once more than necessary. */
static bool
is_alone(const struct walk *walk)
{
    return walk->ks->walks == 1U << walk->number;
}

/* Notes one entry, and copies it if it is small. False: the batch is full, or
 * there is no memory for it. */
static bool
note_entry(void *ctx, struct entry *entry, uint64_t expires_at_ms)
{
    struct walk *walk = ctx;
    struct buf *batch = &walk->batch;
    struct noted noted;
    size_t at = batch->len;
    size_t most;
    char *to;

    if ((walk->only_marked && !entry->again) || !is_in_part(walk, entry)) {
        return true;
    }
    noted = walk_describe(walk, entry, expires_at_ms);
    most = sizeof(noted) + noted.name_len;
    if (noted.form_bytes + noted.name_len <= WALK_SMALL_BYTES) {
        most += CODEC_HEAD_BYTES_MAX + noted.form_bytes;
    }
    to = buf_reserve(batch, most);
    if (to == NULL) {
        return false;
    }
    if (walk->only_marked && is_alone(walk)) {
        entry->again = 0; /* the lock is exclusive */
    }
    memcpy(to + sizeof(noted), entry_name(entry).data, noted.name_len);
    if (noted.form_bytes + noted.name_len <= WALK_SMALL_BYTES) {
        noted.form_len = (uint32_t)put_form(
            entry, (uint8_t *)to + sizeof(noted) + noted.name_len);
    }
    memcpy(to, &noted, sizeof(noted));
    batch->len = at + sizeof(noted) + noted.name_len + noted.form_len;
    return batch->len < WALK_BATCH_BYTES;
}

/* ---- the walk ------------------------------------------------------------ */

/* Passes on what a hold has noted. */
static int
empty_batch(struct walk *walk)
{
    const char *at = walk->batch.data;
    const char *end = at + walk->batch.len;
    int error = 0;

    while (at < end && error == 0) {
        struct noted noted;
        struct slice name;

        memcpy(&noted, at, sizeof(noted));
        name = (struct slice){ at + sizeof(noted), noted.name_len };
        at = name.data + name.len + noted.form_len;
        if (noted.form_len == 0) {
            error = walk_copy_large(walk, noted.db_id, name);
        } else {
            struct walk_item item = {
                .name = name,
                .form = { name.data + name.len, noted.form_len },
                .whole = true,
            };

            walk->bytes += noted.form_len;
            error = walk_put_item(walk, &noted, &item);
        }
    }
    buf_reset(&walk->batch, WALK_BATCH_BYTES + WALK_PIECE_BYTES);
    return error;
}

/* Copies what the walk wants of the stripe. Without memory for the batch the
 * walk fails with ENOMEM, since entries of the last step of the scan may be
 * missing. */
static int
copy_stripe(struct walk *walk, unsigned stripe)
{
    uint64_t cursor = 0;
    struct walk_hold hold;
    int error = 0;

    if (walk->part != NULL && !walk_part_has_stripe(walk->part, stripe)) {
        return 0;
    }
    do {
        if (!walk_begin_hold(walk, stripe, walk->only_marked, &hold)) {
            return ECANCELED;
        }
        cursor = scan_slice_all(walk->ks, stripe, cursor, note_entry, walk);
        walk_end_hold(walk, &hold);
        error = walk->batch.failed ? ENOMEM : empty_batch(walk);
    } while (cursor != 0 && error == 0);
    return error;
}

static void
prepare(struct walk *walk, unsigned thread, const struct walk_sink *sink,
        bool only_marked)
{
    walk->thread = thread;
    walk->sink = sink;
    walk->only_marked = only_marked;
    walk->bytes = 0;
    buf_reset(&walk->batch, WALK_BATCH_BYTES + WALK_PIECE_BYTES);
    pace_begin(&walk->pace);
}

int
walk_run(struct walk *walk, unsigned thread, const struct walk_sink *sink)
{
    const struct keyspace *ks = walk->ks;
    int error = 0;

    prepare(walk, thread, sink, false);
    for (unsigned i = keyspace_next_occupied(ks, 0);
         i < KEYSPACE_STRIPES && error == 0;
         i = keyspace_next_occupied(ks, i + 1)) {
        error = copy_stripe(walk, i);
    }
    return error;
}

int
walk_run_again(struct walk *walk, unsigned thread, const struct walk_sink *sink,
               uint64_t *ret_bytes)
{
    int error = 0;

    prepare(walk, thread, sink, true);
    for (unsigned i = 0; i < KEYSPACE_STRIPES && error == 0; i++) {
        uint64_t bit;
        _Atomic uint64_t *word = mark_word(walk->ks, walk->number, i, &bit);

        if ((atomic_fetch_and(word, ~bit) & bit) != 0) {
            error = copy_stripe(walk, i);
        }
    }
    atomic_fetch_add(&walk->rounds, 1);
    *ret_bytes = walk->bytes;
    return error;
}
