/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The one state of a path, and paths that have none or several. test_cat.py
 * and test_backup.py compare real snapshots and journals.
 */
#include "check/check_pick.h"

#include "../capture.h"
#include "../home.h"

struct picked {
    struct check check;
    enum check_kind kind;
    char path[CHECK_PATH_MAX];
};

static void
put_dir(const char *dir, const char *name)
{
    char path[CHECK_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(0, mkdir(path, 0700));
}

static bool
pick(struct picked *picked, const char *dir, const char *name)
{
    char path[CHECK_PATH_MAX];

    *picked = (struct picked){ .check = { .tool = { .name = "test" } } };
    (void)snprintf(path, sizeof(path), "%s%s%s", dir,
                   name[0] != '\0' ? "/" : "", name);
    return check_pick_state(&picked->check, path, &picked->kind, picked->path);
}

static void
expect_refused(const char *dir, const char *name, const char *text, int status)
{
    struct picked picked;
    bool good = true;

    EXPECT_PRINTED(STDERR_FILENO, good = pick(&picked, dir, name), text);
    assert_false(good);
    assert_int_equal(status, picked.check.tool.status);
}

static void
expect_picked(const char *dir, const char *name, enum check_kind kind,
              const char *wanted)
{
    struct picked picked;
    char path[CHECK_PATH_MAX];

    assert_true(pick(&picked, dir, name));
    assert_int_equal(kind, picked.kind);
    (void)snprintf(path, sizeof(path), "%s/%s", dir, wanted);
    assert_string_equal(path, picked.path);
    assert_int_equal(0, picked.check.tool.status);
}

TEST(files_are_what_they_are_and_others_are_a_mistake)
{
    char dir[] = "/tmp/check-pick-XXXXXX";

    home_make(dir);
    home_put(dir, "s", "BLMYSNAP");
    home_put(dir, "incr-1", "#BLOOMERY JOURNAL 1");
    home_put(dir, "manifest", "bloomery-journal 1");
    home_put(dir, "other", "text");
    expect_picked(dir, "s", CHECK_KIND_SNAPSHOT, "s");
    expect_picked(dir, "incr-1", CHECK_KIND_INCREMENT, "incr-1");
    expect_refused(dir, "manifest", "its directory may be one", CHECK_USAGE);
    expect_refused(dir, "other", "is no snapshot and no journal", CHECK_USAGE);
    expect_refused(dir, "none", "cannot be opened", CHECK_UNREADABLE);
    home_remove(dir);
}

TEST(a_directory_has_one_state_or_nobody_knows_which)
{
    char dir[] = "/tmp/check-pick-XXXXXX";

    home_make(dir);
    expect_refused(dir, "", "neither a snapshot nor a journal",
                   CHECK_UNREADABLE);
    home_put(dir, "a.snapshot", "BLMYSNAP");
    expect_picked(dir, "", CHECK_KIND_SNAPSHOT, "a.snapshot");
    home_put(dir, "b.snapshot", "BLMYSNAP");
    expect_refused(dir, "", "holds several snapshots", CHECK_USAGE);
    home_remove(dir);
}

TEST(of_damaged_states_nobody_knows_which_is_newer)
{
    char dir[] = "/tmp/check-pick-XXXXXX";

    home_make(dir);
    put_dir(dir, "log");
    home_put(dir, "log/base-1", "");
    expect_picked(dir, "", CHECK_KIND_JOURNAL, "log");
    home_put(dir, "a.snapshot", "BLMYSNAP");
    home_put(dir, "log/manifest", "damaged");
    expect_refused(dir, "", "/log: nobody knows how new it is", CHECK_USAGE);
    home_remove(dir);
}
