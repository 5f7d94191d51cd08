/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of the file is wiped from memory after use.
 */
#include "snapshot/secret_file.h"

#include "base/file.h"
#include "base/hex.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DIGITS = 2 * BLOOM_SECRET_BYTES, OTHERS = S_IRWXG | S_IRWXO };

/* Reads the text of the file, up to one byte more than a good file has: that
 * byte shows that the file is too long. */
static int
read_text(int fd, char *ret_text, size_t *ret_len)
{
    int error = file_read_at(fd, ret_text, DIGITS + 2, 0, ret_len);

    return error == ENODATA ? 0 : error;
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

enum secret_file
secret_file_read(int dir_fd, const char *name,
                 uint8_t ret_secret[BLOOM_SECRET_BYTES], char *ret_reason,
                 size_t reason_size)
{
    enum secret_file result = SECRET_FILE_WRONG;
    char text[DIGITS + 2];
    size_t len = 0;
    int fd = -1;
    int error = file_open(dir_fd, name, &fd);

    if (error != 0) {
        (void)snprintf(ret_reason, reason_size, "%s", strerror(error));
        return error == ENOENT ? SECRET_FILE_MISSING : SECRET_FILE_WRONG;
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
            result = SECRET_FILE_READ;
        }
    }
    file_close(fd);
    explicit_bzero(text, sizeof(text));
    return result;
}
