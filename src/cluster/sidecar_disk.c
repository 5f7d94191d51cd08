/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server that journals serves a slot that it has claimed when its disk has
 * the data, and the file says so. A server without a journal serves it at once,
 * since its users do not expect more. It requests a snapshot, and writes the
 * file when that is done.
 *
 * Each slot has a position: once our log has reached it, the slot's data is
 * here. Each start and each promotion gives the log another history
 * (journal/history.h), and a start may find data of any of the last ones. So
 * the file names them all, and the snapshot's.
 */
#include "cluster/sidecar_disk.h"

#include "base/log.h"
#include "base/mem.h"
#include "cluster/sidecar_state.h"
#include "cluster/sidecar_times.h"

/* ---- what is held -------------------------------------------------------- */

/* Moves the slots whose data is on the disk from `loose` to `kept`. */
static void
note_stored(struct sidecar *sidecar)
{
    slot_set_foreach (&sidecar->loose, slot) {
        if (sidecar->slots[slot].since < sidecar->stored) {
            slot_set_remove(&sidecar->loose, slot);
            slot_set_add(&sidecar->kept, slot);
            slot_set_add(&sidecar->writing, slot);
            sidecar->writing_ticket = 0;
            sidecar->dirty = true;
        }
    }
}

void
sidecar_hold(struct sidecar *sidecar, const struct slot_set *set,
             uint64_t epoch_plus_1, uint64_t position)
{
    holdings_set(sidecar->own, set, epoch_plus_1);
    slot_set_foreach (set, slot) {
        sidecar->slots[slot].since = position;
    }
    slot_set_subtract(&sidecar->kept, set);
    slot_set_subtract(&sidecar->loose, set);
    slot_set_subtract(&sidecar->writing, set);
    slot_set_subtract(&sidecar->strays, set);
    if (epoch_plus_1 != 0) {
        slot_set_unite(&sidecar->loose, set);
    }
    sidecar->dirty = true;
    note_stored(sidecar);
}

void
sidecar_hold_same(struct sidecar *sidecar, const struct slot_set *set,
                  uint64_t epoch_plus_1)
{
    holdings_set(sidecar->own, set, epoch_plus_1);
    sidecar->dirty = true;
}

void
sidecar_hold_nothing(struct sidecar *sidecar)
{
    holdings_clear(sidecar->own);
    memset(&sidecar->kept, 0, sizeof(sidecar->kept));
    memset(&sidecar->loose, 0, sizeof(sidecar->loose));
    sidecar->dirty = true;
    sidecar->changed = true;
}

struct slot_set
sidecar_disk_loose(const struct sidecar *sidecar)
{
    struct slot_set set = { { 0 } };

    if (sidecar->own->follows[0] == '\0') {
        set = sidecar->loose;
        slot_set_unite(&set, &sidecar->writing);
    }
    return set;
}

/* ---- the start ----------------------------------------------------------- */

/* Returns whether the data in dir is what the file describes. */
static bool
is_of_file(const struct sidecar *sidecar)
{
    const struct holdings *own = sidecar->own;

    if (own->data[0][0] == '\0') {
        return true; /* a file of 1.0.0 does not describe the data */
    }
    for (int i = 0; i < HOLDINGS_DATA_MAX && own->data[i][0] != '\0'; i++) {
        if (sidecar->hooks.has(sidecar->hooks.ctx, own->data[i], own->from)) {
            return true;
        }
    }
    return false;
}

static void
take_file(struct sidecar *sidecar)
{
    const struct holdings *own = sidecar->own;

    sidecar->copy_at = own->from;
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (own->held[slot] != 0) {
            slot_set_add(&sidecar->kept, slot);
            sidecar->slots[slot].since = own->from;
        }
    }
}

void
sidecar_disk_check(struct sidecar *sidecar)
{
    struct holdings *own = sidecar->own;
    struct slot_set held;

    if (sidecar->checked) {
        return;
    }
    sidecar->checked = true;
    sidecar->dirty = true;
    take_file(sidecar);
    holdings_slots(own, &held);
    if (!is_of_file(sidecar) && !slot_set_is_empty(&held)) {
        log_error("cluster.sidecar", "the data is not what was held",
                  "slots=%u history=%s position=%llu next=\"it is of another "
                  "history, or ends before that position: nothing is held, and "
                  "the slots are fetched from other servers, or are missing "
                  "(SIDECAR FORCE-SERVE)\"",
                  slot_set_count(&held), own->data[0],
                  (unsigned long long)own->from);
        sidecar_hold_nothing(sidecar);
    }
}

/* ---- the disk ------------------------------------------------------------ */

/* Notes that the file was written. Only then other daemons see the new slots as
 * held. */
static void
note_written(struct sidecar *sidecar)
{
    if (sidecar->writing_ticket != 0 &&
        sidecar->hooks.is_kept(sidecar->hooks.ctx, sidecar->writing_ticket)) {
        memset(&sidecar->writing, 0, sizeof(sidecar->writing));
        sidecar->writing_ticket = 0;
        sidecar->changed = true;
    }
}

/* Requests that the data is stored on the disk. A copy on a server without a
 * journal is not stored. */
static void
ask_for_disk(struct sidecar *sidecar, bool journals, uint64_t now_ms)
{
    bool wanted = sidecar->claim.state == CLAIM_KEEPS ||
                  ((journals || sidecar->own->follows[0] == '\0') &&
                   !slot_set_is_empty(&sidecar->loose));

    if (wanted && now_ms - sidecar->store_ms >= DISK_STORE_MS) {
        sidecar->store_ms = now_ms;
        sidecar->hooks.store(sidecar->hooks.ctx);
    }
}

/* Handles that other data has replaced ours: then nothing that was held is
 * here. For copies, sidecar_copy_check does this. */
static void
check_history(struct sidecar *sidecar, uint64_t now_ms)
{
    struct slot_set all = sidecar->served;
    struct holdings *own = sidecar->own;

    if (sidecar->live[0] == '\0' || own->follows[0] != '\0' ||
        sidecar->hooks.has(sidecar->hooks.ctx, sidecar->live, 0)) {
        return;
    }
    log_notice("cluster.sidecar", "other data has replaced what was held",
               "role=%s", sidecar->role == SIDECAR_FOLLOWS ? "replica" : "-");
    sidecar_hold_nothing(sidecar);
    sidecar_stop_serving(sidecar, &all, now_ms);
}

void
sidecar_disk_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    struct sidecar_disk disk;

    check_history(sidecar, now_ms);
    sidecar->hooks.disk(sidecar->hooks.ctx, &disk);
    memcpy(sidecar->live, disk.history, sizeof(sidecar->live));
    if (strcmp(disk.history, sidecar->own->data[0]) != 0 ||
        strcmp(disk.snapshot, sidecar->snapshot) != 0) {
        sidecar->dirty = true; /* the file must name the new histories */
    }
    if (disk.stored != sidecar->stored) {
        sidecar->stored = disk.stored;
        note_stored(sidecar);
    }
    note_written(sidecar);
    ask_for_disk(sidecar, disk.journals, now_ms);
}

/* ---- the file ------------------------------------------------------------ */

/* Sets the histories that the file names: the present one, earlier ones, and
 * the snapshot's. The last place is the snapshot's, so that earlier ones cannot
 * push it out. */
static void
name_data(struct sidecar *sidecar)
{
    struct holdings *own = sidecar->own;
    struct sidecar_disk disk;
    char old[HOLDINGS_DATA_MAX][HISTORY_ID_CHARS + 1];
    int count = 1;

    sidecar->hooks.disk(sidecar->hooks.ctx, &disk);
    memcpy(old, own->data, sizeof(old));
    memset(own->data, 0, sizeof(own->data));
    memcpy(own->data[0], disk.history, sizeof(own->data[0]));
    memcpy(sidecar->snapshot, disk.snapshot, sizeof(sidecar->snapshot));
    for (int i = 0; i < HOLDINGS_DATA_MAX && count < HOLDINGS_DATA_MAX - 1;
         i++) {
        if (old[i][0] != '\0' && strcmp(old[i], disk.history) != 0 &&
            strcmp(old[i], disk.snapshot) != 0) {
            memcpy(own->data[count++], old[i], sizeof(old[i]));
        }
    }
    if (disk.snapshot[0] != '\0' && strcmp(disk.snapshot, disk.history) != 0) {
        memcpy(own->data[count], disk.snapshot, sizeof(disk.snapshot));
    }
}

/* Returns whether the claim only keeps data of this slot that we held before,
 * because a survey has found nothing newer. */
static bool
is_held_on(const struct sidecar *sidecar, unsigned slot)
{
    return strcmp(sidecar->claim.source, sidecar->own->node) == 0 &&
           slot_set_has(&sidecar->kept, slot);
}

static bool
has_claimed(const struct sidecar *sidecar)
{
    return sidecar->claim.here < sidecar->stored;
}

bool
sidecar_disk_may_keep(struct sidecar *sidecar)
{
    struct sidecar_disk disk;

    sidecar->hooks.disk(sidecar->hooks.ctx, &disk);
    if (!disk.journals || has_claimed(sidecar)) {
        return true;
    }
    slot_set_foreach (sidecar_claimed(sidecar), slot) {
        if (!is_held_on(sidecar, slot)) {
            return false;
        }
    }
    return true;
}

void
sidecar_hold_claim(struct sidecar *sidecar)
{
    const struct claim *claim = &sidecar->claim;
    struct slot_set on = *sidecar_claimed(sidecar);
    struct slot_set fresh = on;

    slot_set_foreach (sidecar_claimed(sidecar), slot) {
        slot_set_remove(is_held_on(sidecar, slot) ? &fresh : &on, slot);
    }
    sidecar_hold_same(sidecar, &on, claim->epoch);
    sidecar_hold(sidecar, &fresh, claim->epoch, claim->here);
}

static void
write_claim(const struct sidecar *sidecar, struct holdings *file)
{
    const struct claim *claim = &sidecar->claim;
    bool stored = has_claimed(sidecar);

    file->claimed = *sidecar_claimed(sidecar);
    if (claim->state != CLAIM_KEEPS) {
        return;
    }
    if (stored && file->from < claim->here) {
        file->from = claim->here;
    }
    if (claim->hand_off && !stored) { /* on the disk the data is still a copy */
        memcpy(file->follows, claim->source, sizeof(file->follows));
        memcpy(file->history, claim->was, sizeof(file->history));
    }
    slot_set_foreach (sidecar_claimed(sidecar), slot) {
        uint64_t *known = &file->known[slot];

        *known = *known < claim->epoch ? claim->epoch : *known;
        if (stored || is_held_on(sidecar, slot)) {
            file->held[slot] = claim->epoch;
            file->copied[slot] = 0;
        }
    }
}

uint64_t
sidecar_keep(struct sidecar *sidecar)
{
    struct holdings *file = mem_alloc(sizeof(*file));
    uint64_t ticket;

    sidecar->dirty = false;
    name_data(sidecar);
    *file = *sidecar->own;
    file->from = 0;
    memset(&file->claimed, 0, sizeof(file->claimed));
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (!slot_set_has(&sidecar->kept, slot)) {
            file->held[slot] = file->copied[slot] = 0;
        } else if (file->from < sidecar->slots[slot].since) {
            file->from = sidecar->slots[slot].since;
        }
    }
    if (sidecar->claim.state != CLAIM_NONE) {
        write_claim(sidecar, file);
    }
    ticket = sidecar->hooks.keep(sidecar->hooks.ctx, file);
    if (sidecar->writing_ticket == 0 && !slot_set_is_empty(&sidecar->writing)) {
        sidecar->writing_ticket = ticket;
    }
    mem_free(file);
    sidecar->hooks.tell(sidecar->hooks.ctx, sidecar->own);
    return ticket;
}
