/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each small filter lies in three places of the memory: entry, filter, lines.
 * So an entry waits until PENDING later entries were seen. Meanwhile the CPU
 * fetches its filter, and after half of these entries its lines.
 */
#include "snapshot/snapshot_whole.h"

#include "base/prefetch.h"
#include "keyspace/scan.h"

enum { PENDING = 32, FETCHED_LINES = 4 };

struct whole {
    struct snapshot_writer *writer;
    uint64_t position;
    uint64_t seen; /* number of entries; the last PENDING wait */
    int error;
    struct pending {
        struct snapshot_record record;
        const struct bloom *bloom;
    } pending[PENDING];
};

static void
fetch(const void *at, size_t lines)
{
    for (size_t i = 0; i < lines; i++) {
        prefetch((const char *)at + i * BLOOM_LINE_BYTES);
    }
}

static void
fetch_lines(const struct bloom *bloom)
{
    size_t bytes;
    const void *lines = bloom_layer_lines(bloom, 0, &bytes);
    size_t count = bytes / BLOOM_LINE_BYTES;

    fetch(lines, count < FETCHED_LINES ? count : FETCHED_LINES);
}

static bool
add_record(struct whole *whole, const struct pending *slot)
{
    whole->error = snapshot_add(whole->writer, &slot->record, slot->bloom);
    return whole->error == 0;
}

static bool
on_entry(void *ctx, uint32_t db, const struct entry *entry,
         uint64_t expires_at_ms)
{
    struct whole *whole = ctx;
    struct pending *slot = &whole->pending[whole->seen % PENDING];

    if (whole->seen >= PENDING && !add_record(whole, slot)) {
        return false;
    }
    *slot = (struct pending){
        .record = { .name = entry_name(entry),
                    .db = db,
                    .expires_at_ms = expires_at_ms,
                    .incarnation = entry->incarnation,
                    .copied_at = whole->position },
        .bloom = &entry->bloom,
    };
    fetch(&entry->bloom, 2);
    whole->seen++;
    if (whole->seen >= PENDING / 2) {
        slot = &whole->pending[(whole->seen - PENDING / 2) % PENDING];
        fetch_lines(slot->bloom);
    }
    return true;
}

static void
add_pending(struct whole *whole)
{
    uint64_t i = whole->seen > PENDING ? whole->seen - PENDING : 0;

    for (; i < whole->seen; i++) {
        if (!add_record(whole, &whole->pending[i % PENDING])) {
            return;
        }
    }
}

/* Nothing changes meanwhile, so the stamp of the end is that of the beginning.
 */
int
snapshot_write(struct snapshot_writer *writer, const struct keyspace *ks,
               const struct snapshot_stamp *stamp, int fd,
               struct snapshot_progress *progress)
{
    struct snapshot_stamp counted = *stamp;
    struct whole whole = { .writer = writer, .position = stamp->position };

    counted.keys = keyspace_count_keys(ks);
    whole.error =
        snapshot_begin(writer, &counted, keyspace_databases(ks), fd, progress);
    if (whole.error == 0 && keyspace_each(ks, on_entry, &whole)) {
        add_pending(&whole);
    }
    return whole.error == 0 ? snapshot_end(writer, &counted) : whole.error;
}
