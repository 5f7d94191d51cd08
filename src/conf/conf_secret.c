/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file that any user can write lets any user log in, so it is refused. One
 * that any user can read only gives a warning: containers mount secrets like
 * that.
 */
#include "conf/conf_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The password, a line break of two bytes, and one byte too many. */
enum { FILE_MAX = CONF_VALUE_MAX + 3 };

static const char *
look_at(const struct stat *info, const char *path, const struct conf_row *file,
        struct conf_notes *notes)
{
    struct conf_error text;

    if (!S_ISREG(info->st_mode) && !S_ISFIFO(info->st_mode)) {
        return "it is not a file";
    }
    if ((info->st_mode & S_IWOTH) != 0) {
        return "others can write to it: chmod o-rw";
    }
    if ((info->st_mode & S_IROTH) != 0) {
        conf_error_set(&text, "%s: %s: others can read it: chmod o-r",
                       file->name, path);
        conf_note(notes, text.text);
    }
    return NULL;
}

/* Reads up to size bytes. Returns 0 or an errno. */
static int
read_bytes(int fd, char *bytes, size_t size, size_t *ret_len)
{
    size_t len = 0;

    while (len < size) {
        ssize_t got = read(fd, bytes + len, size - len);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        len += (size_t)got;
    }
    *ret_len = len;
    return 0;
}

/* Removes the line end. Returns why the rest is no password, or NULL. */
static const char *
trim_line(struct slice *text)
{
    if (text->len > 0 && text->data[text->len - 1] == '\n') {
        text->len--;
        text->len -= text->len > 0 && text->data[text->len - 1] == '\r';
    }
    if (text->len == 0) {
        return "it is empty";
    }
    if (memchr(text->data, '\n', text->len) != NULL) {
        return "it has more than one line";
    }
    return memchr(text->data, '\0', text->len) != NULL ? "it has a zero byte"
                                                       : NULL;
}

static bool
load(struct conf *conf, const struct conf_row *row, const char *path,
     struct conf_notes *notes, struct conf_error *ret_error)
{
    const struct conf_row *file = conf_file_row(row);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct slice text = { 0 };
    struct conf_error bad;
    char bytes[FILE_MAX];
    const char *why = NULL;
    struct stat info;
    int error = 0;

    text.data = bytes;
    if (fd < 0 || fstat(fd, &info) != 0) {
        error = errno;
    } else if ((why = look_at(&info, path, file, notes)) == NULL) {
        error = read_bytes(fd, bytes, sizeof(bytes), &text.len);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    why = error != 0 ? strerror(error) : why == NULL ? trim_line(&text) : why;
    if (why == NULL && !conf_set(conf, row, text, &bad)) {
        why = bad.text;
    }
    explicit_bzero(bytes, sizeof(bytes));
    if (why != NULL) {
        conf_error_set(ret_error, "%s: %s: %.400s", file->name, path, why);
    }
    return why == NULL;
}

bool
conf_secrets_load(struct conf *conf, struct conf_notes *notes,
                  struct buf *mistakes, struct conf_error *ret_error)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        const char *path = conf_file_of(conf, row);
        bool loaded = false;

        if (path == NULL || row->alias) {
            continue;
        }
        if (conf_has_text(conf, row)) {
            conf_error_set(ret_error,
                           "%s and %s are both set: set only one of them",
                           row->name, conf_file_row(row)->name);
        } else {
            loaded = load(conf, row, path, notes, ret_error);
        }
        if (!loaded && !conf_error_note(ret_error, mistakes)) {
            return false;
        }
    }
    return true;
}
