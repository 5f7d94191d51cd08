/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file that is named in hash-secret-file is never made: a wrong path must not
 * give a server another secret.
 */
#include "persist/hash_secret.h"

#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/random.h"
#include "persist/persist_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DIGITS = 2 * BLOOM_SECRET_BYTES, OTHERS = S_IRWXG | S_IRWXO };

/* Reads what the file has into a text with space for one byte more than it may
 * have. */
static int
read_text(int fd, char *ret_text, size_t *ret_len)
{
    int error = file_read_at(fd, ret_text, DIGITS + 2, 0, ret_len);

    return error == EIO && *ret_len < DIGITS + 2 ? 0 : error;
}

static bool
check_mode(int fd, char *ret_reason, size_t reason_size)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        (void)snprintf(ret_reason, reason_size, "%s", strerror(errno));
        return false;
    }
    if ((status.st_mode & OTHERS) != 0) {
        (void)snprintf(ret_reason, reason_size,
                       "its mode is %04o, so that others may use it: it must "
                       "be 0600",
                       status.st_mode & 07777U);
        return false;
    }
    return true;
}

enum hash_secret
hash_secret_read(int dir_fd, const char *name,
                 uint8_t ret_secret[BLOOM_SECRET_BYTES], char *ret_reason,
                 size_t reason_size)
{
    enum hash_secret result = HASH_SECRET_WRONG;
    char text[DIGITS + 2];
    size_t len = 0;
    int fd = -1;
    int error = file_open(dir_fd, name, &fd);

    if (error != 0) {
        (void)snprintf(ret_reason, reason_size, "%s", strerror(error));
        return error == ENOENT ? HASH_SECRET_MISSING : HASH_SECRET_WRONG;
    }
    if (check_mode(fd, ret_reason, reason_size)) {
        error = read_text(fd, text, &len);
        if (len == DIGITS + 1 && text[DIGITS] == '\n') {
            len = DIGITS;
        }
        if (error != 0) {
            (void)snprintf(ret_reason, reason_size, "%s", strerror(error));
        } else if (len != DIGITS ||
                   !hex_get_bytes((struct slice){ text, len }, ret_secret,
                                  BLOOM_SECRET_BYTES)) {
            (void)snprintf(ret_reason, reason_size,
                           "it must have %d hexadecimal digits and nothing "
                           "else",
                           DIGITS);
        } else {
            result = HASH_SECRET_READ;
        }
    }
    file_close(fd);
    explicit_bzero(text, sizeof(text));
    return result;
}

/* Makes the file of the data directory. */
static int
make_file(int dir_fd, uint8_t ret_secret[BLOOM_SECRET_BYTES])
{
    char text[DIGITS + 2];
    int error;

    random_bytes(ret_secret, BLOOM_SECRET_BYTES);
    hex_put_bytes(text, ret_secret, BLOOM_SECRET_BYTES);
    text[DIGITS] = '\n';
    error = file_replace(dir_fd, HASH_SECRET_NAME,
                         (struct slice){ text, DIGITS + 1 });
    explicit_bzero(text, sizeof(text));
    return error;
}

/* Makes the secret of the data directory at the first start. A server that
 * saves nothing needs no directory that it can write to, and goes on without a
 * secret. */
static bool
make(const struct persist *persist, uint8_t ret_secret[BLOOM_SECRET_BYTES],
     bool *ret_made)
{
    const struct conf *conf = persist->options.conf;
    bool nothing_is_written = conf->save.count == 0 && !conf->appendonly;
    int error = make_file(persist->dir_fd, ret_secret);

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
hash_secret_open(const struct persist *persist)
{
    const char *path = persist->options.conf->hash_secret_file;
    bool own = path[0] == '\0';
    uint8_t secret[BLOOM_SECRET_BYTES];
    char reason[128];
    bool ok = true;
    bool known = true;

    switch (hash_secret_read(own ? persist->dir_fd : AT_FDCWD,
                             own ? HASH_SECRET_NAME : path, secret, reason,
                             sizeof(reason))) {
    case HASH_SECRET_READ:
        break;
    case HASH_SECRET_MISSING:
        if (own) {
            ok = make(persist, secret, &known);
            break;
        }
        /* fall through */
    default:
        log_error("persist", "cannot use the secret of keyed filters",
                  "file=\"%s%s%s\" reason=\"%s\"", own ? persist->dir : "",
                  own ? "/" : "", own ? HASH_SECRET_NAME : path, reason);
        ok = false;
    }
    bloom_use_secret(ok && known ? secret : NULL);
    explicit_bzero(secret, sizeof(secret));
    return ok;
}
