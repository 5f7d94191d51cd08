/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An archive may come from anybody, so nothing in it is trusted. A size in it
 * is believed only after so many bytes have come, and its names are compared
 * with those that a backup can have. Small files are read into memory, since a
 * restore changes some of them; data goes to the disk as it comes.
 */
#include "check/check_unpack.h"

#include "base/buf.h"
#include "base/hex.h"
#include "base/mem.h"
#include "check/check_beside.h"
#include "check/check_stream.h"
#include "check/check_sums.h"
#include "snapshot/data_files.h"
#include "snapshot/keyring.h"
#include "tools/tar.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

static const char cut_off[] =
    "the archive ends too early: it was cut off, or its backup failed";

struct unpack {
    struct check_made *made;
    const char *out;
    struct check_sums sums;
    char *piece;            /* PIECE_BYTES */
    char journal[256];      /* name of its directory, or "" */
    size_t snapshots;       /* number of snapshots; other data files are in
                               the journal's directory */
    bool secrets;           /* the folder of the secrets was made */
    bool ended;             /* the sums have come, and are right */
    struct tar_entry entry; /* the present one */
};

/* What to do with an entry. */
enum place { PLACE_DATA, PLACE_TEXT, PLACE_DIR, PLACE_SUMS, PLACE_FOREIGN };

static bool
complain(struct unpack *unpack, int status, const char *why)
{
    tool_complain(&unpack->made->check->tool, status,
                  "standard input: %s; nothing was written", why);
    return false;
}

static bool
foreign(struct unpack *unpack)
{
    return complain(unpack, CHECK_DAMAGED,
                    "is no archive of bloomery-check backup --tar, or is "
                    "damaged");
}

/* ---- bytes --------------------------------------------------------------- */

/* Reads `len` bytes, or fewer at the end of the input. */
static bool
read_some(struct unpack *unpack, char *to, size_t len, size_t *ret_len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t got = read(STDIN_FILENO, to + done, len - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return complain(unpack, CHECK_UNREADABLE, strerror(errno));
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    *ret_len = done;
    return true;
}

static bool
read_all(struct unpack *unpack, char *to, size_t len)
{
    size_t got = 0;

    return read_some(unpack, to, len, &got) &&
           (got == len || complain(unpack, CHECK_DAMAGED, cut_off));
}

static bool
skip_padding(struct unpack *unpack)
{
    char padding[TAR_BLOCK];
    size_t len = tar_padding(unpack->entry.bytes);

    if (!read_all(unpack, padding, len)) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (padding[i] != '\0') {
            return foreign(unpack);
        }
    }
    return true;
}

/* Takes a piece of the contents of a file. Returns false if it failed. */
typedef bool piece_fn(struct unpack *unpack, void *ctx, struct slice piece);

static bool
read_contents(struct unpack *unpack, piece_fn *take, void *ctx)
{
    uint64_t left = unpack->entry.bytes;
    bool ok = true;

    check_sums_begin(&unpack->sums);
    while (ok && left > 0) {
        size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        struct slice piece = { unpack->piece, len };

        if (!read_all(unpack, unpack->piece, len)) {
            return false;
        }
        check_sums_add(&unpack->sums, piece);
        ok = take(unpack, ctx, piece);
        left -= len;
        tool_bar_add(&unpack->made->check->tool, len);
    }
    check_sums_end(&unpack->sums, unpack->entry.name);
    return ok && skip_padding(unpack);
}

/* ---- files --------------------------------------------------------------- */

struct data {
    const char *to;
    int fd;
};

static bool
write_piece(struct unpack *unpack, void *ctx, struct slice piece)
{
    const struct data *data = ctx;

    return check_make_write(unpack->made, data->fd, data->to, piece);
}

static bool
unpack_data(struct unpack *unpack, const char *to)
{
    struct data data = { .to = to };
    bool ok;

    if (!check_make_file(unpack->made, to, &data.fd)) {
        return false;
    }
    ok = read_contents(unpack, write_piece, &data);
    return check_make_done(unpack->made, data.fd, to) && ok;
}

static bool
keep_piece(struct unpack *unpack, void *ctx, struct slice piece)
{
    struct buf *text = ctx;

    buf_append_slice(text, piece);
    return !text->failed ||
           complain(unpack, CHECK_UNREADABLE, strerror(ENOMEM));
}

static bool
read_text(struct unpack *unpack, struct buf *text)
{
    if (unpack->entry.bytes > CHECK_BESIDE_TEXT_MAX) {
        return complain(unpack, CHECK_DAMAGED, "a small file is too large");
    }
    return read_contents(unpack, keep_piece, text);
}

static bool
unpack_text(struct unpack *unpack, const char *to)
{
    enum file_id id = data_files_find(unpack->entry.name);
    enum file_deed deed = id != FILE_ID_COUNT
                              ? check_beside_restore(&data_files[id])
                              : DEED_SECRET; /* a file in the folder of
                                                secrets */
    struct buf text = { 0 };
    bool ok = read_text(unpack, &text) &&
              (deed == DEED_LEAVE || check_beside_put(unpack->made, deed, &text,
                                                      unpack->entry.name, to));

    buf_wipe(&text);
    return ok;
}

/* Compares the sums of the unpacked files with the sums in the archive. */
static bool
compare_sums(struct unpack *unpack)
{
    struct buf ours = { 0 };
    struct buf text = { 0 };
    bool ok;

    buf_exchange(&ours, &unpack->sums.text);
    ok = read_text(unpack, &text);
    if (ok && !slice_equal(buf_slice(&ours), buf_slice(&text))) {
        ok = complain(unpack, CHECK_DAMAGED,
                      "a file is damaged: its sum is another one");
    }
    unpack->ended = ok;
    buf_free(&ours);
    buf_free(&text);
    return ok;
}

/* ---- names --------------------------------------------------------------- */

/* Returns whether a name has no folder, and cannot lead out of `out`. */
static bool
is_plain(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
           strlen(name) < sizeof(((struct unpack *)NULL)->journal);
}

static enum place
place_dir(struct unpack *unpack, const char *name)
{
    if (strcmp(name, KEYRING_NAME) == 0 && !unpack->secrets) {
        unpack->secrets = true;
        return PLACE_DIR;
    }
    if (!is_plain(name) || data_files_find(name) != FILE_ID_COUNT ||
        unpack->journal[0] != '\0') {
        return PLACE_FOREIGN;
    }
    memcpy(unpack->journal, name, strlen(name) + 1);
    return PLACE_DIR;
}

/* Returns what to do with a file that lies in a folder. */
static enum place
place_inner(const struct unpack *unpack, struct slice folder, const char *name)
{
    uint64_t fingerprint;

    if (unpack->secrets && slice_equal(folder, slice_of(KEYRING_NAME))) {
        return hex_parse_u64(slice_of(name), &fingerprint) ? PLACE_TEXT
                                                           : PLACE_FOREIGN;
    }
    if (folder.len > 0 && slice_equal(folder, slice_of(unpack->journal)) &&
        (manifest_is_file_name(name) || strcmp(name, MANIFEST_NAME) == 0)) {
        return PLACE_DATA;
    }
    return PLACE_FOREIGN;
}

static enum place
place_of_file(struct unpack *unpack)
{
    const char *name = unpack->entry.name;
    const char *slash = strchr(name, '/');

    if (unpack->entry.dir) {
        return place_dir(unpack, name);
    }
    if (slash != NULL) {
        return place_inner(
            unpack, (struct slice){ name, (size_t)(slash - name) }, slash + 1);
    }
    if (strcmp(name, CHECK_SUMS_NAME) == 0) {
        return PLACE_SUMS;
    }
    if (!is_plain(name)) {
        return PLACE_FOREIGN;
    }
    if (data_files_find(name) != FILE_ID_COUNT) {
        return data_files[data_files_find(name)].backup == DEED_LEAVE
                   ? PLACE_FOREIGN
                   : PLACE_TEXT;
    }
    return ++unpack->snapshots <= CHECK_SNAPSHOTS_MAX ? PLACE_DATA
                                                      : PLACE_FOREIGN;
}

/* ---- entries ------------------------------------------------------------- */

static bool
is_snapshot(struct unpack *unpack, const char *path)
{
    enum check_kind kind;

    if (!check_file_kind(unpack->made->check, path, &kind)) {
        return false;
    }
    return kind == CHECK_KIND_SNAPSHOT ||
           complain(unpack, CHECK_DAMAGED,
                    "is no backup: it has a file that is no snapshot");
}

static bool
unpack_entry(struct unpack *unpack)
{
    enum place place = unpack->ended ? PLACE_FOREIGN : place_of_file(unpack);
    char to[CHECK_PATH_MAX];

    if (!check_file_join(unpack->made->check, unpack->out, unpack->entry.name,
                         to)) {
        return false;
    }
    switch (place) {
    case PLACE_DIR:
        return check_make_dir(unpack->made, to);
    case PLACE_DATA:
        return unpack_data(unpack, to) &&
               (strchr(unpack->entry.name, '/') != NULL ||
                is_snapshot(unpack, to));
    case PLACE_TEXT:
        return unpack_text(unpack, to);
    case PLACE_SUMS:
        return compare_sums(unpack);
    default:
        break;
    }
    return complain(unpack, CHECK_DAMAGED,
                    "is no backup: it has a name that no backup has");
}

/* Checks that the archive ends with two or more blocks of zeros. */
static bool
read_end(struct unpack *unpack)
{
    size_t len = 0;
    size_t blocks = 1;

    if (!unpack->ended) {
        return complain(unpack, CHECK_DAMAGED, cut_off);
    }
    if (unpack->snapshots == 0 && unpack->journal[0] == '\0') {
        return foreign(unpack);
    }
    do {
        char block[TAR_BLOCK];
        struct tar_entry entry;

        if (!read_some(unpack, block, TAR_BLOCK, &len)) {
            return false;
        }
        if (len == TAR_BLOCK && tar_get(block, &entry) != TAR_ZEROS) {
            return complain(unpack, CHECK_DAMAGED,
                            "something follows the archive");
        }
        blocks += len == TAR_BLOCK;
    } while (len == TAR_BLOCK);
    return (len == 0 && blocks >= 2) ||
           complain(unpack, CHECK_DAMAGED, cut_off);
}

static bool
read_records(struct unpack *unpack, char *records, size_t *ret_len)
{
    *ret_len = (size_t)unpack->entry.bytes;
    return read_all(unpack, records, *ret_len) && skip_padding(unpack);
}

/* Reads the head of an entry, and its records. *ret_end: there is no further
 * entry. */
static bool
read_head(struct unpack *unpack, bool *ret_end)
{
    char block[TAR_BLOCK];
    char records[TAR_RECORDS_MAX];
    size_t len = 0;
    enum tar_status status;

    if (!read_all(unpack, block, TAR_BLOCK)) {
        return false;
    }
    status = tar_get(block, &unpack->entry);
    if (status == TAR_RECORDS) {
        if (!read_records(unpack, records, &len) ||
            !read_all(unpack, block, TAR_BLOCK)) {
            return false;
        }
        status = tar_get(block, &unpack->entry);
        if (status != TAR_ENTRY ||
            !tar_get_records((struct slice){ records, len }, &unpack->entry)) {
            return foreign(unpack);
        }
    }
    *ret_end = status == TAR_ZEROS;
    return *ret_end || status == TAR_ENTRY || foreign(unpack);
}

bool
check_unpack(struct check_made *made, const char *out)
{
    struct unpack unpack = { .made = made,
                             .out = out,
                             .piece = mem_alloc(PIECE_BYTES) };
    bool end = false;
    bool ok = true;

    tool_bar_begin(&made->check->tool, TOOL_UNIT_MIB, 0);
    while (ok && !end) {
        ok = read_head(&unpack, &end) && (end || unpack_entry(&unpack));
    }
    ok = ok && read_end(&unpack);
    tool_bar_end(&made->check->tool);
    buf_free(&unpack.sums.text);
    mem_free(unpack.piece);
    return ok;
}
