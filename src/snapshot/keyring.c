/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file is not used if its name is not the fingerprint of its secret: a later
 * look-up by name would not find it.
 */
#include "snapshot/keyring.h"

#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "core/keyed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DIGITS = 2 * BLOOM_SECRET_BYTES, FOLDER_MODE = 0700 };

/* Opens the folder; -1: there is none. */
static int
open_folder(int dir_fd)
{
    return openat(dir_fd, KEYRING_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

_Static_assert(KEYED_OTHERS_MAX == 64, "KEYRING_FULL says so");

/* Reads one file. fingerprint: the one that its name says, or NULL.
 * Returns whether the secret is new. */
static bool
read_one(int dir_fd, const char *name, const uint64_t *fingerprint,
         keyring_wrong_fn *wrong, void *ctx)
{
    uint8_t secret[BLOOM_SECRET_BYTES];
    char reason[128] = "";
    bool added = false;
    enum secret_file found =
        secret_file_read(dir_fd, name, secret, reason, sizeof(reason));

    if (found != SECRET_FILE_READ) {
        if (fingerprint != NULL || found != SECRET_FILE_MISSING) {
            wrong(ctx, name, reason);
        }
        return false;
    }
    if (fingerprint != NULL && keyed_fingerprint_of(secret) != *fingerprint) {
        (void)snprintf(reason, sizeof(reason),
                       "its secret has the fingerprint %016llx",
                       (unsigned long long)keyed_fingerprint_of(secret));
        wrong(ctx, name, reason);
    } else if (!keyed_is_held(keyed_fingerprint_of(secret))) {
        added = bloom_add_secret(secret) == BLOOM_OK;
        if (!added) {
            wrong(ctx, name, KEYRING_FULL);
        }
    }
    explicit_bzero(secret, sizeof(secret));
    return added;
}

void
keyring_read_own(int dir_fd)
{
    uint8_t secret[BLOOM_SECRET_BYTES];
    char reason[128];
    uint64_t own;

    if (!keyed_fingerprint(&own) &&
        secret_file_read(dir_fd, KEYRING_OWN_NAME, secret, reason,
                         sizeof(reason)) == SECRET_FILE_READ) {
        bloom_use_secret(secret);
    }
    explicit_bzero(secret, sizeof(secret));
}

unsigned
keyring_read(int dir_fd, keyring_wrong_fn *wrong, void *ctx)
{
    int folder_fd = open_folder(dir_fd);
    DIR *folder = folder_fd >= 0 ? file_list_dir(folder_fd) : NULL;
    const struct dirent *entry;
    char name[sizeof(KEYRING_NAME) + 1 + KEYRING_DIGITS];
    uint64_t fingerprint;
    /* hash-secret is not the process's own secret if hash-secret-file names
     * another file. */
    unsigned added = read_one(dir_fd, KEYRING_OWN_NAME, NULL, wrong, ctx);

    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream has one thread */
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        /* Other names are temporary files, or an editor's. */
        if (hex_parse_u64(slice_of(entry->d_name), &fingerprint)) {
            (void)snprintf(name, sizeof(name), KEYRING_NAME "/%.*s",
                           KEYRING_DIGITS, entry->d_name);
            added += read_one(dir_fd, name, &fingerprint, wrong, ctx);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    if (folder_fd >= 0) {
        file_close(folder_fd);
    }
    return added;
}

int
keyring_write(int dir_fd, const uint8_t secret[BLOOM_SECRET_BYTES])
{
    char name[KEYRING_DIGITS + 1] = "";
    char text[DIGITS + 2];
    int folder_fd;
    int error = 0;

    if (mkdirat(dir_fd, KEYRING_NAME, FOLDER_MODE) == 0) {
        error = file_sync_dir(dir_fd);
    } else if (errno != EEXIST) {
        return errno;
    }
    folder_fd = open_folder(dir_fd);
    if (folder_fd < 0) {
        return errno;
    }
    hex_put_u64(name, keyed_fingerprint_of(secret));
    hex_put_bytes(text, secret, BLOOM_SECRET_BYTES);
    text[DIGITS] = '\n';
    if (error == 0) {
        error =
            file_replace(folder_fd, name, (struct slice){ text, DIGITS + 1 });
    }
    explicit_bzero(text, sizeof(text));
    file_close(folder_fd);
    return error;
}

int
keyring_write_all(int dir_fd)
{
    uint64_t listed[KEYED_MAX];
    size_t count = keyed_list(listed);
    uint8_t secret[BLOOM_SECRET_BYTES];
    uint64_t own = 0;
    bool has_own = keyed_fingerprint(&own);
    int error = 0;

    for (size_t i = 0; i < count && error == 0; i++) {
        if (has_own && listed[i] == own) {
            continue;
        }
        CHECK(keyed_reveal(listed[i], secret));
        error = keyring_write(dir_fd, secret);
    }
    explicit_bzero(secret, sizeof(secret));
    return error;
}

uint64_t
keyring_fingerprint(const uint8_t secret[BLOOM_SECRET_BYTES])
{
    return keyed_fingerprint_of(secret);
}

bool
keyring_has(uint64_t fingerprint)
{
    return keyed_is_held(fingerprint);
}

bool
keyring_is_full(void)
{
    uint64_t listed[KEYED_MAX];
    uint64_t own;

    return keyed_list(listed) ==
           KEYED_OTHERS_MAX + (keyed_fingerprint(&own) ? 1U : 0U);
}
