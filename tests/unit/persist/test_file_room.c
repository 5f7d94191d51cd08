/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that can be replaced on a full disk: a full disk is one that reserves
 * nothing any more.
 */
#include "persist/file_room.h"

#include "../home.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM_BYTES = 100 * 1000, BLOCK = 512 };

struct home {
    char path[64];
    int fd;
};

static void
home_open(struct home *home)
{
    (void)snprintf(home->path, sizeof(home->path), "/tmp/file-room-XXXXXX");
    home_make(home->path);
    assert_int_equal(0, file_open_dir(home->path, false, &home->fd));
}

static void
home_close(struct home *home)
{
    file_close(home->fd);
    home_remove(home->path);
}

static int
put(const struct home *home, const char *text)
{
    return file_room_replace(home->fd, "a", slice_of(text), ROOM_BYTES);
}

static int
make(const struct home *home)
{
    return file_room_make(home->fd, "a", ROOM_BYTES);
}

static void
disk_is_full(bool full)
{
    file_fail_at(FILE_CALL_RESERVE, full, ENOSPC, true);
}

static void
assert_has(const struct home *home, const char *want)
{
    char got[256];
    size_t len = 0;

    assert_int_equal(0, file_read_name(home->fd, "a", got, 255, &len));
    got[len] = '\0';
    assert_string_equal(want, got);
}

/* Returns the blocks of the file, in bytes; -1: there is none. */
static long
blocks(const struct home *home, const char *name)
{
    struct stat status;

    if (fstatat(home->fd, name, &status, 0) != 0) {
        return -1;
    }
    assert_int_equal(0600, status.st_mode & 07777);
    return (long)status.st_blocks * BLOCK;
}

TEST(a_full_disk_takes_every_text)
{
    struct home home;

    home_open(&home);
    assert_int_equal(0, make(&home));
    assert_true(blocks(&home, "a.room") >= ROOM_BYTES);
    assert_int_equal(0, put(&home, "old\n"));
    disk_is_full(true);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(0, put(&home, "longest\n"));
        assert_has(&home, "longest\n");
        assert_int_equal(0, put(&home, "as long\n"));
        assert_has(&home, "as long\n");
        assert_int_equal(0, make(&home)); /* it is there */
        assert_true(blocks(&home, "a") >= ROOM_BYTES);
        assert_true(blocks(&home, "a.room") >= ROOM_BYTES);
        assert_int_equal(0, put(&home, "short\n"));
        assert_has(&home, "short\n\n\n");
        assert_int_equal(-1, blocks(&home, "a.tmp"));
    }
    assert_true(file_fail_clear());
    assert_int_equal(0, put(&home, "short\n"));
    assert_has(&home, "short\n");
    home_close(&home);
}

TEST(the_first_text_takes_the_room)
{
    struct home home;

    home_open(&home);
    assert_int_equal(0, make(&home));
    disk_is_full(true);
    assert_int_equal(0, put(&home, "first\n"));
    assert_has(&home, "first\n");
    assert_int_equal(-1, blocks(&home, "a.room"));
    assert_int_equal(ENOSPC, put(&home, "second\n"));
    assert_int_equal(ENOSPC, make(&home));
    assert_has(&home, "first\n");
    assert_true(file_fail_clear());
    assert_int_equal(0, make(&home));
    disk_is_full(true);
    assert_int_equal(0, put(&home, "second\n"));
    assert_true(file_fail_clear());
    assert_has(&home, "second\n");
    home_close(&home);
}

TEST(a_room_that_fails_leaves_the_old_text)
{
    static const enum file_call calls[] = { FILE_CALL_WRITE, FILE_CALL_SYNC,
                                            FILE_CALL_RENAME };
    struct home home;

    home_open(&home);
    assert_int_equal(0, put(&home, "old\n"));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_int_equal(0, make(&home));
        disk_is_full(true);
        file_fail_at(calls[i], 1, EIO, true);
        assert_int_equal(EIO, put(&home, "new\n"));
        assert_true(file_fail_clear());
        assert_has(&home, "old\n");
        /* After a failed sync nobody knows what the disk has of it. */
        assert_int_equal(calls[i] == FILE_CALL_SYNC,
                         blocks(&home, "a.room") < 0);
    }
    home_close(&home);
}

/* Other errors are not a matter of space. */
TEST(only_a_full_disk_uses_the_room)
{
    struct home home;

    home_open(&home);
    assert_int_equal(0, make(&home));
    assert_int_equal(0, put(&home, "old\n"));
    file_fail_at(FILE_CALL_RENAME, 1, EROFS, false);
    assert_int_equal(EROFS, put(&home, "new\n"));
    assert_true(file_fail_clear());
    assert_has(&home, "old\n");
    home_close(&home);
}

TEST(what_a_backup_has_a_link_to_is_not_written)
{
    struct home home;
    char got[16];
    size_t len = 0;

    home_open(&home);
    assert_int_equal(0, make(&home));
    assert_int_equal(0, put(&home, "old\n"));
    assert_int_equal(0, linkat(home.fd, "a", home.fd, "backup", 0));
    disk_is_full(true);
    assert_int_equal(0, put(&home, "new\n"));
    assert_int_equal(ENOSPC, put(&home, "newer\n")); /* the room is linked */
    assert_true(file_fail_clear());
    assert_int_equal(0, make(&home));
    disk_is_full(true);
    assert_int_equal(0, put(&home, "newer\n"));
    assert_true(file_fail_clear());
    assert_has(&home, "newer\n");
    assert_int_equal(0, file_read_name(home.fd, "backup", got, 15, &len));
    assert_int_equal(4, len);
    assert_memory_equal("old\n", got, 4);
    home_close(&home);
}
