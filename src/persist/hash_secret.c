/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file that is named in hash-secret-file is never made: a wrong path must not
 * give a server another secret.
 */
#include "persist/hash_secret.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/random.h"
#include "persist/persist_state.h"
#include "snapshot/left_out.h"
#include "snapshot/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 2 * BLOOM_SECRET_BYTES };

static int
write_file(int dir_fd, const uint8_t secret[BLOOM_SECRET_BYTES])
{
    char text[DIGITS + 2];
    int error;

    hex_put_bytes(text, secret, BLOOM_SECRET_BYTES);
    text[DIGITS] = '\n';
    error = file_replace(dir_fd, HASH_SECRET_NAME,
                         (struct slice){ text, DIGITS + 1 });
    explicit_bzero(text, sizeof(text));
    return error;
}

/* Makes the secret of the data directory at the first start. A server that
 * saves nothing may have a directory that it cannot write to. Then it goes on
 * without a secret. */
static bool
make_secret(const struct persist *persist,
            uint8_t ret_secret[BLOOM_SECRET_BYTES], bool *ret_made)
{
    const struct conf *conf = persist->options.conf;
    bool nothing_is_written = conf->save.count == 0 && !conf->appendonly;
    int error;

    random_bytes(ret_secret, BLOOM_SECRET_BYTES);
    error = write_file(persist->dir_fd, ret_secret);
    *ret_made = error == 0;
    if (error == 0) {
        log_notice("persist", "made the secret of keyed filters",
                   "file=\"%s/" HASH_SECRET_NAME "\"", persist->dir);
    } else if ((error == EACCES || error == EROFS) && nothing_is_written) {
        log_warn("persist", "did not make the secret of keyed filters",
                 "file=\"%s/" HASH_SECRET_NAME "\" error=\"%s\"", persist->dir,
                 strerror(error));
        return true;
    } else {
        log_error("persist", "cannot make the secret of keyed filters",
                  "file=\"%s/" HASH_SECRET_NAME "\" error=\"%s\"", persist->dir,
                  strerror(error));
    }
    return error == 0;
}

bool
hash_secret_open(struct persist *persist)
{
    const char *path = persist->options.conf->hash_secret_file;
    bool own = path[0] == '\0';
    uint8_t secret[BLOOM_SECRET_BYTES];
    char reason[128];
    bool ok = true;
    bool known = true;
    enum secret_file found = secret_file_read(own ? persist->dir_fd : AT_FDCWD,
                                              own ? HASH_SECRET_NAME : path,
                                              secret, reason, sizeof(reason));

    if (found == SECRET_FILE_MISSING && own) {
        ok = make_secret(persist, secret, &known);
    } else if (found != SECRET_FILE_READ) {
        log_error("persist", "cannot use the secret of keyed filters",
                  "file=\"%s%s%s\" reason=\"%s\"", own ? persist->dir : "",
                  own ? "/" : "", own ? HASH_SECRET_NAME : path, reason);
        persist->load.refused = true;
        ok = false;
    }
    bloom_use_secret(ok && known ? secret : NULL);
    persist->secret.own = own && ok && known;
    memcpy(persist->secret.bytes, secret, sizeof(secret));
    explicit_bzero(secret, sizeof(secret));
    if (ok) {
        (void)hash_secret_read_others(persist);
    }
    return ok;
}

static void
on_wrong(void *ctx, const char *file, const char *reason)
{
    const struct persist *persist = ctx;

    log_warn("persist", "does not use a secret of keyed filters",
             "file=\"%s/%s\" reason=\"%s\"", persist->dir, file, reason);
}

unsigned
hash_secret_read_others(const struct persist *persist)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): only casts const away */
    return keyring_read(persist->dir_fd, on_wrong, (void *)(uintptr_t)persist);
}

int
hash_secret_write_again(const struct persist *persist, int dir_fd)
{
    uint8_t there[BLOOM_SECRET_BYTES];
    char aside[64];
    char reason[128];
    enum secret_file found;
    int error = keyring_write_all(dir_fd);

    if (!persist->secret.own || error != 0) {
        return error;
    }
    found = secret_file_read(dir_fd, HASH_SECRET_NAME, there, reason,
                             sizeof(reason));
    if (found == SECRET_FILE_READ &&
        memcmp(there, persist->secret.bytes, sizeof(there)) == 0) {
        return 0;
    }
    if (found != SECRET_FILE_MISSING) {
        (void)snprintf(aside, sizeof(aside), HASH_SECRET_NAME ".stale-%llu",
                       (unsigned long long)clock_wall_ms());
        error = file_rename(dir_fd, HASH_SECRET_NAME, aside);
        log_warn("persist", "set the secret of another server aside",
                 "file=\"%s/%s\" error=\"%s\"", persist->dir, aside,
                 strerror(error));
    }
    explicit_bzero(there, sizeof(there));
    return error == 0 ? write_file(dir_fd, persist->secret.bytes) : error;
}

/* ---- a secret that is lost ---------------------------------------------- */

/* Removes the filters that were loaded with a wrong key. */
static bool
leave_out(struct persist *persist, uint64_t fingerprint, char *ret_reason,
          size_t reason_size)
{
    struct keyspace *ks = persist->options.keyspace;
    uint64_t count = 0;
    uint64_t other = 0;

    if (!left_out_remove(ks, fingerprint, &count, &other)) {
        (void)snprintf(ret_reason, reason_size,
                       "The data also needs the hash-secret-file of "
                       "fingerprint %016" PRIx64 ", or more memory.",
                       other);
        return false;
    }
    if (count > 0) {
        history_begin(&persist->load.history, NULL);
        persist->load.found.without_id = true;
        persist->load.found.keys = keyspace_count_keys(ks);
        (void)requests_ask(&persist->requests[PERSIST_SAVE]);
    }
    log_warn("persist", "left out the filters of a lost secret",
             "fingerprint=%016" PRIx64 " filters=%llu", fingerprint,
             (unsigned long long)count);
    return true;
}

bool
hash_secret_load(struct persist *persist, const struct recover_options *options,
                 char *ret_reason, size_t reason_size)
{
    const char *text = persist->options.conf->without_secret;
    uint64_t fingerprint = 0;
    bool done;

    if (text[0] == '\0') {
        return recover_run(options, &persist->load.found, ret_reason,
                           reason_size);
    }
    if (!hex_parse_u64(slice_of(text), &fingerprint) || fingerprint == 0 ||
        !left_out_begin(fingerprint)) {
        (void)snprintf(ret_reason, reason_size,
                       "without-secret takes the fingerprint (16 hexadecimal "
                       "digits) of a secret that is not here, not %s.",
                       text);
        return false;
    }
    done =
        recover_run(options, &persist->load.found, ret_reason, reason_size) &&
        leave_out(persist, fingerprint, ret_reason, reason_size);
    left_out_end();
    return done;
}
