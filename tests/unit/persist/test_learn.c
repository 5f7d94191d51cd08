/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A secret of another server is on the disk before it is used.
 */
#include "persist/learn.h"

#include "persist_rig.h"
#include "snapshot/keyring.h"

#include <sys/stat.h>

static const uint8_t one[BLOOM_SECRET_BYTES] = "learnt secret 1.";
static const uint8_t two[BLOOM_SECRET_BYTES] = "learnt secret 2.";

static enum learn
wait_for(struct prig *rig, const uint8_t *secret)
{
    enum learn learned;

    do {
        learned = learn_secret(rig->persist, secret);
        (void)usleep(1000);
    } while (learned == LEARN_RUNS);
    return learned;
}

TEST(a_secret_is_written_and_known_after_a_restart)
{
    struct prig *rig = prig_new("no", "always");
    char path[160];
    struct stat status;

    assert_true(prig_open(rig));
    assert_int_equal(learn_secret(rig->persist, one), LEARN_RUNS);
    assert_int_equal(learn_secret(rig->persist, two), LEARN_RUNS); /* busy */
    assert_int_equal(wait_for(rig, one), LEARN_DONE);
    assert_int_equal(wait_for(rig, two), LEARN_DONE);
    assert_int_equal(learn_secret(rig->persist, one), LEARN_DONE);
    assert_true(keyring_has(keyring_fingerprint(two)));
    (void)snprintf(path, sizeof(path), "%s/" KEYRING_NAME "/%016llx", rig->dir,
                   (unsigned long long)keyring_fingerprint(one));
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(S_IFREG | 0600, status.st_mode);
    prig_free(rig);
}
