/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The secrets of a directory with as many as a server can have.
 */
#include "tools/secrets.h"

#include "../test.h"
#include "core/keyed.h"
#include "snapshot/keyring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void
remove_all(const char *dir)
{
    uint64_t listed[KEYED_MAX];
    size_t count = keyed_list(listed);
    char path[96];

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "%s/" KEYRING_NAME "/%016llx", dir,
                       (unsigned long long)listed[i]);
        (void)unlink(path); /* the own one is not there */
    }
    (void)snprintf(path, sizeof(path), "%s/" KEYRING_NAME, dir);
    assert_int_equal(0, rmdir(path));
    (void)snprintf(path, sizeof(path), "%s/" KEYRING_OWN_NAME, dir);
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, rmdir(dir));
}

/* The own one takes no place of the 64 others. */
TEST(an_own_secret_and_64_others_are_found)
{
    static const char own[] = "00112233445566778899aabbccddeeff\n";
    uint8_t secret[BLOOM_SECRET_BYTES] = "number .........";
    char dir[] = "/tmp/bloomery-XXXXXX";
    char path[64];
    uint64_t listed[KEYED_MAX];
    int dir_fd;
    int fd;

    assert_non_null(mkdtemp(dir));
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir_fd >= 0);
    for (uint8_t i = 0; i < KEYED_OTHERS_MAX; i++) {
        secret[7] = i;
        assert_int_equal(0, keyring_write(dir_fd, secret));
    }
    fd = openat(dir_fd, KEYRING_OWN_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(sizeof(own) - 1, write(fd, own, sizeof(own) - 1));
    assert_int_equal(0, close(fd));
    assert_int_equal(0, close(dir_fd));
    (void)snprintf(path, sizeof(path), "%s/journal",
                   dir); /* or what is in it */
    secrets_find(path);
    assert_int_equal(KEYED_MAX, keyed_list(listed));
    remove_all(dir);
}
