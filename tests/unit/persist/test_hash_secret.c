/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of the secret: made once, kept, and refused if it is not as it must
 * be; whatever fails while it is made.
 */
#include "persist/hash_secret.h"

#include "persist_rig.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/keyed.h"

enum { DIGITS = 2 * BLOOM_SECRET_BYTES };

static void
path_of(const struct prig *rig, const char *name, char ret_path[128])
{
    (void)snprintf(ret_path, 128, "%s/%s", rig->dir, name);
}

static void
write_file(const char *path, const char *text, unsigned mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(strlen(text), write(fd, text, strlen(text)));
    assert_int_equal(0, fchmod(fd, mode));
    assert_int_equal(0, close(fd));
}

static uint64_t
fingerprint(void)
{
    uint64_t value = 0;

    assert_true(keyed_fingerprint(&value));
    return value;
}

TEST(the_first_start_makes_the_file_and_the_next_ones_keep_it)
{
    struct prig *rig = prig_new("no", "always");
    char path[128];
    struct stat status;
    uint64_t first;

    path_of(rig, HASH_SECRET_NAME, path);
    assert_true(prig_open(rig));
    first = fingerprint();
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(S_IFREG | 0600, status.st_mode);
    assert_int_equal(DIGITS + 1, status.st_size);
    prig_close(rig);
    bloom_use_secret(NULL);
    assert_true(prig_open(rig));
    assert_true(fingerprint() == first);
    prig_close(rig);
    assert_int_equal(0, unlink(path));
    assert_true(prig_open(rig));
    assert_true(fingerprint() != first);
    prig_free(rig);
}

static void
check_file(const char *text, unsigned mode, bool good)
{
    struct prig *rig = prig_new("no", "always");
    char path[128];
    uint64_t value;

    path_of(rig, HASH_SECRET_NAME, path);
    write_file(path, text, mode);
    assert_int_equal(good, prig_open(rig));
    assert_int_equal(good, keyed_fingerprint(&value));
    prig_free(rig);
}

#define GOOD "00112233445566778899aabbccddeeff"

TEST(a_file_with_wrong_bytes_or_mode_is_refused)
{
    check_file(GOOD, 0600, true);
    check_file(GOOD "\n", 0600, true);
    check_file(GOOD "\n", 0400, true);
    check_file(GOOD "\n", 0640, false);
    check_file(GOOD "\n", 0604, false);
    check_file(GOOD "\n\n", 0600, false);
    check_file(GOOD "0", 0600, false);
    check_file("0011", 0600, false);
    check_file("", 0600, false);
    check_file("0x112233445566778899aabbccddeeff\n", 0600, false);
}

TEST(a_file_that_is_named_is_never_made)
{
    struct prig *rig = prig_new("no", "always");
    char path[128], own[128];

    path_of(rig, "named", path);
    path_of(rig, HASH_SECRET_NAME, own);
    prig_set(rig, "hash-secret-file", path);
    assert_false(prig_open(rig));
    assert_int_equal(-1, access(path, F_OK));
    prig_close(rig);
    write_file(path, GOOD, 0600);
    assert_true(prig_open(rig));
    assert_int_equal(-1, access(own, F_OK));
    prig_free(rig);
}

/* Without the file there is no half of one, and the next start makes it. */
static void
check_fault(enum file_call call, unsigned nth)
{
    struct prig *rig = prig_new("no", "always");
    char path[128];
    uint64_t value;
    bool opened;
    bool fired;

    prig_set(rig, "save", "1 1");
    path_of(rig, HASH_SECRET_NAME, path);
    file_fail_at(call, nth, ENOSPC, false);
    opened = prig_open(rig);
    fired = file_fail_clear();
    assert_true(fired);
    if (!opened) {
        assert_false(keyed_fingerprint(&value));
    }
    prig_close(rig);
    assert_true(prig_open(rig));
    assert_true(fingerprint() != 0);
    prig_free(rig);
}

TEST(no_failure_leaves_a_part_of_a_file)
{
    check_fault(FILE_CALL_WRITE, 1);
    check_fault(FILE_CALL_SYNC, 1); /* the file */
    check_fault(FILE_CALL_SYNC, 2); /* the directory */
    check_fault(FILE_CALL_RENAME, 1);
}
