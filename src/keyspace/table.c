/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two things grow. The number of buckets follows the number of entries (linear
 * hashing): while the table doubles, buckets that are not split yet have twice
 * as many entries as others. The size of a bucket follows its own entries, in
 * the steps of the allocator's sizes. So lines are about 80 % full at any time.
 *
 * In a bucket, a full line passes entries on to the next one, and the last line
 * to the first. A removal closes the gap: it moves back an entry that passed.
 * So lines that an entry passed are full, and a line with an empty slot has no
 * marks. A full line may keep the mark of entries that have been moved back,
 * which costs the reading of one line more.
 *
 * The capacity of the directory is the power of two that follows from `used`,
 * so it is not stored.
 */
#include "keyspace/table.h"

#include "base/err.h"
#include "base/mem.h"

enum {
    BUCKETS_MIN = 2,
    BUCKETS_MAX = 1 << 16,
    STEPS = 2, /* most splits or joins in a call; 1 unless memory was short */
    EXPECT_SPARE = 16, /* room for one entry more per so many */
    ENTRIES_SHIFT = 48
};

#define ONE_ENTRY ((uint64_t)1 << ENTRIES_SHIFT)

uint64_t
table_hash(const struct entry *entry)
{
    return key_hash(entry_name(entry));
}

/* ---- one bucket ---------------------------------------------------------- */

static uint32_t
entries_of(uint64_t bucket)
{
    return (uint32_t)(bucket >> ENTRIES_SHIFT);
}

static size_t
bytes_of(unsigned lines)
{
    return (size_t)lines * TABLE_SLOTS * sizeof(uint64_t);
}

static void
free_bucket(uint64_t bucket)
{
    if (bucket != 0) {
        mem_free_lines(table_slots(bucket, 0),
                       bytes_of(table_line_count(bucket)));
    }
}

/* Returns the lines for so many entries: at most 15 of 16 slots are taken. */
static unsigned
lines_for(uint32_t entries)
{
    static const unsigned char sizes[] = { 1,
                                           2,
                                           3,
                                           4,
                                           5,
                                           6,
                                           7,
                                           8,
                                           10,
                                           12,
                                           14,
                                           16,
                                           20,
                                           24,
                                           28,
                                           32,
                                           40,
                                           48,
                                           TABLE_LINES_MAX };
    size_t i = 0;

    while (sizes[i] < TABLE_LINES_MAX && sizes[i] * 15U < entries * 2) {
        i++;
    }
    return sizes[i];
}

static bool
is_full(uint64_t bucket)
{
    return entries_of(bucket) >= table_line_count(bucket) * TABLE_SLOTS;
}

/* Makes a bucket without entries, 0 if LINES is 0. False without memory. */
static bool
make_bucket(unsigned lines, uint64_t *ret_bucket)
{
    void *made = NULL;

    if (lines > 0) {
        made = mem_try_lines(bytes_of(lines));
        if (made == NULL) {
            return false;
        }
    }
    *ret_bucket = (uint64_t)(uintptr_t)made | lines;
    return true;
}

static unsigned
line_after(uint64_t bucket, unsigned at)
{
    return at + 1 < table_line_count(bucket) ? at + 1 : 0;
}

/* Adds a slot to a bucket that is not full. */
static void
put_slot(uint64_t *bucket, uint64_t slot)
{
    uint64_t place = slot & TABLE_PLACE;
    unsigned at = table_home(*bucket, place);

    CHECK(!is_full(*bucket));
    slot &= ~TABLE_PASSED;
    for (;; at = line_after(*bucket, at)) {
        uint64_t *slots = table_slots(*bucket, at);

        for (unsigned i = 0; i < TABLE_SLOTS; i++) {
            if (table_entry(slots[i]) == NULL) {
                slots[i] |= slot;
                *bucket += ONE_ENTRY;
                return;
            }
        }
        slots[table_passed(place)] |= TABLE_PASSED;
    }
}

/* Moves the entries of FROM to two buckets, which may be the same, by a bit of
 * their places. Frees FROM. */
static void
distribute(uint64_t from, uint64_t bit, uint64_t *clear, uint64_t *set)
{
    const uint64_t *slots = table_slots(from, 0);

    for (unsigned i = 0; i < table_line_count(from) * TABLE_SLOTS; i++) {
        if (table_entry(slots[i]) != NULL) {
            put_slot((slots[i] & bit) != 0 ? set : clear, slots[i]);
        }
    }
    free_bucket(from);
}

static bool
resize_bucket(uint64_t *bucket, unsigned lines)
{
    uint64_t made;

    if (!make_bucket(lines, &made)) {
        return false;
    }
    distribute(*bucket, 0, &made, &made);
    *bucket = made;
    return true;
}

/* Returns the slot of the entry in this bucket, or NULL. */
static uint64_t *
slot_of(uint64_t bucket, uint64_t place, const struct entry *entry)
{
    unsigned at = table_home(bucket, place);

    for (unsigned left = table_line_count(bucket); left > 0; left--) {
        uint64_t *slots = table_slots(bucket, at);

        for (unsigned i = 0; i < TABLE_SLOTS; i++) {
            if (table_entry(slots[i]) == entry) {
                return &slots[i];
            }
        }
        at = line_after(bucket, at);
    }
    return NULL;
}

static bool
has_marks(const uint64_t *slots)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < TABLE_SLOTS; i++) {
        all |= slots[i];
    }
    return (all & TABLE_PASSED) != 0;
}

static void
clear_marks(uint64_t *slots)
{
    for (unsigned i = 0; i < TABLE_SLOTS; i++) {
        slots[i] &= ~TABLE_PASSED;
    }
}

/* Returns how many lines TO is behind FROM. */
static unsigned
distance(uint64_t bucket, unsigned from, unsigned to)
{
    return to >= from ? to - from : to + table_line_count(bucket) - from;
}

/* Returns the first slot behind the line GAP whose entry passed GAP, or NULL.
 * *ret_line is the line of that slot. */
static uint64_t *
first_passed(uint64_t bucket, unsigned gap, unsigned *ret_line)
{
    for (unsigned at = line_after(bucket, gap); at != gap;
         at = line_after(bucket, at)) {
        uint64_t *slots = table_slots(bucket, at);

        for (unsigned i = 0; i < TABLE_SLOTS; i++) {
            unsigned home = table_home(bucket, slots[i] & TABLE_PLACE);

            if (table_entry(slots[i]) != NULL &&
                distance(bucket, home, at) >= distance(bucket, gap, at)) {
                *ret_line = at;
                return &slots[i];
            }
        }
        if (!has_marks(slots)) {
            break;
        }
    }
    return NULL;
}

/* Empties a slot. Fills the gap with an entry that passed the line, if there is
 * one, then the gap that this entry leaves, and so on. */
static void
take_slot(uint64_t bucket, uint64_t *slot)
{
    unsigned line = (unsigned)(slot - table_slots(bucket, 0)) / TABLE_SLOTS;
    uint64_t *from;

    while (has_marks(table_slots(bucket, line))) {
        uint64_t *slots = table_slots(bucket, line);

        from = first_passed(bucket, line, &line);
        if (from == NULL) {
            clear_marks(slots);
            break;
        }
        *slot = (*slot & TABLE_PASSED) | (*from & ~TABLE_PASSED);
        slot = from;
    }
    *slot &= TABLE_PASSED;
}

/* ---- one bucket more or less --------------------------------------------- */

static bool
is_power_of_two(uint32_t number)
{
    return (number & (number - 1)) == 0;
}

static bool
resize_directory(struct table *table, uint32_t buckets)
{
    uint64_t *moved =
        mem_try_realloc(table->buckets, buckets * sizeof(*table->buckets));

    if (moved == NULL) {
        return false;
    }
    table->buckets = moved;
    return true;
}

static bool
begin_buckets(struct table *table)
{
    if (!resize_directory(table, BUCKETS_MIN)) {
        return false;
    }
    for (unsigned i = 0; i < BUCKETS_MIN; i++) {
        table->buckets[i] = 0;
    }
    table->used = BUCKETS_MIN;
    return true;
}

/* Returns the entries of the bucket that have this bit in their places. */
static uint32_t
count_with(uint64_t bucket, uint64_t bit)
{
    const uint64_t *slots = table_slots(bucket, 0);
    uint32_t count = 0;

    for (unsigned i = 0; i < table_line_count(bucket) * TABLE_SLOTS; i++) {
        count += table_entry(slots[i]) != NULL && (slots[i] & bit) != 0;
    }
    return count;
}

static bool
split(struct table *table)
{
    uint64_t bit = linear_bit(table->used);
    uint32_t parent = (uint32_t)linear_parent(table->used);
    uint64_t bucket = table->buckets[parent];
    uint32_t leaving = count_with(bucket, bit);
    uint32_t staying = entries_of(bucket) - leaving;
    uint64_t leave;
    uint64_t stay;

    if (is_power_of_two(table->used) &&
        !resize_directory(table, table->used * 2)) {
        return false;
    }
    if (!make_bucket(leaving > 0 ? lines_for(leaving) : 0, &leave)) {
        return false;
    }
    if (!make_bucket(staying > 0 ? lines_for(staying) : 0, &stay)) {
        free_bucket(leave);
        return false;
    }
    distribute(bucket, bit, &stay, &leave);
    table->buckets[parent] = stay;
    table->buckets[table->used++] = leave;
    return true;
}

/* Does not free the memory behind the last bucket if a realloc fails. */
static bool
join(struct table *table)
{
    uint64_t *last = &table->buckets[table->used - 1];
    uint64_t *parent = &table->buckets[linear_parent(table->used - 1)];
    uint32_t entries = entries_of(*last) + entries_of(*parent);
    uint64_t joined;

    if (entries > TABLE_LINES_MAX * TABLE_SLOTS ||
        !make_bucket(entries > 0 ? lines_for(entries) : 0, &joined)) {
        return false;
    }
    distribute(*last, 0, &joined, &joined);
    distribute(*parent, 0, &joined, &joined);
    *parent = joined;
    table->used--;
    if (is_power_of_two(table->used)) {
        (void)resize_directory(table, table->used);
    }
    return true;
}

static bool
is_crowded(const struct table *table)
{
    return table->used < BUCKETS_MAX &&
           table->count / TABLE_TARGET >= table->used;
}

static bool
is_sparse(const struct table *table)
{
    return table->used > BUCKETS_MIN &&
           table->count / (TABLE_TARGET / 2) < table->used;
}

/* Shrinks a bucket that is too large even for half as many entries more. */
static void
shrink(uint64_t *bucket)
{
    uint32_t entries = entries_of(*bucket);

    if (entries == 0) {
        free_bucket(*bucket);
        *bucket = 0;
    } else if (lines_for(entries + entries / 2 + 1) <
               table_line_count(*bucket)) {
        (void)resize_bucket(bucket, lines_for(entries + entries / 4 + 1));
    }
}

/* ---- the calls ----------------------------------------------------------- */

struct entry *
table_get(const struct table *table, uint64_t place, const struct entry *entry)
{
    const uint64_t *slot =
        table->buckets != NULL
            ? slot_of(*table_bucket(table, place), place, entry)
            : NULL;

    return slot != NULL ? table_entry(*slot) : NULL;
}

/* Returns the bucket for a place with room for one entry more, or NULL. A
 * snapshot comes in the order of a walk, so that a part of the buckets fills
 * first, and may have more entries than were expected: then a bucket of the
 * largest size is full although the table is not, and splits go on until they
 * come to it. */
static uint64_t *
bucket_with_room(struct table *table, uint64_t place)
{
    uint64_t *bucket = table_bucket(table, place);
    uint32_t entries;

    while (entries_of(*bucket) >= TABLE_LINES_MAX * TABLE_SLOTS) {
        if (table->used >= BUCKETS_MAX || !split(table)) {
            return NULL;
        }
        bucket = table_bucket(table, place);
    }
    entries = entries_of(*bucket) + 1;
    if (lines_for(entries) > table_line_count(*bucket) &&
        !resize_bucket(bucket, lines_for(entries)) && is_full(*bucket)) {
        return NULL;
    }
    return bucket;
}

bool
table_insert(struct table *table, uint64_t place, struct entry *entry)
{
    uint64_t slot = (uint64_t)(uintptr_t)entry << 16 | place;
    uint64_t *bucket;

    CHECK(table_entry(slot) == entry);
    if (table->buckets == NULL && !begin_buckets(table)) {
        return false;
    }
    for (int i = 0; i < STEPS && is_crowded(table) && split(table); i++) {
    }
    bucket = bucket_with_room(table, place);
    if (bucket == NULL) {
        return false;
    }
    put_slot(bucket, slot);
    table->count++;
    table->changes++;
    return true;
}

void
table_expect(struct table *table, uint32_t count)
{
    uint32_t used = count / TABLE_TARGET + 1;
    uint32_t room = BUCKETS_MIN;

    used = used < BUCKETS_MAX ? used : BUCKETS_MAX;
    while (room < used) {
        room *= 2;
    }
    if (table->buckets != NULL || used < BUCKETS_MIN ||
        !resize_directory(table, room)) {
        return;
    }
    for (uint32_t i = 0; i < used; i++) {
        uint32_t share = count / (uint32_t)(linear_mask(used, i) + 1);

        share += share / EXPECT_SPARE;
        if (!make_bucket(lines_for(share), &table->buckets[i])) {
            table->buckets[i] = 0;
        }
    }
    table->used = used;
}

void
table_remove(struct table *table, uint64_t place, const struct entry *entry)
{
    uint64_t *bucket = table_bucket(table, place);
    uint64_t *slot = slot_of(*bucket, place, entry);

    CHECK(slot != NULL && table->count > 0);
    take_slot(*bucket, slot);
    *bucket -= ONE_ENTRY;
    table->count--;
    table->changes++;
    shrink(bucket);
    for (int i = 0; i < STEPS && is_sparse(table) && join(table); i++) {
    }
}

void
table_replace(struct table *table, uint64_t place, const struct entry *from,
              struct entry *to)
{
    uint64_t *slot = slot_of(*table_bucket(table, place), place, from);

    CHECK(slot != NULL);
    *slot = (*slot & ~TABLE_ADDRESS) | (uint64_t)(uintptr_t)to << 16;
    CHECK(table_entry(*slot) == to);
}

void
table_relocate(struct table *table, uint64_t cursor, relocate_fn move,
               struct relocate_sums *sums)
{
    uint64_t *bucket =
        &table->buckets[cursor & linear_mask(table->used, cursor)];
    uint64_t *lines = table_slots(*bucket, 0);
    void *block = lines;

    relocate_lines(&block, bytes_of(table_line_count(*bucket)), move, sums);
    if (block != lines) {
        *bucket += (uint64_t)(uintptr_t)block - (uint64_t)(uintptr_t)lines;
    }
}

void
table_fini(struct table *table)
{
    for (uint32_t i = 0; i < table->used; i++) {
        free_bucket(table->buckets[i]);
    }
    mem_free(table->buckets);
    *table = (struct table){ .changes = table->changes + 1 };
}

/* ---- walks --------------------------------------------------------------- */

static struct table_range
range_of(uint64_t bucket, uint64_t place, uint64_t mask)
{
    const uint64_t *slots = table_slots(bucket, 0);

    return (struct table_range){ slots,
                                 table_slots(bucket, table_line_count(bucket)),
                                 place, mask };
}

struct table_range
table_whole_bucket(const struct table *table, uint32_t bucket)
{
    return range_of(table->buckets[bucket], 0, 0);
}

/* The places of a step agree with the cursor in the bits that select the
 * bucket, and in so many more that they are about one line of it. The next
 * cursor is these bits plus one, in reversed order. */
struct table_range
table_step(const struct table *table, uint64_t cursor, uint64_t *ret_next)
{
    uint64_t mask = linear_mask(table->used, cursor);
    uint64_t bucket = table->buckets[cursor & mask];

    for (unsigned n = table_line_count(bucket); n > 1 && mask < TABLE_PLACE;
         n /= 2) {
        mask = mask << 1 | 1;
    }
    *ret_next = linear_reverse(linear_reverse(cursor | ~mask) + 1);
    return range_of(bucket, cursor, mask);
}
