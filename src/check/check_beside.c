/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Most of the files that are copied here are only ever replaced as a whole; the
 * server appends to the others. So a copy has the contents that a file had when
 * it was read.
 */
#include "check/check_beside.h"

#include "base/file.h"
#include "base/mem.h"
#include "cluster/holdings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* All options with their types: those of type SECRET are passwords. Aliases are
 * left out, since rewritten.conf never has them. */
static const struct {
    const char *name, *type;
} options[] = {
#define OPT(id, kind, section, option, ...) { option, #kind },
#define ALIAS(id, of, kind, section, option, ...)
#include "tbl/options.def"
#undef OPT
#undef ALIAS
};

struct beside {
    struct check_made *made;
    const char *path, *out;
    check_deed_fn *deed_of;
};

enum file_deed
check_beside_backup(const struct data_file *file)
{
    return file->backup;
}

enum file_deed
check_beside_restore(const struct data_file *file)
{
    return file->restore;
}

enum file_deed
check_beside_salvage(const struct data_file *file)
{
    return file->salvage;
}

enum file_deed
check_beside_cut(const struct data_file *file)
{
    return file->cut;
}

/* ---- texts --------------------------------------------------------------- */

static bool
is_password(struct slice line)
{
    size_t len = 0;

    while (len < line.len && line.data[len] != ' ' && line.data[len] != '=') {
        len++;
    }
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(options[i].type, "SECRET") == 0 &&
            slice_equal((struct slice){ line.data, len },
                        slice_of(options[i].name))) {
            return true;
        }
    }
    return false;
}

/* Removes the lines that set passwords. */
static void
strip_passwords(struct buf *text)
{
    struct buf kept = { 0 };
    size_t at = 0;

    while (at < text->len) {
        const char *end = memchr(text->data + at, '\n', text->len - at);
        size_t next = end != NULL ? (size_t)(end - text->data) + 1 : text->len;
        struct slice line = { text->data + at, next - at };

        if (!is_password(line)) {
            buf_append_slice(&kept, line);
        }
        at = next;
    }
    buf_exchange(text, &kept);
    buf_wipe(&kept);
}

/* Marks all slots as not held, but keeps the epochs at which they were held:
 * newer data elsewhere is fetched, and this data is served only if the operator
 * says so. */
static bool
forget_held(struct beside *beside, struct buf *text, const char *from)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    char reason[HOLDINGS_REASON_MAX];
    bool read = holdings_parse(buf_slice(text), holdings, reason);

    if (read) {
        holdings_clear(holdings);
        text->len = 0;
        holdings_write_file(holdings, text);
    } else {
        tool_complain(&beside->made->check->tool, CHECK_DAMAGED,
                      "%s: %s: left out", from, reason);
    }
    mem_free(holdings);
    return read;
}

static void
print_role(struct beside *beside, struct slice text, const char *from)
{
    const char *line =
        text.len > 0 ? memmem(text.data, text.len, "\nrole ", 6) : NULL;
    const char *end =
        line != NULL
            ? memchr(line + 1, '\n', text.len - (size_t)(line + 1 - text.data))
            : NULL;

    if (end != NULL) {
        (void)fprintf(stderr,
                      "%s: %s: the role was `%.*s`: left out, the server "
                      "starts as a primary (--keep-role)\n",
                      beside->made->check->tool.name, from,
                      (int)(end - line - 6), line + 6);
    }
}

/* ---- copies -------------------------------------------------------------- */

/* Changes the text that was read, as the deed requires. False: there is nothing
 * to write. */
static bool
change(struct beside *beside, enum file_deed deed, struct buf *text,
       const char *from)
{
    const struct check *check = beside->made->check;

    if (deed == DEED_OPTIONS && check->without_secrets) {
        strip_passwords(text);
    } else if (deed == DEED_SECRET && check->without_secrets) {
        return false;
    } else if (deed == DEED_ROLE && !check->keep_role) {
        print_role(beside, buf_slice(text), from);
        return false;
    } else if (deed == DEED_KNOWN) {
        return forget_held(beside, text, from);
    }
    return true;
}

static bool
put_text(struct beside *beside, enum file_deed deed, struct buf *text,
         const char *from, const char *to)
{
    const struct check_made *made = beside->made;

    if (!change(beside, deed, text, from)) {
        return true;
    }
    if (made->fills && data_files_find(check_file_name(to)) == FILE_USERS) {
        (void)fprintf(stderr,
                      "%s: %s: has the users, if the option aclfile names it\n",
                      made->check->tool.name, to);
    }
    return check_make_text(beside->made, to, buf_slice(text));
}

bool
check_beside_put(struct check_made *made, enum file_deed deed, struct buf *text,
                 const char *from, const char *to)
{
    struct beside beside = { .made = made };

    return put_text(&beside, deed, text, from, to);
}

static bool
copy_text(struct beside *beside, int fd, enum file_deed deed, const char *from,
          const char *to)
{
    struct buf text = { 0 };
    uint64_t bytes = 0;
    size_t len = 0;
    int error = file_size(fd, &bytes);
    bool ok;

    if (error == 0 && bytes > CHECK_BESIDE_TEXT_MAX) {
        error = EFBIG;
    }
    if (error == 0 && bytes > 0) {
        char *room = buf_reserve(&text, (size_t)bytes);

        error = room == NULL ? ENOMEM
                             : file_read_at(fd, room, (size_t)bytes, 0, &len);
        text.len = len;
        error = error == ENODATA ? 0 : error;
    }
    if (error != 0) {
        tool_complain(&beside->made->check->tool, CHECK_UNREADABLE,
                      "%s: cannot be read: %s", from, strerror(error));
    }
    ok = error == 0 && put_text(beside, deed, &text, from, to);
    buf_wipe(&text);
    return ok;
}

bool
check_beside_copy_text(struct check_made *made, enum file_deed deed,
                       const char *from, const char *to)
{
    struct beside beside = { .made = made };
    int fd = -1;
    bool ok = check_file_open(made->check, from, &fd) &&
              copy_text(&beside, fd, deed, from, to);

    file_close(fd);
    return ok;
}

struct folder {
    struct beside *beside;
    const char *from, *to;
};

static bool
copy_secret(void *ctx, const char *name)
{
    const struct folder *folder = ctx;
    struct beside *beside = folder->beside;
    char from[CHECK_PATH_MAX];
    char to[CHECK_PATH_MAX];

    return name[0] == '.' ||
           (check_file_join(beside->made->check, folder->from, name, from) &&
            check_file_join(beside->made->check, folder->to, name, to) &&
            check_beside_copy_text(beside->made, DEED_SECRET, from, to));
}

/* Copies the folder of secrets. */
static bool
copy_folder(struct beside *beside, const char *from, const char *to)
{
    struct folder folder = { beside, from, to };

    return beside->made->check->without_secrets ||
           (check_make_dir(beside->made, to) &&
            check_file_each(beside->made->check, from, copy_secret, &folder));
}

static bool
copy_file(void *ctx, const char *name)
{
    struct beside *beside = ctx;
    enum file_id id = data_files_find(name);
    enum file_deed deed =
        id != FILE_ID_COUNT ? beside->deed_of(&data_files[id]) : DEED_LEAVE;
    char from[CHECK_PATH_MAX];
    char to[CHECK_PATH_MAX];
    struct stat status;
    uint64_t bytes = 0;
    int fd = -1;
    bool ok;

    if (deed == DEED_LEAVE || deed == DEED_DATA) {
        return true;
    }
    if (!check_file_join(beside->made->check, beside->path, name, from) ||
        !check_file_join(beside->made->check, beside->out, name, to)) {
        return false;
    }
    if (stat(from, &status) == 0 && S_ISDIR(status.st_mode) &&
        deed == DEED_SECRET) {
        return copy_folder(beside, from, to);
    }
    if (stat(from, &status) != 0 || !S_ISREG(status.st_mode)) {
        return true; /* it has gone, or is not the server's */
    }
    if (!check_file_open(beside->made->check, from, &fd)) {
        return false;
    }
    if (deed == DEED_COPY) {
        ok = file_size(fd, &bytes) == 0 &&
             check_make_copy(beside->made, fd, bytes, from, to);
    } else {
        ok = copy_text(beside, fd, deed, from, to);
    }
    file_close(fd);
    return ok;
}

bool
check_beside_copy(struct check_made *made, const char *path, const char *out,
                  check_deed_fn *deed_of)
{
    struct beside beside = { made, path, out, deed_of };

    return check_file_each(made->check, path, copy_file, &beside);
}
