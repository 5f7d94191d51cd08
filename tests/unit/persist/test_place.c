/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The place and the history of the log: through restarts, with files and
 * without, with a tap and without.
 */
#include "persist_rig.h"

#include "base/metrics.h"

static const char OTHER[] = "0123456789abcdef0123456789abcdef01234567";

static struct slice
id_of(const struct history *history)
{
    return slice_of(history->id);
}

static void
assert_same(const struct prig *rig, const struct history *history)
{
    assert_memory_equal(persist_history(rig->persist), history,
                        sizeof(*history));
}

/* ---- histories ----------------------------------------------------------- */

TEST(place_has_a_history_from_the_beginning)
{
    struct prig *rig = prig_start("no", "no");
    struct history first = prig_history(rig);

    assert_true(history_is_id(id_of(&first)));
    assert_string_equal(first.past[0].id, "");
    prig_restart(rig); /* nothing was stored: a new history */
    assert_string_not_equal(prig_history(rig).id, first.id);
    prig_free(rig);
}

TEST(place_is_that_of_the_snapshot_after_a_start)
{
    struct prig *rig = prig_start("no", "no");
    struct history history;
    uint64_t position;

    (void)prig_write(rig);
    (void)prig_write(rig);
    history = prig_history(rig);
    position = prig_position(rig);
    prig_save(rig);
    prig_restart(rig);
    assert_same(rig, &history);
    assert_int_equal(prig_position(rig), position);
    prig_free(rig);
}

static bool
has_stored(struct prig *rig, const struct history *history, uint64_t position)
{
    return prig_has_stored(rig, id_of(history), position);
}

TEST(place_is_stored_when_a_snapshot_has_it)
{
    struct prig *rig = prig_start("no", "no");
    struct history history = prig_history(rig);
    uint64_t position;

    (void)prig_write(rig);
    position = prig_position(rig);
    assert_false(has_stored(rig, &history, position));
    prig_save(rig);
    assert_true(has_stored(rig, &history, position));
    assert_true(has_stored(rig, &history, position - 1));
    (void)prig_write(rig);
    assert_false(has_stored(rig, &history, prig_position(rig)));
    prig_renew(rig);
    assert_true(has_stored(rig, &history, position));
    prig_restart(rig); /* under the id that the snapshot has */
    assert_true(has_stored(rig, &history, position));
    assert_false(has_stored(rig, &history, position + 1));
    prig_free(rig);
}

TEST(place_is_stored_when_the_journal_has_synced_it)
{
    struct prig *rig = prig_start("yes", "always");
    struct history history = prig_history(rig);
    struct history other = history;
    uint64_t position;

    (void)prig_write_released(rig);
    position = prig_position(rig);
    assert_true(has_stored(rig, &history, position));
    assert_false(has_stored(rig, &history, position + 1));
    other.id[0] = history.id[0] == '0' ? '1' : '0';
    assert_false(has_stored(rig, &other, 0));
    prig_restart(rig);
    assert_true(has_stored(rig, &history, position));
    prig_free(rig);
}

TEST(place_of_data_that_was_replaced_is_not_stored)
{
    struct prig *rig = prig_start("no", "no");
    struct history history = prig_history(rig);
    struct history other = { .id = "" };
    uint64_t position;

    (void)prig_write(rig);
    position = prig_position(rig);
    prig_save(rig);
    prig_tap(rig, true);
    prig_adopt(rig, 1, 1, OTHER, position);
    other = prig_history(rig);
    assert_false(has_stored(rig, &history, position));
    assert_false(has_stored(rig, &other, position));
    PRIG_WAIT(rig, !prig_info(rig).adopting);
    assert_true(has_stored(rig, &other, position));
    prig_free(rig);
}

TEST(place_is_that_of_the_journal_after_a_start)
{
    struct prig *rig = prig_start("yes", "always");
    struct history history = prig_history(rig);
    uint64_t position;

    for (int i = 0; i < 3; i++) {
        (void)prig_write(rig);
        position = prig_position(rig);
        PRIG_WAIT(rig, prig_released(rig) >= position);
        prig_restart(rig);
        assert_same(rig, &history);
        assert_int_equal(prig_position(rig), position);
    }
    prig_free(rig);
}

/* A restart knows the history that the log recorded, and its past; the old
 * history counts up to the place where the new one begins, and not a byte
 * further. */
TEST(place_renewed_is_said_in_the_journal)
{
    struct prig *rig = prig_start("yes", "always");
    struct history before;
    struct history after;
    uint64_t position;

    for (int i = 0; i < 3; i++) {
        (void)prig_write(rig);
        before = prig_history(rig);
        position = prig_position(rig);
        prig_renew(rig);
        after = prig_history(rig);
        assert_string_not_equal(before.id, after.id);
        assert_true(history_covers(&after, id_of(&before), position));
        assert_false(history_covers(&after, id_of(&before), position + 1));
        assert_true(prig_position(rig) > position);
        (void)prig_write(rig);
        PRIG_WAIT(rig, prig_released(rig) >= prig_position(rig));
        prig_restart_all(rig);
        assert_same(rig, &after);
    }
    (void)persist_ask(rig->persist, PERSIST_REWRITE);
    PRIG_WAIT(rig, rig->persist->info.rewrites == 1);
    prig_restart(rig); /* a base knows its own id only */
    assert_string_equal(prig_history(rig).id, after.id);
    assert_string_equal(prig_history(rig).past[0].id, "");
    prig_free(rig);
}

TEST(place_renewed_without_a_log_is_said_by_the_next_tap_once)
{
    struct prig *rig = prig_start("no", "no");
    struct history history;
    uint64_t position;

    (void)prig_write(rig);
    prig_renew(rig);
    position = prig_position(rig);
    history = prig_history(rig);
    prig_tap(rig, true);
    assert_int_equal(rig->tape_begin, position);
    assert_true(prig_taped(rig, "REPLCONF\r\n$7\r\nHISTORY\r\n"));
    assert_true(prig_taped(rig, history.id));
    assert_int_equal(rig->tape_sequence, 1);
    assert_int_equal(rig->taped.len, prig_position(rig) - position);
    assert_true(atomic_load(&rig->taps) > 0);
    (void)prig_write(rig);
    prig_tap(rig, false);
    prig_tap(rig, true);
    assert_int_equal(rig->taped.len, 0);
    assert_same(rig, &history);

    prig_renew(
        rig); /* the history is recorded at once, behind everything else */
    assert_true(prig_taped(rig, prig_history(rig).id));
    prig_free(rig);
}

/* Two states never have the same place, also without a log. */
TEST(place_moves_when_keys_go_by_themselves)
{
    struct prig *rig = prig_start("no", "no");
    const enum metric gone[] = { METRIC_EXPIRED_KEYS, METRIC_EVICTED_KEYS };

    for (size_t i = 0; i < 2; i++) {
        uint64_t before = prig_position(rig);

        metric_add(gone[i], 3);
        assert_int_equal(prig_position(rig), before + 3);
    }
    prig_free(rig);
}

/* A replica adds nothing to the log of its primary. */
TEST(place_that_was_told_by_the_log_is_not_said_again)
{
    struct prig *rig = prig_start("no", "no");
    struct history before = prig_history(rig);
    uint64_t position;

    prig_tap(rig, true);
    assert_int_equal(rig->taped.len, 0);
    (void)prig_relay(rig);
    position = prig_position(rig);
    gate_raise(keyspace_gate(rig->ks), 0);
    persist_note_history(rig->persist, slice_lit("not an id"));
    assert_same(rig, &before);
    persist_note_history(rig->persist, slice_of(OTHER));
    gate_lower(keyspace_gate(rig->ks), 0);
    assert_string_equal(prig_history(rig).id, OTHER);
    assert_string_equal(prig_history(rig).past[0].id, before.id);
    assert_int_equal(prig_history(rig).past[0].until, position);
    prig_tap(rig, false);
    prig_tap(rig, true);
    assert_int_equal(rig->taped.len, 0);
    prig_free(rig);
}

/* ---- the tap ------------------------------------------------------------- */

TEST(place_goes_on_through_tap_and_no_tap)
{
    struct prig *rig = prig_start("no", "no");
    uint64_t position;

    (void)prig_write(rig);
    assert_int_equal(prig_position(rig), 1);
    prig_tap(rig, true);
    assert_non_null(rig->journal);
    assert_int_equal(rig->tape_begin, 1);
    position = prig_write(rig);
    assert_true(position > 1);
    position += GROUP_SEAL_BYTES;
    assert_int_equal(prig_position(rig), position);
    assert_int_equal(rig->taped.len, position - 1);
    assert_int_equal(prig_released(rig), UINT64_MAX);
    prig_tap(rig, false);
    assert_null(rig->journal);
    assert_int_equal(prig_position(rig), position);
    (void)prig_write(rig);
    assert_int_equal(prig_position(rig), position + 1);
    prig_tap(rig, true);
    assert_int_equal(rig->tape_begin, position + 1);
    assert_int_equal(rig->tape_begin_sequence, 1);
    prig_free(rig);
}

/* Only one state may have a place: keys that expire count, and a reset of the
 * figures (CONFIG RESETSTAT) does not take the position back. */
TEST(place_without_a_log_only_rises)
{
    struct prig *rig = prig_start("no", "no");
    uint64_t position = prig_position(rig);

    metric_add(METRIC_EXPIRED_KEYS, 3);
    metric_add(METRIC_EVICTED_KEYS, 2);
    assert_int_equal(prig_position(rig), position + 5);
    metric_reset_counters();
    assert_int_equal(prig_position(rig), position + 5);
    metric_add(METRIC_EXPIRED_KEYS, 1);
    metric_reset_counters();
    assert_int_equal(prig_position(rig), position + 6);
    prig_free(rig);
}

TEST(place_is_the_same_in_files_and_tap)
{
    struct prig *rig = prig_start("no", "always");
    struct history history = prig_history(rig);
    uint64_t position;
    uint64_t begin;

    prig_tap(rig, true);
    (void)prig_write(rig);
    begin = rig->tape_begin;
    for (int i = 0; i < 3; i++) {
        prig_set(rig, "appendonly", "yes");
        PRIG_WAIT(rig, prig_status(rig).on && !prig_status(rig).building);
        (void)prig_write(rig);
        position = prig_position(rig);
        PRIG_WAIT(rig, prig_released(rig) >= position);
        prig_set(rig, "appendonly", "no");
        PRIG_WAIT(rig, !prig_status(rig).on && !prig_status(rig).closing);
        assert_non_null(rig->journal);
        (void)prig_write(rig);
        assert_int_equal(rig->tape_begin, begin);
        position = prig_position(rig);
        assert_int_equal(position, begin + rig->taped.len);
    }
    prig_set(rig, "appendonly", "yes");
    PRIG_WAIT(rig, prig_status(rig).on && !prig_status(rig).building);
    position = prig_position(rig);
    prig_tap(rig, false);
    assert_non_null(rig->journal);
    assert_int_equal(prig_position(rig), position);
    (void)prig_write(rig);
    position = prig_position(rig);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    prig_restart_all(rig);
    assert_same(rig, &history);
    assert_int_equal(prig_position(rig), position);
    prig_free(rig);
}

TEST(place_of_a_relayed_log_is_found_again)
{
    struct prig *rig = prig_start("yes", "always");
    uint64_t position = 0;

    prig_tap(rig, true);
    for (int i = 0; i < 5; i++) {
        position = prig_relay(rig);
    }
    PRIG_WAIT(rig, prig_released(rig) >= position);
    prig_restart_all(rig);
    assert_int_equal(prig_position(rig), position);
    prig_free(rig);
}
