/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal's files: what a rewrite and a start leave, and that no fault on
 * the way costs anything that was released.
 */
#include "persist_rig.h"

#include <dirent.h>
#include <sys/stat.h>

static uint64_t
rewrites_of(const struct prig *rig)
{
    return rig->persist->info.rewrites;
}

static void
count_files(const struct prig *rig, unsigned *ret_bases,
            unsigned *ret_increments, unsigned *ret_others)
{
    char path[256];

    *ret_bases = *ret_increments = *ret_others = 0;
    (void)snprintf(path, sizeof(path), "%s/journal", rig->dir);
    DIR *dir = opendir(path);
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "base-", 5) == 0) {
            (*ret_bases)++;
        } else if (strncmp(entry->d_name, "incr-", 5) == 0) {
            (*ret_increments)++;
        } else if (entry->d_name[0] != '.' &&
                   strcmp(entry->d_name, MANIFEST_NAME) != 0) {
            (*ret_others)++;
        }
    }
    (void)closedir(dir);
}

TEST(rewrite_leaves_one_base_and_one_increment)
{
    struct prig *rig = prig_start("yes", "always");
    unsigned bases;
    unsigned increments;
    unsigned others;

    for (unsigned i = 1; i <= 3; i++) {
        (void)prig_write_released(rig);
        prig_restart(rig);
        (void)prig_write_released(rig);
        (void)persist_ask(rig->persist, PERSIST_REWRITE);
        PRIG_WAIT(rig, rewrites_of(rig) == 1);
        (void)prig_write_released(rig);
        count_files(rig, &bases, &increments, &others);
        assert_int_equal(bases, 1);
        assert_int_equal(increments, 1);
        assert_int_equal(others, 0);
        prig_restart_all(rig);
    }
    prig_free(rig);
}

TEST(rewrite_goes_on_while_clients_write)
{
    enum { WRITES_MAX = 20000 };
    struct prig *rig = prig_start("yes", "everysec");

    for (unsigned i = 1; i <= 5; i++) {
        (void)persist_ask(rig->persist, PERSIST_REWRITE);
        for (unsigned n = 0; n < WRITES_MAX && rewrites_of(rig) < i; n++) {
            (void)prig_write(rig);
            persist_tick(rig->persist);
        }
        PRIG_WAIT(rig, rewrites_of(rig) >= i);
    }
    (void)prig_write_released(rig);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(rewrite_happens_by_itself_when_the_journal_has_grown)
{
    struct prig *rig = prig_start("yes", "no");

    prig_set(rig, "auto-aof-rewrite-min-size", "20kb");
    for (int i = 0; i < 1000; i++) {
        (void)prig_write(rig);
    }
    PRIG_WAIT(rig, rewrites_of(rig) == 1);
    assert_int_equal(
        atomic_load(&rig->persist->requests[PERSIST_REWRITE].asked), 0);
    prig_free(rig);
}

/* The first line of a new increment is more than so few percents. */
TEST(an_idle_server_does_not_rewrite_again)
{
    struct prig *rig = prig_start("yes", "no");

    (void)prig_write_released(rig);
    prig_set(rig, "auto-aof-rewrite-percentage", "1");
    prig_set(rig, "auto-aof-rewrite-min-size", "1");
    PRIG_WAIT(rig, rewrites_of(rig) == 1 && !rig->persist->info.rewriting);
    for (int i = 0; i < 100; i++) {
        persist_tick(rig->persist);
        assert_false(rig->persist->info.rewriting);
    }
    (void)prig_write_released(rig);
    PRIG_WAIT(rig, rewrites_of(rig) == 2);
    prig_free(rig);
}

/* The N-th call of each kind fails, once: then all that was released is there
 * after a restart, and a later rewrite succeeds. */
TEST(rewrite_survives_a_fault_at_every_call)
{
    for (unsigned call = 0; call < FILE_CALL_COUNT; call++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct prig *rig = prig_start("yes", "always");

            (void)prig_write_released(rig);
            file_fail_at((enum file_call)call, nth, EIO, false);
            (void)persist_ask(rig->persist, PERSIST_REWRITE);
            for (int i = 0; i < 3; i++) {
                (void)prig_write_released(rig);
            }
            PRIG_WAIT(rig, rig->persist->step == STEP_NONE);
            fired = file_fail_clear();
            prig_restart_all(rig);
            (void)prig_write_released(rig);
            (void)persist_ask(rig->persist, PERSIST_REWRITE);
            PRIG_WAIT(rig, rewrites_of(rig) == 1);
            prig_restart_all(rig);
            prig_free(rig);
        }
    }
}

static bool
rewrite_fails(struct prig *rig)
{
    uint64_t ticket = persist_ask(rig->persist, PERSIST_REWRITE);

    rig->persist->rewrite_retry.not_before_ns = 0;
    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_REWRITE, ticket) !=
                       PERSIST_PENDING);
    return persist_outcome(rig->persist, PERSIST_REWRITE, ticket) ==
           PERSIST_FAILED;
}

/* Puts a directory in the place where a base is begun, or removes it. */
static void
block_base(const struct prig *rig, uint64_t number, bool blocks)
{
    char name[MANIFEST_FILE_NAME_MAX];
    char path[256];

    manifest_base_name(number, name);
    (void)snprintf(path, sizeof(path), "%s/journal/%s.tmp", rig->dir, name);
    assert_int_equal(blocks ? mkdir(path, 0700) : rmdir(path), 0);
}

TEST(rewrite_that_fails_again_and_again_does_not_fill_the_manifest)
{
    struct prig *rig = prig_start("yes", "always");
    unsigned bases;
    unsigned increments;
    unsigned others;

    (void)prig_write_released(rig);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t number = rig->persist->files.next_number;

        block_base(rig, number, true);
        assert_true(rewrite_fails(rig));
        block_base(rig, number, false);
        (void)prig_write_released(rig);
        assert_int_equal(rig->persist->files.manifest.count, 2);
        if (i == 2) {
            prig_restart_all(rig); /* keeps what it finds, and adds one */
            assert_int_equal(rig->persist->files.manifest.count, 3);
            (void)persist_ask(rig->persist, PERSIST_REWRITE);
            PRIG_WAIT(rig, rewrites_of(rig) == 1);
        }
    }
    assert_false(rewrite_fails(rig));
    (void)prig_write_released(rig);
    count_files(rig, &bases, &increments, &others);
    assert_int_equal(bases, 1);
    assert_int_equal(increments, 1);
    assert_int_equal(others, 0);
    prig_restart_all(rig);
    prig_free(rig);
}

TEST(rewrite_that_finds_the_manifest_full_tells_the_client_that_asked)
{
    struct prig *rig = prig_start("yes", "always");
    uint32_t count = rig->persist->files.manifest.count;

    rig->persist->files.manifest.count = MANIFEST_INCREMENTS_MAX;
    assert_true(rewrite_fails(rig));
    rig->persist->files.manifest.count = count;
    assert_false(rewrite_fails(rig));
    prig_free(rig);
}

TEST(rewrite_makes_the_first_base_of_the_snapshot)
{
    struct prig *rig = prig_start("no", "always");

    (void)prig_write(rig);
    prig_save(rig);
    prig_set(rig, "appendonly", "yes");
    prig_restart_all(rig);
    (void)prig_write_released(rig);
    prig_restart_all(rig);
    assert_true(rig->persist->load.found.from_journal);
    prig_free(rig);
}

TEST(rewrite_sets_a_journal_aside_that_is_older_than_the_snapshot)
{
    struct prig *rig = prig_start("yes", "always");

    (void)prig_write_released(rig);
    prig_set(rig, "appendonly", "no");
    PRIG_WAIT(rig, rig->journal == NULL && !prig_status(rig).closing);
    (void)prig_write(rig);
    prig_save(rig);
    prig_restart_all(rig);
    assert_false(prig_exists(rig, "journal"));
    prig_set(rig, "appendonly", "yes");
    prig_restart_all(rig);
    (void)prig_write_released(rig);
    prig_restart_all(rig);
    assert_true(rig->persist->load.found.from_journal);
    prig_free(rig);
}

/* Only a new base can name its history. */
TEST(rewrite_is_asked_for_if_the_base_has_no_id)
{
    struct prig *rig = prig_start("no", "no");

    (void)prig_write(rig);
    memset(rig->persist->log.history.id, '0', HISTORY_ID_CHARS);
    prig_save(rig);
    prig_set(rig, "appendonly", "yes");
    prig_restart(rig);
    PRIG_WAIT(rig, rewrites_of(rig) == 1);
    prig_restart_all(rig);
    assert_false(rig->persist->load.found.without_id);
    PRIG_WAIT(rig, rig->persist->step == STEP_NONE);
    assert_int_equal(rewrites_of(rig), 0);
    prig_free(rig);
}

/* Every start adds an increment; before there are too many, a base is due. */
TEST(rewrite_is_asked_for_after_many_starts)
{
    struct prig *rig = prig_start("yes", "no");

    for (int i = 0; i < 70; i++) {
        prig_restart(rig);
        if (rig->persist->step != STEP_NONE) {
            break;
        }
    }
    PRIG_WAIT(rig, rewrites_of(rig) == 1);
    assert_int_equal(rig->persist->files.manifest.count, 1);
    prig_free(rig);
}

TEST(rewrite_refuses_a_start_that_cannot_journal)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };

    for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct prig *rig = prig_start("yes", "always");
            bool loaded;

            (void)prig_write_released(rig);
            prig_close(rig);
            assert_true(prig_open(rig));
            file_fail_at(calls[c], nth, EIO, false);
            loaded = prig_load(rig);
            fired = file_fail_clear();
            /* That a figure for INFO cannot be read is no reason. */
            assert_true(loaded == !fired || calls[c] == FILE_CALL_OPEN);
            prig_restart_all(rig);
            prig_free(rig);
        }
    }
}

/* The snapshot may have been copied there without a sync. */
TEST(rewrite_syncs_what_the_journal_begins_with)
{
    bool fired = true;
    unsigned syncs = 0;

    for (unsigned nth = 1; fired; nth++) {
        struct prig *rig = prig_start("no", "always");
        bool loaded;

        (void)prig_write(rig);
        prig_save(rig);
        prig_close(rig);
        prig_set(rig, "appendonly", "yes");
        assert_true(prig_open(rig));
        file_fail_at(FILE_CALL_SYNC, nth, EIO, false);
        loaded = prig_load(rig);
        fired = file_fail_clear();
        assert_int_equal(loaded, !fired);
        syncs += fired;
        prig_free(rig);
    }
    /* The parent's directory, the mark and its name, the base and its name, the
     * increment and its name, the manifest and its name. */
    assert_int_equal(syncs, 9);
}

TEST(rewrite_leaves_a_journal_that_lost_its_manifest_to_the_operator)
{
    struct prig *rig = prig_start("yes", "always");
    char path[256];

    (void)prig_write_released(rig);
    assert_false(prig_exists(rig, "journal/" MANIFEST_MARK_NAME));
    prig_close(rig);
    (void)snprintf(path, sizeof(path), "%s/journal/" MANIFEST_NAME, rig->dir);
    assert_int_equal(unlink(path), 0);
    assert_true(prig_open(rig));
    assert_false(prig_load(rig));
    assert_true(prig_exists(rig, "journal/incr-2"));
    prig_free(rig);
}

/* Killed at any moment while a first journal is built, at a start or at run
 * time, after one call has failed or while all do: the next start loads without
 * it, and removes its files. */
TEST(rewrite_that_never_came_to_a_manifest_begins_anew)
{
    for (unsigned run = 0; run < 4 * FILE_CALL_COUNT; run++) {
        enum file_call call = (enum file_call)(run / 4);
        bool at_start = run % 2 == 0;
        bool for_good = run % 4 < 2;
        bool fired = true;

        for (unsigned nth = 1; fired && nth < 100; nth++) {
            struct prig *rig = prig_new(at_start ? "yes" : "no", "always");

            assert_true(prig_open(rig));
            file_fail_at(call, nth, EIO, for_good);
            if (prig_load(rig)) {
                (void)prig_write(rig);
                prig_set(rig, "appendonly", "yes");
                for (int i = 0;
                     i < 30 && rewrites_of(rig) == 0 &&
                     (for_good || !prig_exists(rig, "journal/incr-1"));
                     i++) {
                    persist_tick(rig->persist);
                    (void)poll(NULL, 0, 1);
                }
            }
            fired = file_fail_clear();
            prig_set(rig, "appendonly", "yes");
            prig_restart(rig);
            assert_false(prig_exists(rig, "journal/" MANIFEST_MARK_NAME));
            assert_true(prig_exists(rig, "journal/" MANIFEST_NAME));
            prig_free(rig);
        }
    }
}

/* Killed between the new base and the new manifest, over an old journal that
 * the snapshot has overtaken: its manifest must still name its own files. */
TEST(rewrite_over_a_stale_journal_may_fail_at_any_call)
{
    for (unsigned call = 0; call < FILE_CALL_COUNT; call++) {
        bool fired = true;

        for (unsigned nth = 1; fired && nth < 100; nth++) {
            struct prig *rig = prig_start("yes", "always");
            uint64_t ticket;

            (void)prig_write_released(rig);
            prig_set(rig, "appendonly", "no");
            PRIG_WAIT(rig, rig->journal == NULL && !prig_status(rig).closing);
            (void)prig_write(rig);
            ticket = persist_ask(rig->persist, PERSIST_SAVE);
            PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE,
                                           ticket) == PERSIST_DONE);
            prig_restart(rig);
            file_fail_at((enum file_call)call, nth, EIO, true);
            prig_set(rig, "appendonly", "yes");
            for (int i = 0; i < 50 && rewrites_of(rig) == 0; i++) {
                persist_tick(rig->persist);
                (void)poll(NULL, 0, 1);
            }
            fired = file_fail_clear();
            prig_restart(rig); /* as it was left */
            prig_check_all(rig);
            prig_free(rig);
        }
    }
}

/* Retries after failures in every place: a start can read what is stored. */
TEST(rewrite_stores_manifests_that_can_be_read)
{
    struct prig *rig = prig_start("yes", "always");
    uint64_t random = test_seed();

    for (unsigned i = 0; i < 40; i++) {
        file_fail_at(
            (enum file_call)test_random_below(&random, FILE_CALL_COUNT),
            1 + (unsigned)test_random_below(&random, 6), EIO, false);
        rig->persist->rewrite_retry.not_before_ns = 0;
        (void)persist_ask(rig->persist, PERSIST_REWRITE);
        for (unsigned n = 0; n < 20; n++) {
            (void)prig_write(rig);
            persist_tick(rig->persist);
        }
        if (i % 8 == 7) {
            (void)file_fail_clear();
            PRIG_WAIT(rig,
                      prig_released(rig) >= journal_position(rig->journal));
            prig_restart_all(rig);
        }
    }
    (void)file_fail_clear();
    prig_free(rig);
}
