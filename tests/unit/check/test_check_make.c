/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that a command makes: new ones only, all of them or none.
 */
#include "check/check_make.h"

#include "../capture.h"
#include "../home.h"
#include "base/file.h"
#include "base/mem.h"
#include "journal/group.h"

#include <fcntl.h>

struct home {
    char dir[64];
    char path[CHECK_PATH_MAX]; /* of the last name */
    struct check check;
    struct check_made made;
};

static void
home_open(struct home *home)
{
    *home = (struct home){ .dir = "/tmp/check-make-XXXXXX",
                           .check = { .tool = { .name = "test" } },
                           .made = { .check = &home->check } };
    home_make(home->dir);
}

static void
home_close(struct home *home)
{
    for (size_t i = 0; i < home->made.count; i++) {
        mem_free(home->made.paths[i]);
    }
    mem_free(home->made.paths);
    home_remove(home->dir);
}

static const char *
at(struct home *home, const char *name)
{
    (void)snprintf(home->path, sizeof(home->path), "%s/%s", home->dir, name);
    return home->path;
}

TEST(texts_are_new_files_for_their_owner_alone)
{
    struct home home;
    struct stat status;
    bool good = true;

    home_open(&home);
    assert_true(check_make_text(&home.made, at(&home, "x"), slice_lit("abc")));
    home_expect(home.dir, "x", "abc");
    assert_int_equal(0, stat(home.path, &status));
    assert_int_equal(0600, status.st_mode & 07777);
    EXPECT_PRINTED(
        STDERR_FILENO,
        good = check_make_text(&home.made, home.path, slice_lit("other")),
        "x: exists already; nothing was written");
    assert_false(good);
    assert_int_equal(CHECK_USAGE, home.check.tool.status);
    home_expect(home.dir, "x", "abc");
    EXPECT_PRINTED(STDERR_FILENO,
                   good = check_make_dir(&home.made, at(&home, "no/dir")),
                   "cannot be made: No such file");
    assert_false(good);
    assert_int_equal(CHECK_UNREADABLE, home.check.tool.status);
    home_close(&home);
}

TEST(links_are_made_where_they_can_be_and_copies_elsewhere)
{
    struct home home;
    struct stat first, link, copy;
    int fd = -1;

    home_open(&home);
    assert_true(check_make_text(&home.made, at(&home, "x"), slice_lit("abc")));
    assert_int_equal(0, stat(home.path, &first));
    assert_int_equal(0, file_open(AT_FDCWD, home.path, &fd));
    assert_true(check_make_link(&home.made, fd, "x", at(&home, "link")));
    assert_int_equal(0, stat(home.path, &link));
    assert_int_equal(first.st_ino, link.st_ino);
    home.made.copies = true;
    assert_true(check_make_link(&home.made, fd, "x", at(&home, "copy")));
    assert_int_equal(0, stat(home.path, &copy));
    assert_int_not_equal(first.st_ino, copy.st_ino);
    assert_true(check_make_copy(&home.made, fd, 2, "x", at(&home, "part")));
    file_close(fd);
    home_expect(home.dir, "copy", "abc");
    home_expect(home.dir, "part", "ab");
    home_close(&home);
}

TEST(more_bytes_than_a_file_has_cannot_be_copied)
{
    struct home home;
    bool good = true;
    int fd = -1;

    home_open(&home);
    assert_true(check_make_text(&home.made, at(&home, "x"), slice_lit("abc")));
    assert_int_equal(0, file_open(AT_FDCWD, home.path, &fd));
    EXPECT_PRINTED(
        STDERR_FILENO,
        good = check_make_copy(&home.made, fd, 4, "/from", at(&home, "y")),
        "/from: cannot be copied to ");
    assert_false(good);
    assert_int_equal(CHECK_UNREADABLE, home.check.tool.status);
    file_close(fd);
    home_close(&home);
}

TEST(a_manifest_has_numbers_within_bounds)
{
    struct home home;
    struct manifest manifest = { .generation = GROUP_NUMBER_LIMIT };
    bool good = true;

    home_open(&home);
    EXPECT_PRINTED(STDERR_FILENO,
                   good = check_make_manifest(&home.made, home.dir, &manifest),
                   "the journal's numbers are beyond all bounds");
    assert_false(good);
    assert_int_equal(CHECK_DAMAGED, home.check.tool.status);
    manifest.generation = 1;
    manifest.position = GROUP_POSITION_LIMIT;
    EXPECT_PRINTED(STDERR_FILENO,
                   good = check_make_manifest(&home.made, home.dir, &manifest),
                   "beyond all bounds");
    assert_false(good);
    assert_int_equal(-1, access(at(&home, MANIFEST_NAME), F_OK));
    home_close(&home);
}

/* ---- a whole command ----------------------------------------------------- */

struct command {
    struct check_made *made;
    bool good;
};

static bool
make_snapshot(void *ctx, const char *path, const char *out)
{
    const struct command *command = ctx;

    (void)path;
    return check_make_text(command->made, out, slice_lit("new")) &&
           command->good;
}

static bool
make_journal(void *ctx, const char *path, const char *out,
             const struct check_data *data)
{
    (void)ctx;
    (void)path;
    (void)out;
    (void)data;
    return true;
}

static bool
make_all(struct home *home, bool good)
{
    struct command command = { &home->made, good };
    const struct check_maker maker = { .snapshot = make_snapshot,
                                       .journal = make_journal,
                                       .refusal = "is refused",
                                       .ctx = &command };
    char from[CHECK_PATH_MAX];
    bool made;

    (void)snprintf(from, sizeof(from), "%s/from", home->dir);
    made = check_make_all(&home->made, from, at(home, "out"), &maker);
    home->made = (struct check_made){ .check = &home->check };
    return made;
}

TEST(a_failure_removes_everything_that_was_made)
{
    struct home home;
    char snapshot[CHECK_PATH_MAX];
    bool good = true;

    home_open(&home);
    assert_int_equal(0, mkdir(at(&home, "from"), 0700));
    assert_true(
        check_file_join(&home.check, home.path, "a.snapshot", snapshot));
    assert_true(check_make_text(&home.made, snapshot, slice_lit("BLMYSNAP")));
    mem_free(home.made.paths[0]);
    mem_free(home.made.paths);
    home.made = (struct check_made){ .check = &home.check };
    assert_false(make_all(&home, false));
    assert_int_equal(-1, access(at(&home, "out"), F_OK));
    assert_true(make_all(&home, true));
    home_expect(home.dir, "out/a.snapshot", "new");
    EXPECT_PRINTED(STDERR_FILENO, good = make_all(&home, true),
                   "out: exists already; nothing was written");
    assert_false(good);
    home_expect(home.dir, "out/a.snapshot", "new");
    home_close(&home);
}

TEST(a_path_of_another_kind_is_refused)
{
    struct home home;
    bool good = true;

    home_open(&home);
    assert_true(check_make_text(&home.made, at(&home, "from"), slice_lit("?")));
    mem_free(home.made.paths[0]);
    mem_free(home.made.paths);
    home.made = (struct check_made){ .check = &home.check };
    EXPECT_PRINTED(STDERR_FILENO, good = make_all(&home, true), "is refused");
    assert_false(good);
    assert_int_equal(CHECK_USAGE, home.check.tool.status);
    assert_int_equal(-1, access(at(&home, "out"), F_OK));
    home_close(&home);
}
