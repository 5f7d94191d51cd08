/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a path is, what a data directory holds, and files that the disk cuts.
 */
#include "check/check_file.h"

#include "../capture.h"
#include "../home.h"
#include "base/file.h"

#include <fcntl.h>

struct home {
    char dir[64];
    struct check check;
};

static void
home_open(struct home *home)
{
    *home = (struct home){ .dir = "/tmp/check-file-XXXXXX",
                           .check = { .tool = { .name = "test" } } };
    home_make(home->dir);
}

static const char *
path_of(const struct home *home, const char *name, char path[CHECK_PATH_MAX])
{
    (void)snprintf(path, CHECK_PATH_MAX, "%s/%s", home->dir, name);
    return path;
}

static void
put_dir(const struct home *home, const char *name)
{
    char path[CHECK_PATH_MAX];

    assert_int_equal(0, mkdir(path_of(home, name, path), 0700));
}

/* Expects that a call fails with this message, and raises the status. */
#define EXPECT_REFUSED(home, call, text, wanted)                               \
    do {                                                                       \
        bool refused_ = true;                                                  \
                                                                               \
        (home)->check.tool.status = 0;                                         \
        EXPECT_PRINTED(STDERR_FILENO, refused_ = !(call), text);               \
        assert_true(refused_);                                                 \
        assert_int_equal((wanted), (home)->check.tool.status);                 \
    } while (0)

TEST(the_first_bytes_decide_and_then_the_name)
{
    static const struct {
        const char *name, *bytes;
        enum check_kind kind;
    } rows[] = {
        { "a", "BLMYSNAP and more", CHECK_KIND_SNAPSHOT },
        { "b", "#BLOOMERY JOURNAL 1", CHECK_KIND_INCREMENT },
        { "c", "bloomery-journal 1", CHECK_KIND_MANIFEST },
        { "incr-1", "BLMYSNAP", CHECK_KIND_SNAPSHOT },
        { "d", "BLMYSNA", CHECK_KIND_UNKNOWN },
        { "e", "", CHECK_KIND_UNKNOWN },
        { "incr-2", "damaged", CHECK_KIND_INCREMENT },
        { "base-3", "", CHECK_KIND_SNAPSHOT },
        { "x.snapshot", "damaged", CHECK_KIND_SNAPSHOT },
        { "manifest", "damaged", CHECK_KIND_MANIFEST },
        { "snapshot", "damaged", CHECK_KIND_UNKNOWN },
    };
    struct home home;
    char path[CHECK_PATH_MAX];

    home_open(&home);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum check_kind kind = CHECK_KIND_DATA;

        home_put(home.dir, rows[i].name, rows[i].bytes);
        assert_true(check_file_kind(&home.check,
                                    path_of(&home, rows[i].name, path), &kind));
        assert_int_equal(rows[i].kind, kind);
    }
    home_remove(home.dir);
}

TEST(a_directory_with_a_file_of_a_journal_is_one)
{
    struct home home;
    char path[CHECK_PATH_MAX];
    enum check_kind kind;

    home_open(&home);
    assert_true(check_file_kind(&home.check, home.dir, &kind));
    assert_int_equal(CHECK_KIND_DATA, kind);
    home_put(home.dir, "base-1", "");
    assert_true(check_file_kind(&home.check, home.dir, &kind));
    assert_int_equal(CHECK_KIND_JOURNAL, kind);
    EXPECT_REFUSED(
        &home,
        check_file_kind(&home.check, path_of(&home, "none", path), &kind),
        "none: cannot be opened: No such file", CHECK_UNREADABLE);
    assert_int_equal(0, mkfifo(path_of(&home, "pipe", path), 0600));
    EXPECT_REFUSED(&home, check_file_kind(&home.check, path, &kind),
                   "is neither a file nor a directory", CHECK_UNREADABLE);
    home_remove(home.dir);
}

TEST(a_data_directory_lists_its_snapshots_and_one_journal)
{
    struct home home;
    struct check_data data;

    home_open(&home);
    EXPECT_REFUSED(&home, check_file_list(&home.check, home.dir, &data),
                   "holds neither a snapshot nor a journal", CHECK_UNREADABLE);
    home_put(home.dir, ".hidden.snapshot", "");
    home_put(home.dir, "x.snapshot.tmp", "BLMYSNAP");
    home_put(home.dir, "old.stale-1", "BLMYSNAP");
    home_put(home.dir, "notes", "nothing");
    EXPECT_REFUSED(&home, check_file_list(&home.check, home.dir, &data),
                   "holds neither", CHECK_UNREADABLE);
    home_put(home.dir, "a.snapshot", "");
    put_dir(&home, "log");
    home_put(home.dir, "log/incr-1", "");
    assert_true(check_file_list(&home.check, home.dir, &data));
    assert_int_equal(1, data.count);
    assert_string_equal("a.snapshot", data.snapshots[0]);
    assert_string_equal("log", data.journal);
    put_dir(&home, "log2");
    home_put(home.dir, "log2/incr-1", "");
    EXPECT_REFUSED(&home, check_file_list(&home.check, home.dir, &data),
                   "holds two journals", CHECK_USAGE);
    home_remove(home.dir);
}

TEST(more_snapshots_than_fit_are_a_mistake)
{
    struct home home;
    struct check_data data;
    char name[32];

    home_open(&home);
    for (unsigned i = 0; i < CHECK_SNAPSHOTS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "%u.snapshot", i);
        home_put(home.dir, name, "");
    }
    assert_true(check_file_list(&home.check, home.dir, &data));
    assert_int_equal(CHECK_SNAPSHOTS_MAX, data.count);
    home_put(home.dir, "more.snapshot", "");
    EXPECT_REFUSED(&home, check_file_list(&home.check, home.dir, &data),
                   "holds too many snapshots", CHECK_USAGE);
    home_remove(home.dir);
}

TEST(paths_are_joined_up_to_their_limit)
{
    struct check check = { .tool = { .name = "test" } };
    char path[CHECK_PATH_MAX];
    char name[CHECK_PATH_MAX];

    assert_true(check_file_join(&check, "a//", "b", path));
    assert_string_equal("a/b", path);
    assert_true(check_file_join(&check, "/", "b", path));
    assert_string_equal("//b", path);
    assert_string_equal("c", check_file_name("a/b/c"));
    assert_string_equal("c", check_file_name("c"));
    assert_string_equal("", check_file_name("a/"));
    memset(name, 'x', sizeof(name));
    name[CHECK_PATH_MAX - 3] = '\0'; /* "a/" and the end fit */
    assert_true(check_file_join(&check, "a", name, path));
    assert_int_equal(CHECK_PATH_MAX - 1, strlen(path));
    name[CHECK_PATH_MAX - 3] = 'x';
    name[CHECK_PATH_MAX - 2] = '\0';
    EXPECT_PRINTED(STDERR_FILENO,
                   (void)check_file_join(&check, "a", name, path),
                   "the path is too long");
    assert_int_equal(CHECK_USAGE, check.tool.status);
}

static unsigned
sum_bytes(struct slice bytes)
{
    unsigned sum = 0;

    for (size_t i = 0; i < bytes.len; i++) {
        sum += (unsigned char)bytes.data[i];
    }
    return sum;
}

TEST(a_page_that_cannot_be_read_counts_as_zeros)
{
    struct home home;
    struct check_map map;
    char path[CHECK_PATH_MAX];
    unsigned sum = 1;
    int fd = -1;

    home_open(&home);
    home_put(home.dir, "x", "abc");
    assert_true(check_file_open(&home.check, path_of(&home, "x", path), &fd));
    assert_true(check_file_map(&home.check, fd, 3, path, &map));
    assert_int_equal('a' + 'b' + 'c', sum_bytes(map.bytes));
    assert_false(check_file_failed());
    assert_int_equal(0, truncate(path, 0));
    EXPECT_PRINTED(STDERR_FILENO, sum = sum_bytes(map.bytes),
                   "/x: cannot be read at offset 0: I/O error, or the file "
                   "was cut meanwhile\n");
    assert_int_equal(0, sum);
    assert_true(check_file_failed());
    check_file_unmap(&map);
    assert_null(map.bytes.data);
    file_close(fd);
    EXPECT_REFUSED(
        &home, check_file_open(&home.check, path_of(&home, "none", path), &fd),
        "cannot be opened", CHECK_UNREADABLE);
    home_remove(home.dir);
}
