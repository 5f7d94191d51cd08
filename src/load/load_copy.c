/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SCAN finds the filters; DUMP gives each as it is at one moment. If a filter
 * is too long for that, or the source has no DUMP, SCANDUMP gives its pieces.
 * The target gathers them under a temporary name; when the filter is complete,
 * it gets its own name. If the source changes the filter meanwhile, the pieces
 * may not fit together: then they are fetched once more.
 */
#include "load/load_copy.h"

#include "base/num.h"
#include "base/random.h"
#include "load/load_report.h"
#include "load/load_scan.h"
#include "load/load_target.h"

#include <inttypes.h>

enum {
    WINDOW = 64, /* filters that are asked for at once */
    WINDOW_BYTES = 8 * 1024 * 1024,
    ATTEMPTS = 3,
    PART_HEX = 16,
    PART_PIECES_MAX = 1 << 20,
};

struct copying {
    struct load *load;
    struct load_scan source;
    struct load_target target;
    bool no_dump;
    struct buf sizes; /* of the filters of one SCAN */
    char part[sizeof("bloomery-load:part:") + PART_HEX];
    uint64_t found, gone, pieces;
};

static void
send_key(struct copying *copying, const char *command, struct slice key)
{
    const struct slice words[] = { slice_of(command), key };

    load_link_send(&copying->source.link, words, 2);
}

/* ---- SCANDUMP ------------------------------------------------------------ */

static bool
pass_piece(struct copying *copying, struct slice key, uint64_t iterator,
           struct slice data)
{
    char digits[NUM_U64_MAX];
    const struct slice words[] = {
        slice_lit("BF.LOADCHUNK"),
        slice_of(copying->part),
        { digits, num_format_u64(iterator, digits) },
        data,
    };

    copying->pieces++;
    return load_target_command(&copying->target, copying->source.db, key, words,
                               4);
}

/* Passes bytes of the filter on. A piece's iterator is the offset behind it,
 * from 1, so a piece that is too long for the server can be cut. */
static bool
pass_bytes(struct copying *copying, struct slice key, uint64_t iterator,
           struct slice data)
{
    uint64_t begin = iterator - data.len;
    bool ok = true;

    for (size_t at = 0; ok && at < data.len;) {
        size_t len = data.len - at < copying->target.bulk_max
                         ? data.len - at
                         : (size_t)copying->target.bulk_max;

        ok = pass_piece(copying, key, begin + at + len,
                        (struct slice){ data.data + at, len });
        at += len;
    }
    return ok;
}

static bool
drop_part(struct copying *copying, struct slice key)
{
    const struct slice words[] = { slice_lit("DEL"), slice_of(copying->part) };

    return load_target_command(&copying->target, copying->source.db, key, words,
                               2);
}

static bool
is_refused_command(struct slice error)
{
    static const char *const starts[] = { "ERR unknown command", "NOPERM" };

    for (size_t i = 0; i < 2; i++) {
        if (error.len >= strlen(starts[i]) &&
            memcmp(error.data, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Says why the pieces of a filter cannot be had. valkey-bloom has no pieces;
 * then the filter is lost only because its dump is too long. */
static void
refuse_pieces(struct copying *copying, struct slice key, struct slice error)
{
    if (!copying->no_dump && is_refused_command(error)) {
        load_target_refuse(&copying->target, copying->source.db, key,
                           "its dump is longer than proto-max-bulk-len of the "
                           "server (%" PRIu64 "), and the source has no "
                           "BF.SCANDUMP: raise that option, or use --follow",
                           copying->target.bulk_max);
        return;
    }
    load_target_refuse(&copying->target, copying->source.db, key,
                       "the source refuses BF.SCANDUMP: %.*s",
                       resp_shown(error), error.data);
}

/* Loads the pieces under the temporary name. *ret_whole: they belong together.
 * *ret_over: there is nothing to repeat, since the source has replied with an
 * error, or the server has refused the header and would refuse every piece.
 */
static bool
gather(struct copying *copying, struct slice key, bool *ret_whole,
       bool *ret_over)
{
    struct buf header = { .limit = (size_t)copying->load->value_bytes };
    uint64_t iterator = 0, last = 0;
    struct slice data;
    bool ok = drop_part(copying, key);

    for (uint64_t n = 0; ok && n < PART_PIECES_MAX; n++) {
        ok = load_scan_piece(&copying->source, key, last, &iterator, &data);
        if (!ok || iterator == UINT64_MAX || iterator == 0) {
            break;
        }
        if (iterator <= last || (n > 0 && iterator <= data.len)) {
            ok = load_scan_complain(
                &copying->source,
                slice_lit("-bad iterator of BF.SCANDUMP\r\n"));
            break;
        }
        if (n == 0) {
            buf_append_slice(&header, data);
            ok = pass_piece(copying, key, iterator, data) &&
                 load_target_drain(&copying->target);
            if (ok && load_target_key(&copying->target, copying->source.db,
                                      key) == LOAD_KEY_LOST) {
                *ret_over = true;
                break;
            }
        } else {
            ok = pass_bytes(copying, key, iterator, data);
        }
        last = iterator;
    }
    if (ok && iterator == UINT64_MAX) {
        refuse_pieces(copying, key, data);
        copying->target.refused++;
        *ret_over = true;
    } else if (ok && !*ret_over) {
        ok = load_scan_piece(&copying->source, key, 0, &iterator, &data);
        *ret_whole =
            ok && !header.failed && slice_equal(data, buf_slice(&header));
    }
    buf_free(&header);
    return ok;
}

/* Gives the part its name and its time to live. */
static bool
name_part(struct copying *copying, struct slice key, int64_t at_ms)
{
    char digits[NUM_U64_MAX];
    const struct slice part = slice_of(copying->part);
    const struct slice rename[] = { slice_lit("RENAME"), part, key };
    const struct slice expire[] = {
        slice_lit("PEXPIREAT"),
        part,
        { digits, num_format_u64((uint64_t)at_ms, digits) },
    };

    if (at_ms > 0 && !load_target_command(&copying->target, copying->source.db,
                                          key, expire, 3)) {
        return false;
    }
    copying->target.restored++;
    return load_target_command(&copying->target, copying->source.db, key,
                               rename, 3);
}

static bool
copy_pieces(struct copying *copying, struct slice key, int64_t at_ms)
{
    bool whole = false, over = false, go = false;

    if (!load_target_claim_name(&copying->target, copying->source.db, key,
                                &go)) {
        return false;
    }
    if (!go) {
        return true;
    }
    for (int i = 0; i < ATTEMPTS && !whole && !over; i++) {
        if (!gather(copying, key, &whole, &over) ||
            !load_target_drain(&copying->target)) {
            return false;
        }
        over = over || load_target_key(&copying->target, copying->source.db,
                                       key) == LOAD_KEY_LOST;
    }
    if (whole && !over) {
        return name_part(copying, key, at_ms);
    }
    if (!over) {
        load_target_refuse(&copying->target, copying->source.db, key,
                           "clients write to it all the time: use --follow, "
                           "or copy it when they pause");
        copying->target.refused++;
    }
    return drop_part(copying, key);
}

/* ---- DUMP ---------------------------------------------------------------- */

/* Reads what BF.INFO key SIZE says: a number, or an array of one. */
static bool
take_size(struct copying *copying, uint64_t *ret_bytes)
{
    struct slice reply, rest;
    int64_t bytes = 0;

    if (!load_link_reply(&copying->source.link, &reply)) {
        return false;
    }
    if (resp_array(reply, &rest)) {
        reply = rest;
        (void)resp_element(&rest, &reply);
    }
    *ret_bytes = resp_integer(reply, &bytes) && bytes > 0 ? (uint64_t)bytes : 0;
    return true;
}

/* Takes the replies about one filter: its time to live and its dump. */
static bool
take_dump(struct copying *copying, struct slice key)
{
    struct slice reply, payload;
    int64_t at_ms = -2;

    if (!load_scan_take_expiry(&copying->source, &at_ms)) {
        return false;
    }
    if (!load_link_reply(&copying->source.link, &reply)) {
        return false;
    }
    if (resp_is_error(reply)) {
        struct slice error = resp_text(reply);

        copying->no_dump = copying->no_dump || is_refused_command(error);
        if (!copying->no_dump) {
            load_target_refuse(&copying->target, copying->source.db, key,
                               "the source refuses DUMP: %.*s",
                               resp_shown(error), error.data);
            copying->target.refused++;
        }
        return true;
    }
    payload = resp_text(reply);
    if (payload.len == 0) {
        copying->gone++; /* deleted or expired since SCAN */
        return true;
    }
    return load_target_restore(&copying->target, copying->source.db, key,
                               at_ms > 0 ? (uint64_t)at_ms : 0, payload,
                               slice_lit(""));
}

/* Copies a filter by pieces. */
static bool
copy_long(struct copying *copying, struct slice key)
{
    int64_t at_ms = -2;

    if (!load_scan_expiry(&copying->source, key, &at_ms)) {
        return false;
    }
    copying->gone += at_ms == -2;
    return at_ms == -2 || copy_pieces(copying, key, at_ms);
}

/* ---- one SCAN ------------------------------------------------------------ */

/* Leaves the names out that came before (SCAN may repeat a name, and a Bloomery
 * lists filters under both types), and those that --existing skip spares. */
static bool
spare(struct copying *copying, struct buf *names)
{
    struct buf left = { 0 };
    struct slice name;
    size_t at = 0;
    bool ok = true;

    while (ok && buf_next_item(names, &at, &name)) {
        bool go = true;

        if (load_target_key(&copying->target, copying->source.db, name) !=
            LOAD_KEY_UNKNOWN) {
            continue;
        }
        copying->found++;
        ok = copying->load->existing != LOAD_EXISTING_SKIP ||
             load_target_claim(&copying->target, copying->source.db, name, &go);
        if (ok && go) {
            buf_append_item(&left, name);
        }
    }
    buf_exchange(&left, names);
    ok = ok && !names->failed;
    buf_free(&left);
    return ok;
}

static bool
ask_sizes(struct copying *copying)
{
    struct slice name;
    size_t at = 0;
    uint64_t bytes;

    buf_reset(&copying->sizes, SIZE_MAX);
    while (buf_next_item(&copying->source.names, &at, &name)) {
        const struct slice words[] = { slice_lit("BF.INFO"), name,
                                       slice_lit("SIZE") };

        load_link_send(&copying->source.link, words, 3);
    }
    at = 0;
    while (buf_next_item(&copying->source.names, &at, &name)) {
        if (!take_size(copying, &bytes)) {
            return false;
        }
        buf_append(&copying->sizes, &bytes, sizeof(bytes));
    }
    return !copying->sizes.failed;
}

static bool
is_long(const struct copying *copying, uint64_t bytes)
{
    return copying->load->scandump || copying->no_dump ||
           bytes + 4096 > copying->load->value_bytes ||
           bytes + 4096 > copying->target.bulk_max;
}

static uint64_t
size_at(const struct copying *copying, size_t index)
{
    uint64_t bytes;

    memcpy(&bytes, copying->sizes.data + index * sizeof(bytes), sizeof(bytes));
    return bytes;
}

/* Asks for the dumps of some filters, from *at and *index on, and moves these
 * behind them. Returns how many filters. */
static size_t
ask_dumps(struct copying *copying, size_t *at, size_t *index)
{
    uint64_t bytes = 0;
    struct slice name;
    size_t next = *at;
    size_t count = 0;

    while (count < WINDOW && bytes < WINDOW_BYTES &&
           buf_next_item(&copying->source.names, &next, &name) &&
           !is_long(copying, size_at(copying, *index))) {
        bytes += size_at(copying, (*index)++);
        send_key(copying, load_scan_expiry_command(&copying->source), name);
        send_key(copying, "DUMP", name);
        *at = next;
        count++;
    }
    return count;
}

static bool
drop_replies(struct copying *copying, size_t count)
{
    struct slice reply;

    for (; count > 0; count--) {
        if (!load_link_reply(&copying->source.link, &reply)) {
            return false;
        }
    }
    return true;
}

/* Copies some filters by DUMP, and moves *at and *index behind them. If the
 * source has no DUMP, these stay at the first filter that is not copied. */
static bool
copy_window(struct copying *copying, size_t *at, size_t *index)
{
    size_t reply_at = *at;
    size_t count = ask_dumps(copying, at, index);

    for (; count > 0; count--) {
        size_t own_at = reply_at;
        struct slice name;

        CHECK(buf_next_item(&copying->source.names, &reply_at, &name));
        if (!take_dump(copying, name)) {
            return false;
        }
        if (copying->no_dump) {
            /* The others that were asked for have failed in the same way. */
            *at = own_at;
            *index -= count;
            return drop_replies(copying, 2 * (count - 1));
        }
        tool_bar_add(&copying->load->tool, 1);
    }
    return true;
}

static bool
copy_names(void *ctx)
{
    struct copying *copying = ctx;
    size_t at = 0, index = 0;

    if (!spare(copying, &copying->source.names) || !ask_sizes(copying)) {
        return false;
    }
    while (at < copying->source.names.len) {
        struct slice name;
        size_t peek = at;

        CHECK(buf_next_item(&copying->source.names, &peek, &name));
        if (!is_long(copying, size_at(copying, index))) {
            if (!copy_window(copying, &at, &index)) {
                return false;
            }
            continue;
        }
        if (!copy_long(copying, name)) {
            return false;
        }
        tool_bar_add(&copying->load->tool, 1);
        at = peek;
        index++;
    }
    return load_target_push(&copying->target);
}

static void
report_copy(struct copying *copying, bool ok)
{
    load_report_begin(copying->load, slice_of(copying->load->from.address));
    load_report_number("filters found", copying->found);
    load_target_report(&copying->target);
    load_report_number("gone meanwhile", copying->gone);
    if (copying->pieces > 0) {
        load_report_number("pieces (SCANDUMP)", copying->pieces);
    }
    if (!ok) {
        tool_complain(&copying->load->tool, LOAD_INCOMPLETE,
                      "stopped: with --existing skip, the same command brings "
                      "the rest");
    }
}

void
load_copy(struct load *load)
{
    static struct copying copying;
    size_t prefix = sizeof("bloomery-load:part:") - 1;
    bool ok;

    copying.load = load;
    memcpy(copying.part, "bloomery-load:part:", prefix);
    random_hex(copying.part + prefix, PART_HEX);
    if (!load_scan_open(load, &copying.source)) {
        return;
    }
    if (!load_target_open(load, &copying.target)) {
        load_scan_close(&copying.source);
        return;
    }
    tool_bar_begin(&load->tool, TOOL_UNIT_ITEMS, 0);
    ok = load_scan_all(&copying.source, copy_names, &copying);
    ok = load_target_drain(&copying.target) && ok;
    tool_bar_end(&load->tool);
    report_copy(&copying, ok);
    load_scan_close(&copying.source);
    load_target_close(&copying.target);
    buf_free(&copying.sizes);
}
