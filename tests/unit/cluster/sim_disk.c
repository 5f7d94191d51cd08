/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a daemon's disk has when it is killed. A journal has all, but for a time
 * after a full synchronization, when it still has what was there before. A
 * daemon without a journal has its last snapshot.
 */
#include "../test.h"
#include "base/mem.h"
#include "sim.h"

#include <string.h>

static void
copy_to_disk(struct sim_daemon *d, const struct sim_place *place)
{
    struct sim_disk *disk = &d->disk;

    memcpy(disk->log, d->log, place->length * sizeof(*d->log));
    disk->place = *place;
}

static struct sim_place
place_of(const struct sim_daemon *d)
{
    struct sim_place place = { .history = d->history, .length = d->length };

    memcpy(place.items, d->items, sizeof(place.items));
    return place;
}

void
sim_disk_begin(struct sim_daemon *d)
{
    if (d->disk.log == NULL) {
        d->disk.log = mem_alloc(SIM_LOG_MAX * sizeof(struct sim_change));
    }
    d->disk =
        (struct sim_disk){ .log = d->disk.log, .journals = sim_below(4) != 0 };
    memset(d->unsaved, 0, sizeof(d->unsaved));
}

void
sim_disk_replaced(struct sim_daemon *d)
{
    struct sim_disk *disk = &d->disk;
    const struct sim_place place = place_of(d);

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        sim_check_last(d, slot, false);
    }
    if (disk->journals && disk->built_ms == 0) {
        copy_to_disk(d, &place);
    }
    disk->save_ms = 0;
    disk->synced = 0;
    if (disk->journals) {
        disk->built_ms = sim.now_ms + 10 + sim_below(600);
    }
}

static void
begin_save(struct sim_daemon *d)
{
    if (d->disk.save_ms == 0) {
        d->disk.saving = place_of(d);
        d->disk.save_ms = sim.now_ms + 20 + sim_below(400);
    }
}

void
sim_disk_store(struct sim_daemon *d)
{
    if (!d->disk.journals) {
        begin_save(d);
    } else if (d->disk.sync_ms == 0) {
        d->disk.sync_ms = sim.now_ms + 1 + sim_below(10);
    }
}

static void
run_journal(struct sim_daemon *d)
{
    struct sim_disk *disk = &d->disk;

    if (disk->built_ms != 0) {
        if (sim.now_ms < disk->built_ms) {
            return;
        }
        disk->built_ms = 0;
        disk->synced = d->length;
    }
    if ((disk->sync_ms != 0 && sim.now_ms >= disk->sync_ms) ||
        sim_below(1000) == 0) {
        disk->sync_ms = 0;
        disk->synced = d->length;
    }
}

/* A start holds what was saved of a slot only if the file names the slot. */
void
sim_disk_note_saved(struct sim_daemon *d)
{
    const struct holdings *own = sidecar_holdings(d->sidecar);

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (d->kept.held[slot] != 0 || own->held[sim_slot(slot)] == 0) {
            d->unsaved[slot] &= ~d->disk.place.items[slot];
        }
    }
}

void
sim_disk_run(struct sim_daemon *d)
{
    struct sim_disk *disk = &d->disk;

    if (disk->journals) {
        run_journal(d);
        return;
    }
    if (disk->save_ms != 0 && sim.now_ms >= disk->save_ms) {
        disk->save_ms = 0;
        copy_to_disk(d, &disk->saving);
        sim_tell("daemon %d has saved %zu", sim_index(d), disk->place.length);
        sim_disk_note_saved(d);
    }
    if (sim_below(4000) == 0) {
        begin_save(d);
    }
}

void
sim_disk_kill(struct sim_daemon *d)
{
    struct sim_disk *disk = &d->disk;
    const struct sim_place *place = &disk->place;

    disk->save_ms = disk->sync_ms = 0;
    if (disk->journals && disk->built_ms == 0) {
        return;
    }
    disk->built_ms = 0;
    memcpy(d->log, disk->log, place->length * sizeof(*d->log));
    d->length = place->length;
    d->history = place->history;
    memcpy(d->items, place->items, sizeof(d->items));
    disk->synced = d->length;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        sim.lost[slot] |= d->unsaved[slot]; /* its users knew that */
        d->unsaved[slot] = 0;
    }
}

/* Whether the log is of this history, or continues it, and reaches that
 * position. */
bool
sim_disk_has(const struct sim_daemon *d, uint64_t history, uint64_t position)
{
    uint64_t at = d->history;
    uint64_t end = d->length;

    while (at != 0 && at != history) {
        end = sim.began[at] < end ? sim.began[at] : end;
        at = sim.before[at];
    }
    return at != 0 && position <= end;
}

uint64_t
sim_disk_stored(const struct sim_daemon *d)
{
    const struct sim_disk *disk = &d->disk;

    if (disk->journals) {
        return disk->built_ms == 0 ? disk->synced + 1 : 0;
    }
    return disk->place.history != 0 &&
                   sim_disk_has(d, disk->place.history, disk->place.length)
               ? disk->place.length + 1
               : 0;
}
