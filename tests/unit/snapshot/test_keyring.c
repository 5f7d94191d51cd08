/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The folder of secrets: written, read again, and what is no secret there.
 */
#include "snapshot/keyring.h"

#include "../test.h"
#include "base/file.h"
#include "core/keyed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t one[BLOOM_SECRET_BYTES] = "one secret......";

static unsigned wrong;
static char wrong_reason[160];

static void
on_wrong(void *ctx, const char *file, const char *reason)
{
    (void)ctx;
    (void)snprintf(wrong_reason, sizeof(wrong_reason), "%.40s: %.100s", file,
                   reason);
    wrong++;
}

static void
put(int dir_fd, const char *name, const char *text, mode_t mode)
{
    int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(strlen(text), write(fd, text, strlen(text)));
    assert_int_equal(0, fchmod(fd, mode));
    assert_int_equal(0, close(fd));
}

TEST(what_is_written_is_read_and_other_files_are_named)
{
    char dir[] = "/tmp/bloomery-XXXXXX";
    char name[64];
    struct stat status;
    int dir_fd;

    assert_non_null(mkdtemp(dir));
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir_fd >= 0);
    assert_int_equal(keyring_read(dir_fd, on_wrong, NULL), 0); /* no folder */
    assert_int_equal(keyring_write(dir_fd, one), 0);
    assert_int_equal(keyring_write(dir_fd, one), 0);
    (void)snprintf(name, sizeof(name), KEYRING_NAME "/%016llx",
                   (unsigned long long)keyring_fingerprint(one));
    assert_int_equal(0, fstatat(dir_fd, name, &status, 0));
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(0, fstatat(dir_fd, KEYRING_NAME, &status, 0));
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_false(keyring_has(keyring_fingerprint(one)));
    assert_int_equal(keyring_read(dir_fd, on_wrong, NULL), 1);
    assert_true(keyring_has(keyring_fingerprint(one)));
    assert_int_equal(keyring_read(dir_fd, on_wrong, NULL), 0);
    assert_int_equal(wrong, 0);
    put(dir_fd, KEYRING_NAME "/notes", "words", 0644);
    assert_int_equal(keyring_read(dir_fd, on_wrong, NULL), 0);
    assert_int_equal(wrong, 0);
    put(dir_fd, KEYRING_NAME "/0000000000000001",
        "00112233445566778899aabbccddeeff", 0600);
    assert_int_equal(keyring_read(dir_fd, on_wrong, NULL), 0);
    assert_int_equal(wrong, 1);
    assert_non_null(strstr(wrong_reason, "has the fingerprint"));
    put(dir_fd, KEYRING_NAME "/0000000000000001", "short", 0600);
    assert_int_equal(keyring_read(dir_fd, on_wrong, NULL), 0);
    assert_non_null(strstr(wrong_reason, "32 hexadecimal digits"));
    /* The directory's own secret, where another one is the own. */
    put(dir_fd, KEYRING_OWN_NAME, "00112233445566778899aabbccddeeff\n", 0600);
    assert_int_equal(keyring_read(dir_fd, on_wrong, NULL), 1);
    assert_int_equal(0, unlinkat(dir_fd, KEYRING_NAME "/0000000000000001", 0));
    assert_int_equal(0, unlinkat(dir_fd, KEYRING_NAME "/notes", 0));
    assert_int_equal(0, unlinkat(dir_fd, name, 0));
    assert_int_equal(keyring_write_all(dir_fd), 0);
    assert_int_equal(0, unlinkat(dir_fd, name, 0));
    assert_false(keyring_is_full());
    (void)close(dir_fd);
}
