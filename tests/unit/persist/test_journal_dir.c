/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which files belong to the journal's directory, and which are removed from it.
 */
#include "persist_rig.h"

#include "persist/journal_dir.h"

#include <fcntl.h>

static void
touch(const struct prig *rig, const char *name)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/journal/%s", rig->dir, name);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool
is_there(const struct prig *rig, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "journal/%s", name);
    return prig_exists(rig, path);
}

static const char *const ours[] = { "base-7",     "incr-7",      "base-71",
                                    "incr-7.tmp", "base-71.tmp", "manifest.tmp",
                                    "base-9",     "incr-9" };
static const char *const others[] = { "base-",   "base-x",  "incr-7a",
                                      "incr",    "base7",   "readme",
                                      ".hidden", "incr-7.", "base-7.t",
                                      "tmp" };

enum {
    OURS = sizeof(ours) / sizeof(ours[0]),
    OTHERS = sizeof(others) / sizeof(others[0])
};

static struct prig *
start(void)
{
    struct prig *rig = prig_start("no", "no");

    assert_int_equal(journal_dir_open(rig->persist), 0);
    for (size_t i = 0; i < OURS; i++) {
        touch(rig, ours[i]);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        touch(rig, others[i]);
    }
    return rig;
}

static void
check_others(const struct prig *rig)
{
    for (size_t i = 0; i < OTHERS; i++) {
        if (!is_there(rig, others[i])) {
            fail_msg("%s is gone", others[i]);
        }
    }
}

TEST(journal_dir_keeps_what_a_manifest_names)
{
    struct prig *rig = start();
    struct manifest manifest = { .base_number = 7,
                                 .increments = { { .number = 7 } },
                                 .count = 1 };

    rig->persist->files.doubtful = (struct manifest){
        .base_number = 9, .increments = { { .number = 9 } }, .count = 1
    };
    rig->persist->files.doubt = DOUBT_MANY;
    journal_dir_clean(rig->persist, &manifest);
    for (size_t i = 0; i < OURS; i++) {
        assert_true(is_there(rig, ours[i]));
    }
    rig->persist->files.doubt = DOUBT_ONE;
    journal_dir_clean(rig->persist, &manifest);
    assert_true(is_there(rig, "base-7") && is_there(rig, "incr-7"));
    assert_true(is_there(rig, "base-9") && is_there(rig, "incr-9"));
    for (size_t i = 2; i < 6; i++) {
        assert_false(is_there(rig, ours[i]));
    }
    rig->persist->files.doubt = DOUBT_NONE;
    journal_dir_clean(rig->persist, &manifest);
    assert_true(is_there(rig, "base-7") && is_there(rig, "incr-7"));
    assert_false(is_there(rig, "base-9") || is_there(rig, "incr-9"));
    check_others(rig);
    prig_free(rig);
}

TEST(journal_dir_clears_all_that_is_ours)
{
    struct prig *rig = start();

    (void)unlinkat(rig->persist->journal_fd, MANIFEST_MARK_NAME, 0);
    touch(rig, MANIFEST_NAME);
    file_fail_at(FILE_CALL_SYNC, 2, EIO, false); /* the mark's name */
    assert_int_equal(journal_dir_clear(rig->persist), EIO);
    assert_true(file_fail_clear());
    assert_true(is_there(rig, MANIFEST_NAME));
    file_fail_at(FILE_CALL_UNLINK, 1, EIO, false);
    assert_int_equal(journal_dir_clear(rig->persist), EIO);
    assert_true(file_fail_clear());
    assert_true(is_there(rig, MANIFEST_NAME));
    assert_true(is_there(rig, "base-7"));        /* which it may name */
    file_fail_at(FILE_CALL_SYNC, 3, EIO, false); /* that the manifest went */
    assert_int_equal(journal_dir_clear(rig->persist), EIO);
    assert_true(file_fail_clear());
    assert_true(is_there(rig, "base-7"));
    assert_true(is_there(rig, MANIFEST_MARK_NAME));
    assert_int_equal(journal_dir_clear(rig->persist), 0);
    assert_false(is_there(rig, MANIFEST_NAME));
    for (size_t i = 0; i < OURS; i++) {
        assert_false(is_there(rig, ours[i]));
    }
    check_others(rig);
    assert_int_equal(journal_dir_clear(rig->persist), 0); /* nothing there */
    prig_free(rig);
}

TEST(journal_dir_is_made_when_it_is_needed)
{
    struct prig *rig = prig_start("no", "no");
    struct journal_file file;
    int fd;

    assert_int_equal(journal_dir_clear(rig->persist), 0);
    assert_false(prig_exists(rig, "journal"));
    assert_int_equal(journal_dir_open(rig->persist), 0);
    fd = rig->persist->journal_fd;
    assert_int_equal(journal_dir_open(rig->persist), 0);
    assert_int_equal(rig->persist->journal_fd, fd);
    assert_int_equal(journal_dir_make_increment(rig->persist, 3, &file), 0);
    assert_int_equal(file.number, 3);
    assert_int_equal(journal_dir_bytes(fd, "incr-3"), GROUP_FIRST_LINE_BYTES);
    assert_int_equal(journal_dir_bytes(fd, "incr-4"), 0);
    file_close(file.fd);
    prig_free(rig);
}
