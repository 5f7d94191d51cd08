/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is a secret's file, and why another file is none.
 */
#include "snapshot/secret_file.h"

#include "../test.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD "00112233445566778899aabbccddeeff"

static void
check(int dir_fd, const char *text, unsigned mode, const char *reason)
{
    uint8_t secret[BLOOM_SECRET_BYTES] = { 0 };
    char got[128] = "";
    int fd =
        openat(dir_fd, "s", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(strlen(text), write(fd, text, strlen(text)));
    assert_int_equal(0, fchmod(fd, mode));
    assert_int_equal(0, close(fd));
    if (reason == NULL) {
        assert_int_equal(SECRET_FILE_READ, secret_file_read(dir_fd, "s", secret,
                                                            got, sizeof(got)));
        assert_int_equal(0xff, secret[BLOOM_SECRET_BYTES - 1]);
    } else {
        assert_int_equal(
            SECRET_FILE_WRONG,
            secret_file_read(dir_fd, "s", secret, got, sizeof(got)));
        assert_non_null(strstr(got, reason));
    }
    assert_int_equal(0, unlinkat(dir_fd, "s", 0));
}

TEST(the_reason_says_what_is_wrong)
{
    char dir[] = "/tmp/bloomery-XXXXXX";
    uint8_t secret[BLOOM_SECRET_BYTES];
    char reason[128];
    int dir_fd;

    assert_non_null(mkdtemp(dir));
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir_fd >= 0);
    check(dir_fd, GOOD, 0600, NULL);
    check(dir_fd, GOOD "\n", 0400, NULL);
    check(dir_fd, GOOD, 0644, "0644");
    check(dir_fd, "short", 0600, "32 hexadecimal digits");
    check(dir_fd, GOOD "\n\n", 0600, "32 hexadecimal digits");
    assert_int_equal(
        SECRET_FILE_MISSING,
        secret_file_read(dir_fd, "s", secret, reason, sizeof(reason)));
    assert_int_equal(
        SECRET_FILE_WRONG,
        secret_file_read(AT_FDCWD, dir, secret, reason, sizeof(reason)));
    assert_string_equal(strerror(EISDIR), reason);
    assert_int_equal(0, close(dir_fd));
    assert_int_equal(0, rmdir(dir));
}

TEST(a_failing_disk_is_not_a_short_secret)
{
    char dir[] = "/tmp/bloomery-XXXXXX";
    char path[64];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    for (unsigned nth = 1; nth <= 2; nth++) { /* 2: behind the digits */
        uint8_t secret[BLOOM_SECRET_BYTES];
        char reason[128] = "";
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(strlen(GOOD), write(fd, GOOD, strlen(GOOD)));
        assert_int_equal(0, close(fd));
        file_fail_at(FILE_CALL_READ, nth, EIO, false);
        assert_int_equal(
            SECRET_FILE_WRONG,
            secret_file_read(AT_FDCWD, path, secret, reason, sizeof(reason)));
        assert_true(file_fail_clear());
        assert_string_equal(strerror(EIO), reason);
    }
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, rmdir(dir));
}
