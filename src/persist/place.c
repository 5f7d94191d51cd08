/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Without a journal and without a tap there is no log. The position then counts
 * changes, and keys that expired or were evicted: no two states may have the
 * same place. A history that begins without a log is at first only in the next
 * snapshot. The first tap records it in the log, so that every reader knows it.
 * A replica must not append to its primary's log: its history was recorded
 * there, or came with its data, so its tap begins without a record.
 */
#include "persist/place.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "journal/journal_tap.h"
#include "keyspace/gate.h"
#include "persist/persist_state.h"

bool
place_is_logged(const struct persist *persist)
{
    struct journal_status status;

    journal_get_status(persist->journal, &status);
    return status.on || persist->log.tapped || persist->log.walked > 0;
}

/* Uses metric_sum_ever, since a reset of counters must not lower the position.
 */
static int64_t
count_changes(void)
{
    return metric_sum_ever(METRIC_CHANGES) +
           metric_sum_ever(METRIC_EXPIRED_KEYS) +
           metric_sum_ever(METRIC_EVICTED_KEYS);
}

void
persist_place(struct persist *persist, uint64_t *ret_position,
              uint64_t *ret_sequence)
{
    int64_t changes = count_changes();

    if (place_is_logged(persist)) {
        journal_mark(persist->journal, ret_position, ret_sequence);
        return;
    }
    persist->log.idle_position +=
        (uint64_t)(changes - persist->log.idle_changes);
    persist->log.idle_changes = changes;
    *ret_position = persist->log.idle_position;
    *ret_sequence = persist->log.idle_sequence;
}

struct persist_point
place_point(struct persist *persist)
{
    struct persist_point point = { .position = 0 };
    uint64_t sequence;

    persist_place(persist, &point.position, &sequence);
    memcpy(point.history, persist->log.history.id, sizeof(point.history));
    return point;
}

/* A snapshot counts even if there is a journal, since the journal may have
 * begun later. */
bool
persist_stored(const struct persist *persist, uint64_t *ret_position)
{
    const struct persist_point *stored = &persist->save.stored;
    uint64_t synced = journal_synced(persist->journal);
    bool saved = history_covers(&persist->log.history,
                                slice_of(stored->history), stored->position);

    if (!saved && synced == 0) {
        return false;
    }
    *ret_position =
        saved && stored->position > synced ? stored->position : synced;
    return true;
}

const char *
persist_stored_history(const struct persist *persist)
{
    return persist->save.stored.history;
}

/* A snapshot was synced before it got its name, so it counts as stored. A
 * journal that is off may be only in the page cache, so it does not. */
void
place_set(struct persist *persist)
{
    if (persist->load.found.from_snapshot) {
        persist->save.stored.position = persist->load.found.position;
        memcpy(persist->save.stored.history, persist->load.history.id,
               sizeof(persist->save.stored.history));
    }
    persist->log.history = persist->load.history;
    persist->log.idle_position = persist->load.found.position;
    persist->log.idle_sequence = persist->load.found.sequence;
    persist->log.idle_changes = count_changes();
}

void
place_begin_idle(struct persist *persist)
{
    persist_place(persist, &persist->log.idle_position,
                  &persist->log.idle_sequence);
    persist->log.idle_changes = count_changes();
}

/* ---- histories ----------------------------------------------------------- */

const struct history *
persist_history(const struct persist *persist)
{
    return &persist->log.history;
}

/* Appends the history as a group of its own. Its memory may come from the
 * reserve: without the record, two states would have the same place. */
static void
record_history(struct persist *persist)
{
    const struct slice argv[] = { slice_lit("REPLCONF"), slice_lit("HISTORY"),
                                  slice_of(persist->log.history.id) };
    enum mem_claim before = mem_set_claim(MEM_OWN);
    uint64_t position;
    uint64_t sequence;

    journal_mark(persist->journal, &position, &sequence);
    CHECK(stage_open(&persist->log.stage, stage_effect_bytes(argv, 3)));
    (void)mem_set_claim(before);
    stage_add(&persist->log.stage, 0, argv, 3);
    (void)journal_append(persist->journal,
                         stage_close(&persist->log.stage, false));
    stage_fini(&persist->log.stage);
    journal_mark(persist->journal, &position, &sequence);
    journal_kick(persist->journal);
    persist->log.unrecorded = false;
}

/* Continues from the present place under a new id. */
static void
continue_history(struct persist *persist, const char *id)
{
    uint64_t position;
    uint64_t sequence;

    persist_place(persist, &position, &sequence);
    history_go_on(&persist->log.history, id, position);
}

/* Logs, at a promotion right after a full synchronization, that replies to
 * writes are held. */
static void
log_holding(const struct persist *persist)
{
    struct journal_status status;

    journal_get_status(persist->journal, &status);
    if (status.holding) {
        log_notice("persist.journal", "holds replies to writes",
                   "reason=\"the disk does not have the data of the primary "
                   "yet\" until=\"it has\" or_after_ms=%llu then=\"refuses "
                   "writes (misconf-after)\"",
                   (unsigned long long)persist->conf.misconf_after_ns /
                       1000000);
    }
}

void
persist_renew_history(struct persist *persist)
{
    char id[HISTORY_ID_CHARS + 1];

    /* These walks began in the old history. */
    walker_cancel(persist->own.walker);
    walker_cancel(persist->synced.walker);
    random_hex(id, HISTORY_ID_CHARS);
    continue_history(persist, id);
    persist->log.unrecorded = true;
    if (place_is_logged(persist)) {
        record_history(persist);
    }
    log_holding(persist);
}

void
persist_note_history(struct persist *persist, struct slice id)
{
    char text[HISTORY_ID_CHARS + 1] = "";

    if (!history_is_id(id)) {
        return;
    }
    memcpy(text, id.data, HISTORY_ID_CHARS);
    if (atomic_load(&persist->load.loading)) {
        history_go_on(&persist->load.history, text, persist->load.position);
    } else {
        continue_history(persist, text);
    }
}

/* The position rises although older data was loaded (see recover.h). */
void
place_restart(struct persist *persist)
{
    uint64_t position;
    uint64_t sequence;

    metric_add(METRIC_CHANGES, 1);
    persist_place(persist, &position, &sequence);
    if (persist->log.tapped) {
        journal_move(persist->journal, position + 1, sequence);
    }
    history_begin(&persist->log.history, NULL);
    persist->log.unrecorded = true;
}

/* ---- the tap ------------------------------------------------------------- */

bool
persist_is_tapped(const struct persist *persist)
{
    return persist->log.tapped;
}

static void
open_tap(struct persist *persist, enum journal_tap_use use,
         const struct journal_tap *tap, uint64_t *ret_position,
         uint64_t *ret_sequence)
{
    persist_place(persist, ret_position, ret_sequence);
    journal_set_tap(persist->journal, use, tap, ret_position, ret_sequence);
    persist->log.tapped = persist->log.tapped || use == JOURNAL_TAP_REPLICAS;
    persist->log.walked += use != JOURNAL_TAP_REPLICAS;
    persist->options.hooks.journaling(persist->options.hooks.ctx,
                                      persist->journal);
}

static void
close_tap(struct persist *persist, enum journal_tap_use use,
          uint64_t *ret_position, uint64_t *ret_sequence)
{
    place_begin_idle(persist);
    *ret_position = persist->log.idle_position;
    *ret_sequence = persist->log.idle_sequence;
    journal_set_tap(persist->journal, use, NULL, ret_position, ret_sequence);
    persist->log.tapped = persist->log.tapped && use != JOURNAL_TAP_REPLICAS;
    persist->log.walked -= use != JOURNAL_TAP_REPLICAS;
    if (!place_is_logged(persist)) {
        persist->options.hooks.journaling(persist->options.hooks.ctx, NULL);
    }
}

void
place_tap_walk(struct persist *persist, enum journal_tap_use use,
               const struct journal_tap *tap, uint64_t *ret_position,
               uint64_t *ret_sequence)
{
    open_tap(persist, use, tap, ret_position, ret_sequence);
}

void
place_untap_walk(struct persist *persist, enum journal_tap_use use,
                 uint64_t *ret_position, uint64_t *ret_sequence)
{
    close_tap(persist, use, ret_position, ret_sequence);
}

void
persist_set_tap(struct persist *persist, const struct journal_tap *tap)
{
    uint64_t position;
    uint64_t sequence;

    gate_raise(persist->gate, 0);
    if (tap != NULL) {
        open_tap(persist, JOURNAL_TAP_REPLICAS, tap, &position, &sequence);
        if (persist->log.unrecorded) {
            record_history(persist);
        }
    } else if (persist->log.tapped) {
        close_tap(persist, JOURNAL_TAP_REPLICAS, &position, &sequence);
    }
    gate_lower(persist->gate, 0);
}
