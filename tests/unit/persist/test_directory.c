/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which server may use a directory, under which names, and which files are
 * removed.
 */
#include "persist_rig.h"

#include <fcntl.h>

TEST(directory_keeps_a_second_server_out)
{
    struct prig *rig = prig_start("no", "always");
    struct prig second = *rig;

    second.persist = NULL;
    assert_false(prig_open(&second));
    prig_close(&second);
    prig_close(rig);
    assert_true(prig_open(rig));
    prig_free(rig);
}

TEST(directory_has_to_be_there)
{
    struct prig *rig = prig_new("no", "always");

    prig_set(rig, "dir", "/nonexistent/bloomery");
    assert_false(prig_open(rig));
    prig_free(rig);
}

/* Not even root may make a file in /sys. */
TEST(directory_need_not_be_one_to_write_to)
{
    struct prig *rig = prig_new("no", "always");

    prig_set(rig, "dir", "/sys");
    assert_true(prig_open(rig));
    assert_true(prig_load(rig));
    prig_close(rig);
    prig_set(rig, "save", "1 1");
    assert_false(prig_open(rig));
    prig_free(rig);
}

TEST(directory_wants_names_that_differ)
{
    static const char *const names[][2] = {
        { "x", "x" },           { "lock", "j" },
        { "s", "lock" },        { "hash-secret", "j" },
        { "s", "hash-secret" }, { "s.tmp", "j" },
        { "s", "s.tmp" },       { "s", "s.new" },
        { "s", "s.new.tmp" },   { "slots.state", "j" },
        { "s", "slots.state" }, { "replication.state", "j" }
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct prig *rig = prig_new("no", "no");

        prig_set(rig, "dbfilename", names[i][0]);
        prig_set(rig, "appenddirname", names[i][1]);
        assert_false(prig_open(rig));
        prig_free(rig);
    }
}

TEST(directory_is_cleared_of_what_was_not_finished)
{
    static const char *const names[] = { "bloomery.snapshot.tmp",
                                         "bloomery.snapshot.new.tmp" };
    struct prig *rig = prig_start("no", "no");
    char path[256];

    prig_close(rig);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, names[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
        assert_true(prig_exists(rig, names[i]));
    }
    assert_true(prig_open(rig) && prig_load(rig));
    for (size_t i = 0; i < 2; i++) {
        assert_false(prig_exists(rig, names[i]));
    }
    prig_free(rig);
}

static void
remove_at(const struct prig *rig, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    assert_int_equal(unlink(path), 0);
}

static void
leave(const struct prig *rig, const char *name)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fclose(file);
}

/* Whether or not there is a journal, and will be one. */
TEST(directory_is_tidy_after_a_kill)
{
    static const char *const left[] = {
        "bloomery.snapshot.tmp",
        "bloomery.snapshot.new.tmp",
        "bloomery.snapshot.arriving",
        "replication.state.tmp",
        "slots.state.tmp",
        "journal/base-3.tmp",
        "journal/manifest.tmp",
        "journal/base-7",
        "journal/incr-7",
    };

    for (int how = 0; how < 4; how++) {
        struct prig *rig = prig_start("yes", "always");

        (void)prig_write_released(rig);
        if (how % 2 == 1) { /* as a kill in the first base leaves it */
            prig_save(rig);
            prig_close(rig);
            leave(rig, "journal/" MANIFEST_MARK_NAME);
            remove_at(rig, "journal/" MANIFEST_NAME);
        } else {
            prig_close(rig);
        }
        for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
            leave(rig, left[i]);
        }
        prig_set(rig, "appendonly", how < 2 ? "no" : "yes");
        assert_true(prig_open(rig) && prig_load(rig));
        prig_check_all(rig);
        for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
            assert_false(prig_exists(rig, left[i]));
        }
        prig_free(rig);
    }
}
