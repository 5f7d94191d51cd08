/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_text.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

enum { READ_BYTES = 1024 * 1024 };

/* What spreadsheets put in front of UTF-8. */
#define MARK "\xef\xbb\xbf"

/* One file that is being read. */
struct reading {
    struct load_text *text;
    const char *path;
    int fd;
    struct slice before; /* bytes that come before those of fd */
    uint64_t offset;     /* where buf.data begins in the file */
    struct buf buf;      /* bytes that are not cut yet */
    struct buf cell;     /* a quoted cell without its quotes */
    bool named; /* the first record, with the names, is still to come */
    load_item_fn *visit;
    void *ctx;
};

bool
load_text_begin(struct load *load, struct load_text *ret_text)
{
    uint64_t number = 0;

    *ret_text = (struct load_text){ .load = load, .delimiter = ',' };
    if ((load->csv != NULL && load->nul) ||
        (load->csv == NULL && load->delimiter != NULL)) {
        tool_complain(&load->tool, LOAD_USAGE,
                      "--nul and --csv exclude each other, and --delimiter "
                      "needs --csv");
        return false;
    }
    if (load->nul) {
        ret_text->form = LOAD_TEXT_NUL;
    }
    if (load->csv == NULL) {
        return true;
    }
    ret_text->form = LOAD_TEXT_CSV;
    if (load->delimiter != NULL) {
        if (strcmp(load->delimiter, "\\t") == 0) {
            ret_text->delimiter = '\t';
        } else if (strlen(load->delimiter) == 1 &&
                   strchr("\"\r\n", load->delimiter[0]) == NULL) {
            ret_text->delimiter = load->delimiter[0];
        } else {
            tool_complain(&load->tool, LOAD_USAGE,
                          "--delimiter: is one character, or \\t");
            return false;
        }
    }
    if (!slice_to_u64(slice_of(load->csv), &number)) {
        ret_text->column = load->csv;
    } else if (number == 0) {
        tool_complain(&load->tool, LOAD_USAGE, "--csv: the first column is 1");
        return false;
    } else {
        ret_text->column_at = number - 1;
    }
    return true;
}

/* Makes space for the next bytes. False: the reason was printed. */
static bool
reserve(struct load *load, const char *path, struct buf *buf)
{
    if (buf_reserve(buf, READ_BYTES) == NULL) {
        tool_complain(&load->tool, LOAD_UNREADABLE,
                      "%s: an item is longer than --max-value, or memory is "
                      "short",
                      path);
        return false;
    }
    return true;
}

bool
load_text_fill(struct load *load, const char *path, int fd, struct buf *buf,
               bool *ret_failed)
{
    ssize_t got;

    if (fd < 0) {
        return false;
    }
    if (!reserve(load, path, buf)) {
        *ret_failed = true;
        return false;
    }
    do {
        got = read(fd, buf->data + buf->len, buf->capacity - buf->len);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        tool_complain(&load->tool, LOAD_UNREADABLE, "%s: cannot be read: %s",
                      path, strerror(errno));
        *ret_failed = true;
        return false;
    }
    buf->len += (size_t)got;
    return got > 0;
}

static bool
deliver(struct reading *reading, struct slice item)
{
    if (item.len == 0) {
        reading->text->left_out++;
        return true;
    }
    reading->text->items++;
    return reading->visit(reading->ctx, item);
}

/* ---- lines and NUL ------------------------------------------------------- */

static bool
cut_lines(struct reading *reading, bool last, size_t *ret_used)
{
    char end = reading->text->form == LOAD_TEXT_NUL ? '\0' : '\n';
    const char *at = reading->buf.data;
    const char *stop = at + reading->buf.len;

    while (at < stop) {
        const char *found = memchr(at, end, (size_t)(stop - at));
        struct slice item = { at,
                              (size_t)((found != NULL ? found : stop) - at) };

        if (found == NULL && !last) {
            break;
        }
        at += item.len + (found != NULL);
        if (end == '\n' && item.len > 0 && item.data[item.len - 1] == '\r') {
            item.len--;
        }
        if (!deliver(reading, item)) {
            return false;
        }
    }
    *ret_used = (size_t)(at - reading->buf.data);
    return true;
}

/* ---- CSV ----------------------------------------------------------------- */

enum cell_end { CELL_MORE, CELL_NEXT, CELL_LAST, CELL_BROKEN };

/* Cuts a quoted cell, whose text goes to reading->cell. */
static enum cell_end
cut_quoted(struct reading *reading, const char **at, const char *stop,
           bool last, struct slice *ret_cell)
{
    const char *from = *at + 1;

    buf_reset(&reading->cell, READ_BYTES);
    for (;;) {
        const char *quote = memchr(from, '"', (size_t)(stop - from));

        if (quote == NULL) {
            return last ? CELL_BROKEN : CELL_MORE;
        }
        if (quote + 1 == stop && !last) {
            return CELL_MORE; /* a second quote may follow */
        }
        buf_append(&reading->cell, from, (size_t)(quote - from));
        from = quote + 1;
        if (from == stop || *from != '"') {
            break;
        }
        buf_append(&reading->cell, "\"", 1);
        from++;
    }
    *ret_cell = buf_slice(&reading->cell);
    if (from < stop && *from == '\r') {
        if (from + 1 == stop && !last) {
            return CELL_MORE;
        }
        from++;
    }
    *at = from + (from < stop);
    if (from == stop || *from == '\n') {
        return CELL_LAST;
    }
    return *from == reading->text->delimiter ? CELL_NEXT : CELL_BROKEN;
}

/* Cuts the next cell, and moves *at behind its delimiter or line end. */
static enum cell_end
cut_cell(struct reading *reading, const char **at, const char *stop, bool last,
         struct slice *ret_cell)
{
    const char *from = *at;
    const char *end = from;

    if (from < stop && *from == '"') {
        return cut_quoted(reading, at, stop, last, ret_cell);
    }
    while (end < stop && *end != '\n' && *end != reading->text->delimiter) {
        end++;
    }
    if (end == stop && !last) {
        return CELL_MORE;
    }
    *at = end + (end < stop);
    *ret_cell = (struct slice){ from, (size_t)(end - from) };
    if (end < stop && *end == reading->text->delimiter) {
        return CELL_NEXT;
    }
    if (ret_cell->len > 0 && ret_cell->data[ret_cell->len - 1] == '\r') {
        ret_cell->len--;
    }
    return CELL_LAST;
}

static void
complain_record(struct reading *reading, const char *at, const char *what)
{
    tool_complain(&reading->text->load->tool, LOAD_UNREADABLE,
                  "%s: the record at offset %" PRIu64 " %s", reading->path,
                  reading->offset + (uint64_t)(at - reading->buf.data), what);
}

/* Cuts one record. Returns CELL_MORE if it is incomplete, CELL_BROKEN after a
 * printed failure. A record of one empty cell is an empty line. */
static enum cell_end
cut_record(struct reading *reading, const char **at, const char *stop,
           bool last, struct slice *ret_item)
{
    struct load_text *text = reading->text;
    const char *begin = *at;
    bool found = false, blank = true;
    enum cell_end end = CELL_NEXT;
    uint64_t i;

    *ret_item = slice_lit("");
    for (i = 0; end == CELL_NEXT; i++) {
        struct slice cell;

        end = cut_cell(reading, at, stop, last, &cell);
        if (end == CELL_MORE) {
            return end;
        }
        if (end == CELL_BROKEN || reading->cell.failed) {
            complain_record(reading, begin,
                            "has a quoted cell that does not end as it should");
            return CELL_BROKEN;
        }
        blank = blank && i == 0 && cell.len == 0;
        if (reading->named && !found &&
            slice_equal(cell, slice_of(text->column))) {
            text->column_at = i;
            found = true;
        } else if (!reading->named && i == text->column_at) {
            *ret_item = cell;
            found = true;
            if (cell.data == reading->cell.data && end == CELL_NEXT) {
                break; /* a later cell would overwrite it */
            }
        }
    }
    if (!found && (reading->named || !blank)) {
        complain_record(reading, begin,
                        reading->named ? "does not name the column of --csv"
                                       : "has too few columns");
        return CELL_BROKEN;
    }
    return end;
}

/* Moves behind the cells that follow a quoted one in its record. */
static enum cell_end
skip_record(struct reading *reading, const char **at, const char *stop,
            bool last)
{
    const struct buf kept = reading->cell;
    enum cell_end end = CELL_NEXT;
    struct slice cell;

    reading->cell = (struct buf){ .limit = kept.limit };
    while (end == CELL_NEXT) {
        end = cut_cell(reading, at, stop, last, &cell);
    }
    buf_free(&reading->cell);
    reading->cell = kept;
    return end;
}

/* Returns the bytes in front of the first cell. They are only known when the
 * file has as many, or has ended: *ret_more. */
static size_t
mark_bytes(const struct reading *reading, bool last, bool *ret_more)
{
    size_t all = strlen(MARK);
    size_t len = reading->buf.len < all ? reading->buf.len : all;
    bool fits = reading->offset == 0 && len > 0 &&
                memcmp(reading->buf.data, MARK, len) == 0;

    *ret_more = fits && len < all && !last;
    return fits && len == all ? all : 0;
}

static bool
cut_records(struct reading *reading, bool last, size_t *ret_used)
{
    const char *at = reading->buf.data;
    const char *stop = at + reading->buf.len;
    bool more;

    at += mark_bytes(reading, last, &more);
    if (more) {
        return true;
    }
    while (at < stop) {
        const char *begin = at;
        struct slice item;
        enum cell_end end = cut_record(reading, &at, stop, last, &item);

        if (end == CELL_NEXT) {
            end = skip_record(reading, &at, stop, last);
            if (end == CELL_BROKEN) {
                complain_record(reading, begin,
                                "has a quoted cell that does not end as it "
                                "should");
            }
        }
        if (end == CELL_BROKEN) {
            return false;
        }
        if (end == CELL_MORE) {
            at = begin;
            break;
        }
        if (reading->named) {
            reading->named = false;
        } else if (!deliver(reading, item)) {
            return false;
        }
    }
    *ret_used = (size_t)(at - reading->buf.data);
    return true;
}

/* ---- a whole file -------------------------------------------------------- */

/* Gets the next bytes, first those that were read before, a piece at a time, so
 * that the buffer needs space for one item only. */
static bool
fill(struct reading *reading, bool *ret_failed)
{
    struct load *load = reading->text->load;
    struct slice piece = reading->before;

    if (piece.len == 0) {
        return load_text_fill(load, reading->path, reading->fd, &reading->buf,
                              ret_failed);
    }
    if (!reserve(load, reading->path, &reading->buf)) {
        *ret_failed = true;
        return false;
    }
    if (piece.len > READ_BYTES) {
        piece.len = READ_BYTES;
    }
    buf_append_slice(&reading->buf, piece);
    reading->before.data += piece.len;
    reading->before.len -= piece.len;
    return true;
}

bool
load_text_read(struct load_text *text, const char *path, int fd,
               struct slice before, load_item_fn *visit, void *ctx)
{
    size_t limit = (size_t)text->load->value_bytes + READ_BYTES;
    struct reading reading = { .text = text,
                               .path = path,
                               .fd = fd,
                               .before = before,
                               .buf = { .limit = limit },
                               .cell = { .limit = limit },
                               .named = text->column != NULL,
                               .visit = visit,
                               .ctx = ctx };
    bool failed = false;
    bool more = true;

    while (more && !failed) {
        size_t used = 0;

        more = fill(&reading, &failed);
        failed = failed || !(text->form == LOAD_TEXT_CSV
                                 ? cut_records(&reading, !more, &used)
                                 : cut_lines(&reading, !more, &used));
        buf_consume(&reading.buf, used);
        reading.offset += used;
    }
    buf_free(&reading.buf);
    buf_free(&reading.cell);
    return !failed;
}
