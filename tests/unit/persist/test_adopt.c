/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of another server in the place of ours. Keys w0 to w9 are the old data,
 * w10 to w19 the new: at any time a start finds all of the one or all of the
 * other, under the id and at the position that belong to it.
 */
#include "keyspace/databases.h"
#include "persist_rig.h"

#include "persist/sync.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

enum { OLD = 10, NEW = 10, PLACE = 5 };

/* A place far before that of the old data: positions decide nothing. */
static const char OTHER[] = "fedcba9876543210fedcba9876543210fedcba98";
static const char THIRD[] = "00112233445566778899aabbccddeeff00112233";
#define SNAPSHOT "bloomery.snapshot"
#define ARRIVAL  SNAPSHOT ".new"

/* Starts a replica with old data in a snapshot, and in the journal if it is on;
 * no step is under way. */
static struct prig *
start_old(const char *appendonly)
{
    struct prig *rig = prig_start(appendonly, "always");

    prig_tap(rig, true);
    for (int i = 0; i < OLD; i++) {
        (void)prig_relay(rig);
    }
    prig_save(rig);
    PRIG_WAIT(rig, rig->journal == NULL || !prig_status(rig).on ||
                       prig_released(rig) >= journal_position(rig->journal));
    return rig;
}

static void
adopt(struct prig *rig)
{
    prig_adopt(rig, OLD, NEW, OTHER, PLACE);
}

/* The same, but the disk gets it while it arrives. */
static void
receive(struct prig *rig)
{
    prig_send(rig, OLD, NEW, OTHER, PLACE);
    prig_receive(rig);
    prig_take(rig);
}

static bool
is_settled(const struct prig *rig)
{
    struct journal_status status = prig_status(rig);

    return !prig_info(rig).adopting && rig->persist->step == STEP_NONE &&
           (!rig->conf.appendonly || (status.on && !status.building));
}

static void
settle(struct prig *rig)
{
    PRIG_WAIT(rig, is_settled(rig));
}

/* Checks all of the new data, and what was relayed since. */
static void
check_new(const struct prig *rig)
{
    assert_true(prig_has_exactly(rig, OLD, rig->written));
    assert_string_equal(prig_history(rig).id, OTHER);
}

/* One of the two, all of it. True: the new one. */
static bool
check_either(const struct prig *rig, const char *old_id)
{
    if (strcmp(prig_history(rig).id, OTHER) == 0) {
        check_new(rig);
        return true;
    }
    assert_true(prig_has_exactly(rig, 0, OLD));
    assert_string_equal(prig_history(rig).id, old_id);
    return false;
}

static void
remove_file(const struct prig *rig, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    assert_int_equal(unlink(path), 0);
}

static unsigned
count_names(const struct prig *rig)
{
    DIR *dir = opendir(rig->dir);
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count - 2;
}

/* ---- what becomes of memory, and of the disk ----------------------------- */

TEST(adopt_exchanges_the_data_at_once)
{
    struct prig *rig = start_old("yes");
    uint64_t changes;
    uint64_t position;
    uint64_t sequence;

    changes = prig_info(rig).changes;
    keyspace_set_all_positions(rig->ks, 1000000);
    adopt(rig);
    assert_int_equal(rig->reloads, 1);
    assert_true(prig_has_exactly(rig, OLD, OLD + NEW));
    assert_string_equal(prig_history(rig).id, OTHER);
    assert_string_equal(prig_history(rig).past[0].id, "");
    prig_place(rig, &position, &sequence);
    assert_int_equal(position, PLACE);
    assert_int_equal(sequence, 7);
    assert_int_equal(rig->tape_begin, PLACE);
    assert_int_equal(rig->tape_begin_sequence, 7);
    assert_non_null(rig->journal);
    assert_int_equal(prig_released(rig), PLACE); /* so reads go on */
    assert_true(prig_status(rig).holding);
    assert_false(prig_status(rig).faulted);
    assert_int_equal(journal_synced(rig->journal), 0);
    assert_int_equal(keyspace_position(rig->ks, 0), PLACE);
    assert_true(prig_info(rig).changes > changes);
    persist_tick(rig->persist);
    assert_true(prig_info(rig).adopting);
    prig_free(rig);
}

TEST(adopt_makes_a_snapshot_of_the_new_data)
{
    struct prig *rig = start_old("no");

    adopt(rig);
    settle(rig);
    assert_int_equal(prig_info(rig).changes, 0);
    assert_false(prig_exists(rig, ARRIVAL));
    prig_restart(rig);
    check_new(rig);
    assert_int_equal(prig_position(rig), PLACE);
    prig_free(rig);
}

/* Files that are written from the highest place on that may be taken over load
 * at the next start. */
TEST(adopt_of_the_highest_place_leaves_room_for_what_follows)
{
    struct prig *rig = start_old("yes");
    uint64_t position;

    prig_adopt(rig, OLD, NEW, OTHER, GROUP_POSITION_TAKEN_MAX);
    settle(rig);
    position = prig_relay(rig);
    assert_true(position > GROUP_POSITION_TAKEN_MAX);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    prig_save(rig);
    prig_restart(rig);
    check_new(rig);
    assert_int_equal(prig_position(rig), position);
    prig_free(rig);
}

/* Data that was executed in part is at no position of the log: it stays, but no
 * other server may take it for the data there. */
TEST(adopt_of_nothing_gives_the_data_a_history_of_its_own)
{
    struct prig *rig = start_old("yes");
    struct persist_arrival arrival = { .fresh = NULL };
    struct history before = prig_history(rig);
    struct history after;

    prig_place(rig, &arrival.position, &arrival.sequence);
    arrival.position++;
    gate_raise(keyspace_gate(rig->ks), 0);
    persist_adopt(rig->persist, &arrival);
    gate_lower(keyspace_gate(rig->ks), 0);
    after = prig_history(rig);
    assert_true(prig_has_exactly(rig, 0, OLD));
    assert_string_not_equal(after.id, before.id);
    assert_string_equal(after.past[0].id, "");
    assert_int_equal(rig->reloads, 1);
    settle(rig);
    prig_restart(rig);
    assert_true(prig_has_exactly(rig, 0, OLD));
    assert_string_equal(prig_history(rig).id, after.id);
    prig_free(rig);
}

static void
drop(struct prig *rig)
{
    persist_suspend(rig->persist);
    gate_raise(keyspace_gate(rig->ks), 0);
    keyspace_flush_all(rig->ks);
    gate_lower(keyspace_gate(rig->ks), 0);
}

TEST(adopt_may_be_waited_for_and_nothing_is_saved_meanwhile)
{
    const char *const journals[] = { "no", "yes" };
    struct persist_end end = { .save = true };

    for (size_t i = 0; i < 2; i++) {
        struct prig *rig = start_old(journals[i]);
        uint64_t ticket;

        drop(rig);
        ticket = persist_ask(rig->persist, PERSIST_SAVE);
        (void)persist_ask(rig->persist, PERSIST_REWRITE);
        for (int n = 0; n < 10; n++) {
            persist_tick(rig->persist);
        }
        assert_int_equal(persist_outcome(rig->persist, PERSIST_SAVE, ticket),
                         PERSIST_PENDING);
        assert_int_equal(rig->persist->step, STEP_NONE);
        assert_true(prig_stop(rig, &end));
        prig_restart(rig);
        assert_true(prig_has_exactly(rig, 0, OLD));
        prig_free(rig);
    }
}

TEST(adopt_that_is_waited_for_breaks_off_what_copies_the_data)
{
    static const struct {
        const char *journal;
        enum persist_request request;
        enum persist_step step;
    } cases[] = { { "no", PERSIST_SAVE, STEP_SAVE },
                  { "yes", PERSIST_SAVE, STEP_SAVE },
                  { "yes", PERSIST_REWRITE, STEP_PREPARE },
                  { "yes", PERSIST_REWRITE, STEP_BASE } };
    struct persist_end end = { .force = true };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct prig *rig = start_old(cases[i].journal);

        PRIG_WAIT(rig, rig->persist->step == STEP_NONE);
        (void)persist_ask(rig->persist, cases[i].request);
        PRIG_WAIT(rig, rig->persist->step == cases[i].step);
        drop(rig);
        PRIG_WAIT(rig, rig->persist->step == STEP_NONE);
        assert_false(walker_is_running(rig->persist->own.walker));
        assert_true(prig_stop(rig, &end));
        prig_restart(rig);
        assert_true(prig_has_exactly(rig, 0, OLD));
        prig_free(rig);
    }
}

TEST(adopt_begins_a_journal_anew)
{
    struct prig *rig = start_old("yes");
    uint64_t position;

    adopt(rig);
    (void)prig_relay(rig); /* before the snapshot, and after it */
    settle(rig);
    position = prig_relay(rig);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    prig_restart(rig);
    check_new(rig);
    assert_true(rig->persist->load.found.from_journal);
    assert_int_equal(prig_position(rig), position);

    prig_tap(rig, true); /* and it goes on as any other */
    position = prig_relay(rig);
    (void)persist_ask(rig->persist, PERSIST_REWRITE);
    PRIG_WAIT(rig, rig->persist->info.rewrites == 1);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    prig_restart(rig);
    check_new(rig);
    prig_free(rig);
}

/* ---- written while it arrives ------------------------------------------- */

TEST(adopt_of_what_was_received_walks_nowhere)
{
    const char *const journals[] = { "no", "yes" };

    for (size_t i = 0; i < 2; i++) {
        struct prig *rig = start_old(journals[i]);
        uint64_t walks = prig_info(rig).walks;
        unsigned names = count_names(rig);
        struct history other;

        receive(rig);
        PRIG_WAIT(rig, persist_has_adopted(rig->persist));
        other = prig_history(rig);
        assert_true(prig_has_stored(rig, slice_of(other.id), PLACE));
        assert_int_equal(prig_info(rig).walks, walks);
        assert_int_equal(prig_info(rig).changes, 0);
        assert_int_equal(count_names(rig), names);
        prig_restart(rig);
        check_new(rig);
        assert_int_equal(prig_position(rig), PLACE);
        assert_int_equal(rig->persist->load.found.from_journal, i == 1);
        prig_free(rig);
    }
}

/* What a promoted replica is told waits for the disk; what it is asked does
 * not. */
TEST(adopt_holds_what_follows_until_the_disk_has_it)
{
    struct prig *rig = start_old("yes");
    uint64_t position;
    uint64_t end;

    receive(rig);
    prig_renew(rig);
    position = prig_write(rig);
    assert_true(prig_released(rig) < position);
    assert_int_equal(prig_released(rig), PLACE);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    end = prig_position(rig);
    prig_restart(rig);
    assert_true(prig_has_exactly(rig, OLD, OLD + NEW + 1));
    assert_int_equal(prig_position(rig), end);
    assert_string_equal(prig_history(rig).past[0].id, OTHER);
    prig_free(rig);
}

/* What cannot be written while it arrives is held until a walk has copied it.
 */
TEST(adopt_of_what_the_disk_refused_is_held_longer)
{
    struct prig *rig = start_old("yes");
    uint64_t walks = prig_info(rig).walks;
    uint64_t position;

    prig_send(rig, OLD, NEW, OTHER, PLACE);
    file_fail_at(FILE_CALL_WRITE, 2, ENOSPC, true);
    prig_receive(rig);
    prig_take(rig);
    assert_true(persist_has_adopted(rig->persist)); /* as well as it can be */
    assert_true(prig_status(rig).faulted);
    prig_renew(rig);
    position = prig_write(rig);
    PRIG_WAIT(rig, prig_info(rig).save_failures == 1);
    assert_int_equal(prig_released(rig), PLACE);
    (void)file_fail_clear();
    PRIG_WAIT(rig, prig_released(rig) >= position);
    assert_int_equal(prig_info(rig).walks, walks + 2);
    prig_restart(rig);
    assert_true(prig_has_exactly(rig, OLD, OLD + NEW + 1));
    prig_free(rig);
}

/* A file system without hard links. */
TEST(adopt_writes_a_base_where_none_can_be_linked)
{
    struct prig *rig = start_old("yes");
    uint64_t position;

    prig_send(rig, OLD, NEW, OTHER, PLACE);
    file_fail_at(FILE_CALL_LINK, 1, EPERM, true);
    prig_receive(rig);
    prig_take(rig);
    prig_renew(rig);
    position = prig_write(rig);
    PRIG_WAIT(rig, prig_released(rig) >= position);
    assert_true(file_fail_clear());
    assert_true(persist_has_adopted(rig->persist));
    prig_restart(rig);
    assert_true(prig_has_exactly(rig, OLD, OLD + NEW + 1));
    prig_free(rig);
}

TEST(adopt_of_what_was_received_may_be_refused)
{
    struct prig *rig = start_old("yes");
    struct history old = prig_history(rig);
    unsigned names = count_names(rig);

    prig_send(rig, OLD, NEW, OTHER, PLACE);
    prig_receive(rig);
    keyspace_free(rig->arrival.fresh);
    persist_refuse(rig->persist);
    PRIG_WAIT(rig, count_names(rig) == names);
    prig_restart(rig);
    assert_false(check_either(rig, old.id));
    prig_free(rig);
}

TEST(adopt_writes_nothing_where_nothing_is_saved)
{
    struct prig *rig = prig_start("no", "always");

    prig_tap(rig, true);
    adopt(rig);
    settle(rig);
    assert_int_equal(count_names(rig), 2); /* the lock and the secret */
    assert_int_equal(prig_info(rig).walks, 0);
    prig_free(rig);
}

/* Even a server that saves nothing must remove the old snapshot: a start would
 * load it. */
TEST(adopt_replaces_what_is_there_although_nothing_is_saved)
{
    struct prig *rig = start_old("yes");

    remove_file(rig, SNAPSHOT);
    prig_set(rig, "appendonly", "no");
    PRIG_WAIT(rig, !prig_status(rig).on && !prig_status(rig).closing);
    adopt(rig);
    settle(rig);
    assert_false(prig_exists(rig, "journal/" MANIFEST_NAME));
    prig_restart(rig);
    check_new(rig);
    prig_free(rig);
}

TEST(adopt_leaves_nothing_behind_however_often)
{
    struct prig *rig = start_old("yes");
    unsigned names = count_names(rig);

    for (int i = 0; i < 5; i++) {
        prig_adopt(rig, OLD, NEW, i % 2 == 0 ? OTHER : THIRD, PLACE);
        settle(rig);
        assert_int_equal(count_names(rig), names);
    }
    prig_restart(rig);
    check_new(rig);
    assert_int_equal(count_names(rig), names);
    prig_free(rig);
}

/* ---- at any moment ------------------------------------------------------- */

/* Whatever is under way, and at whatever point of it. */
TEST(adopt_may_come_in_the_middle_of_anything)
{
    uint64_t random = test_seed();

    for (unsigned i = 0; i < 24; i++) {
        struct prig *rig = start_old(i % 4 == 0 ? "no" : "yes");
        unsigned ticks = (unsigned)test_random_below(&random, 12);
        uint64_t position;

        if (i % 3 == 0) {
            (void)persist_ask(rig->persist, PERSIST_SAVE);
        } else if (i % 3 == 1) {
            (void)persist_ask(rig->persist, PERSIST_REWRITE);
        } else {
            prig_set(rig, "appendonly", i % 4 == 0 ? "yes" : "no");
        }
        for (unsigned n = 0; n < ticks; n++) {
            persist_tick(rig->persist);
            (void)poll(NULL, 0, (int)test_random_below(&random, 2));
        }
        prig_adopt(rig, 0, OLD, THIRD, 1 << 20);
        ticks = (unsigned)test_random_below(&random, 12);
        for (unsigned n = 0; n < ticks; n++) {
            persist_tick(rig->persist);
            (void)poll(NULL, 0, (int)test_random_below(&random, 2));
        }
        if (i % 5 != 0) {
            adopt(rig);
        } else {
            prig_adopt(rig, OLD, NEW, OTHER, 1 << 21);
        }
        (void)prig_relay(rig);
        settle(rig);
        position = prig_position(rig);
        if (rig->conf.appendonly) {
            PRIG_WAIT(rig, prig_released(rig) >= position);
        } else {
            prig_save(rig);
        }
        prig_restart(rig);
        check_new(rig);
        assert_int_equal(prig_position(rig), position);
        prig_free(rig);
    }
}

/* Begins a snapshot for replicas, of more than a pipe holds. */
static struct prig *
start_sync(void)
{
    struct prig *rig = start_old("no");

    for (int i = 0; i < 20000; i++) {
        (void)prig_relay(rig);
    }
    persist_ask_sync(rig->persist, NULL);
    PRIG_WAIT(rig, rig->syncs_begun == 1);
    return rig;
}

TEST(adopt_that_is_waited_for_ends_a_sync)
{
    struct prig *rig = start_sync();

    drop(rig);
    assert_int_equal(rig->syncs_ended, 1);
    assert_int_equal(rig->sync_error, ECANCELED);
    PRIG_WAIT(rig, rig->persist->step == STEP_NONE);
    prig_free(rig);
}

TEST(adopt_may_follow_a_cancelled_sync)
{
    struct prig *rig = start_sync();
    unsigned written = rig->written;

    persist_cancel_sync(rig->persist);
    assert_int_equal(rig->syncs_ended, 1);
    assert_int_equal(rig->sync_error, ECANCELED);
    adopt(rig); /* the thread may not have ended yet */
    settle(rig);
    prig_restart(rig);
    rig->written = written;
    assert_true(prig_has_exactly(rig, OLD, OLD + NEW));
    prig_free(rig);
}

/* A request is answered by the snapshot that was due anyway, and does not wait
 * for the time to try again. */
TEST(adopt_leaves_saves_as_they_are)
{
    struct prig *rig = start_old("yes");
    uint64_t ticket;

    file_fail_at(FILE_CALL_SYNC, 1, ENOSPC, true);
    adopt(rig);
    PRIG_WAIT(rig, prig_info(rig).save_failures == 1);
    assert_false(prig_info(rig).last_save_ok);
    assert_true(prig_info(rig).adopting);
    assert_true(prig_status(rig).holding);
    assert_true(prig_exists(rig, "journal/base-1")); /* no file is touched */
    for (int i = 0; i < 50; i++) {
        persist_tick(rig->persist);
        assert_false(prig_info(rig).saving || prig_info(rig).rewriting);
    }
    ticket = persist_ask(rig->persist, PERSIST_SAVE);
    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE, ticket) ==
                       PERSIST_FAILED);
    (void)file_fail_clear();
    (void)prig_relay(rig); /* it serves on */
    prig_save(rig);
    assert_true(prig_info(rig).last_save_ok);
    settle(rig);
    prig_restart(rig);
    check_new(rig);
    prig_free(rig);
}

TEST(adopt_is_tried_again)
{
    struct prig *rig = start_old("yes");

    file_fail_at(FILE_CALL_RENAME, 1, EIO, true);
    adopt(rig);
    PRIG_WAIT(rig, prig_info(rig).save_failures == 1);
    (void)file_fail_clear();
    rig->persist->save.retry.not_before_ns = 0; /* some seconds later */
    settle(rig);
    assert_int_equal(prig_info(rig).save_failures, 0);
    prig_restart(rig);
    check_new(rig);
    prig_free(rig);
}

TEST(adopt_may_be_done_by_the_save_at_the_end)
{
    struct prig *rig = start_old("yes");
    struct persist_end end = { .save = true };

    adopt(rig);
    assert_true(prig_stop(rig, &end));
    assert_true(prig_exists(rig, "journal/" MANIFEST_NAME));
    persist_halt(rig->persist);
    prig_close(rig);
    assert_true(prig_open(rig) && prig_load(rig));
    check_new(rig);
    prig_free(rig);
}

TEST(adopt_may_be_done_by_a_reload)
{
    struct prig *rig = start_old("yes");
    uint64_t ticket;

    adopt(rig);
    ticket = persist_ask(rig->persist, PERSIST_RELOAD);
    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_RELOAD, ticket) ==
                       PERSIST_DONE);
    check_new(rig);
    assert_false(rig->persist->adopted.arrived != rig->persist->adopted.stored);
    settle(rig);
    prig_restart(rig);
    check_new(rig);
    prig_free(rig);
}

/* ---- crashes ------------------------------------------------------------- */

static bool
has_failed(const struct prig *rig)
{
    return prig_info(rig).save_failures > 0 ||
           prig_info(rig).rewrite_failures > 0;
}

/* One call fails, or it and all that follow; then kill -9. Once .new has its
 * name, a start finds the new data. */
TEST(adopt_may_be_cut_off_at_every_call)
{
    unsigned cases = 0;

    for (unsigned call = 0; call < FILE_CALL_COUNT; call++) {
        for (unsigned nth = 1, fired = 2; fired > 0 && nth < 40; nth++) {
            fired = 0;
            for (unsigned for_good = 0; for_good < 2; for_good++) {
                struct prig *rig = start_old("yes");
                struct history old = prig_history(rig);
                bool had = false;

                file_fail_at((enum file_call)call, nth, EIO, for_good);
                adopt(rig);
                PRIG_WAIT(rig, (had = had || prig_exists(rig, ARRIVAL),
                                is_settled(rig) || has_failed(rig)));
                /* Of a fault in a child only the failure is known. */
                fired += file_fail_clear() || has_failed(rig);
                prig_restart(rig);
                assert_true(check_either(rig, old.id) || !had);
                assert_false(prig_exists(rig, ARRIVAL));
                prig_restart(rig);
                (void)check_either(rig, old.id);
                prig_free(rig);
                cases++;
            }
        }
    }
    assert_true(cases > 20);
}

/* The same from the first byte that arrives, with a promotion and a write
 * behind it, or without. What was released is there, and what counts as stored.
 * Returns whether a fault had an effect. */
static bool
cut_off(enum file_call call, unsigned nth, bool for_good, bool promoted)
{
    struct prig *rig = start_old("yes");
    struct history old = prig_history(rig);
    uint64_t position = 0;
    bool released;
    bool stored;
    bool fired;

    prig_send(rig, OLD, NEW, OTHER, PLACE);
    file_fail_at(call, nth, EIO, for_good);
    prig_receive(rig);
    prig_take(rig);
    if (promoted) {
        prig_renew(rig);
        position = prig_write(rig);
    }
    PRIG_WAIT(rig, (is_settled(rig) && prig_released(rig) >= position) ||
                       has_failed(rig));
    released = promoted && prig_released(rig) >= position;
    stored = prig_has_stored(rig, slice_of(OTHER), PLACE);
    fired = file_fail_clear();
    prig_restart(rig);
    assert_true(prig_has_exactly(rig, OLD, rig->written) ||
                (!released && prig_has_exactly(rig, OLD, OLD + NEW)) ||
                (!released && !stored && prig_has_exactly(rig, 0, OLD)));
    assert_true(prig_has(rig, OLD) ||
                strcmp(prig_history(rig).id, old.id) == 0);
    assert_false(prig_exists(rig, ARRIVAL));
    assert_false(prig_exists(rig, SNAPSHOT ".arriving"));
    prig_free(rig);
    return fired;
}

TEST(adopt_may_be_cut_off_wherever_and_keeps_what_was_released)
{
    unsigned cases = 0;

    for (unsigned call = 0; call < FILE_CALL_COUNT; call++) {
        for (unsigned how = 0; how < 4; how++) {
            for (unsigned nth = 1;
                 cut_off((enum file_call)call, nth, how % 2 == 1, how >= 2);
                 nth++) {
                cases++;
            }
        }
    }
    assert_true(cases > 60);
}

/* Leaves the files as a killed process does, one step further each time. */
TEST(adopt_is_finished_by_the_next_start)
{
    enum { NOT_NAMED, NAMED, NO_MANIFEST, NO_FILES, RENAMED, STATES };

    for (unsigned stage = 0; stage < STATES; stage++) {
        struct prig *rig = start_old("yes");
        struct history old = prig_history(rig);
        char from[256];
        char to[256];

        /* The snapshot that there will be, from a server of its own. */
        struct prig *other = prig_start("no", "always");

        prig_tap(other, true);
        adopt(other);
        prig_save(other);
        prig_close(rig);
        (void)snprintf(from, sizeof(from), "%s/" SNAPSHOT, other->dir);
        (void)snprintf(to, sizeof(to), "%s/%s", rig->dir,
                       stage == NOT_NAMED ? ARRIVAL ".tmp"
                       : stage == RENAMED ? SNAPSHOT
                                          : ARRIVAL);
        assert_int_equal(rename(from, to), 0);
        prig_free(other);
        if (stage >= NO_MANIFEST) {
            remove_file(rig, "journal/" MANIFEST_NAME);
        }
        if (stage >= NO_FILES) {
            remove_file(rig, "journal/base-1");
            remove_file(rig, "journal/incr-2");
        }
        rig->written = OLD + NEW;
        assert_true(prig_open(rig) && prig_load(rig));
        assert_int_equal(check_either(rig, old.id), stage != NOT_NAMED);
        assert_false(prig_exists(rig, ARRIVAL));
        assert_false(prig_exists(rig, ARRIVAL ".tmp"));
        /* The lock, the secret, the journal and the snapshot. */
        assert_int_equal(count_names(rig), 4);
        prig_restart(rig);
        assert_int_equal(check_either(rig, old.id), stage != NOT_NAMED);
        prig_free(rig);
    }
}

/* The start that finishes may be cut off as well; it never goes back. */
TEST(adopt_may_be_cut_off_while_a_start_finishes_it)
{
    unsigned refused = 0;

    for (unsigned call = 0; call < FILE_CALL_COUNT; call++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct prig *rig = start_old("yes");
            bool good;

            /* A rename that fails for good leaves .new. */
            adopt(rig);
            PRIG_WAIT(rig, rig->persist->step == STEP_SAVE);
            file_fail_at(FILE_CALL_UNLINK, 1, EIO, true);
            PRIG_WAIT(rig, prig_info(rig).save_failures == 1);
            (void)file_fail_clear();
            assert_true(prig_exists(rig, ARRIVAL));
            prig_close(rig);

            file_fail_at((enum file_call)call, nth, EIO, true);
            good = prig_open(rig);
            fired = file_fail_clear();
            refused += !good;
            prig_close(rig);
            assert_true(prig_open(rig) && prig_load(rig));
            check_new(rig);
            assert_false(prig_exists(rig, ARRIVAL));
            prig_free(rig);
        }
    }
    assert_true(refused > 5);
}

/* A file that cannot be a snapshot replaces nothing. */
TEST(adopt_refuses_a_start_with_a_damaged_snapshot)
{
    struct prig *rig = start_old("yes");
    struct history old = prig_history(rig);
    char path[256];
    int fd;

    prig_close(rig);
    (void)snprintf(path, sizeof(path), "%s/" ARRIVAL, rig->dir);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "rubbish", 7), 7);
    close(fd);
    assert_false(prig_open(rig));
    prig_close(rig);
    remove_file(rig, ARRIVAL);
    assert_true(prig_open(rig) && prig_load(rig));
    assert_false(check_either(rig, old.id));
    prig_free(rig);
}
