/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SLOWLOG over measure/slowlog, and COMMANDLOG, which is Valkey's command for
 * the same log and for two others, which this server does not keep.
 */
#include "measure/slowlog.h"

#include "access/handlers.h"
#include "base/mem.h"
#include "command/help.h"
#include "engine/request.h"

enum {
    PIECE_ENTRIES = 32, /* shown while the log is locked once */
    HEADER_GAP = 16
};

/* The reply so far; a long log is shown in pieces. Entries that are added
 * meanwhile are not shown, and some of the oldest may be gone. */
struct listing {
    struct buf text; /* RESP, behind a gap for the header */
    struct reply reply;
    uint64_t left, count;
    uint64_t last_id;
};

static void
listing_free(void *state)
{
    struct listing *listing = state;

    buf_free(&listing->text);
    mem_free(listing);
}

static void
show_entry(void *ctx, const struct slowlog_entry *entry)
{
    struct listing *listing = ctx;
    struct reply *reply = &listing->reply;

    reply_array(reply, 6);
    reply_int(reply, (int64_t)entry->id);
    reply_int(reply, (int64_t)entry->time_s);
    reply_int(reply, (int64_t)entry->took_us);
    reply_array(reply, entry->argc);
    for (size_t i = 0; i < entry->argc; i++) {
        reply_bulk(reply, entry->argv[i]);
    }
    reply_bulk(reply, entry->addr);
    reply_bulk(reply, entry->name);
    listing->count++;
    listing->last_id = entry->id;
}

/* Appends one piece of the log. Returns true if there is more. */
static bool
show_piece(struct slowlog *log, struct listing *listing)
{
    const struct slowlog_visitor visitor = { .entry = show_entry,
                                             .ctx = listing,
                                             .before_id = listing->last_id };
    uint64_t want =
        listing->left < PIECE_ENTRIES ? listing->left : PIECE_ENTRIES;
    uint64_t shown = slowlog_visit(log, want, &visitor);

    listing->left -= shown;
    return shown == want && listing->left > 0 && listing->last_id > 0 &&
           !listing->text.failed;
}

/* Returns a new listing, or NULL without memory. */
static struct listing *
listing_new(const struct request *req, uint64_t count)
{
    static const char gap[HEADER_GAP];
    struct listing *listing = mem_try_zalloc(sizeof(*listing));
    struct slowlog *log = req->service->slowlog;

    if (listing == NULL) {
        return NULL;
    }
    listing->left = count;
    listing->text.limit = req->reply->buf->limit;
    /* Entries take about as much in RESP as in memory, so the text need not
     * move while it grows. */
    if (count > slowlog_length(log)) {
        (void)buf_reserve(&listing->text, slowlog_bytes(log));
        listing->text.failed = listing->text.over = false; /* less is enough */
    }
    listing->reply = (struct reply){ &listing->text, req->reply->resp };
    buf_append(&listing->text, gap, HEADER_GAP);
    return listing;
}

static enum err
show_all(struct request *req, uint64_t count)
{
    struct listing *listing = request_resumed(req);
    enum err err = OK;

    if (listing == NULL) {
        listing = listing_new(req, count);
    }
    if (listing == NULL) {
        return ERR_NOMEM;
    }
    while (err == OK && show_piece(req->service->slowlog, listing)) {
        err = request_is_late(req) ? ERR_AGAIN : OK;
    }
    if (listing->text.failed) {
        err = listing->text.over ? ERR_REPLY_LIMIT : ERR_NOMEM;
    } else if (err == OK) {
        reply_array(req->reply, listing->count);
        reply_give(req->reply, &listing->text, HEADER_GAP);
    }
    return request_end_piece(req, err, listing, listing_free, 0);
}

static enum err
show_entries(struct request *req, struct slice number)
{
    int64_t count;

    if (!slice_to_i64(number, &count) || count < -1) {
        return request_fail(req, ERR_CUSTOM,
                            "count should be greater than or equal to -1");
    }
    return show_all(req, count < 0 ? UINT64_MAX : (uint64_t)count);
}

/* Fails if COMMANDLOG names another log than the slow one. */
static enum err
check_type(struct request *req, struct slice type)
{
    if (slice_is_word(type, "slow")) {
        return OK;
    }
    if (slice_is_word(type, "large-request") ||
        slice_is_word(type, "large-reply")) {
        return request_fail(req, ERR_CUSTOM,
                            "this server keeps no log of type %.*s, only slow",
                            slice_shown(type), type.data);
    }
    return request_fail(req, ERR_CUSTOM,
                        "type should be one of the following: slow, "
                        "large-request, large-reply");
}

enum err
cmd_slowlog_get(struct request *req)
{
    if (args_left(&req->args) > 1) {
        return help_wrong_subcommand(req);
    }
    return show_entries(req, args_left(&req->args) == 1 ? args_bytes(&req->args)
                                                        : slice_lit("10"));
}

enum err
cmd_slowlog_len(struct request *req)
{
    reply_int(req->reply, (int64_t)slowlog_length(req->service->slowlog));
    return OK;
}

enum err
cmd_slowlog_reset(struct request *req)
{
    slowlog_reset(req->service->slowlog);
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_commandlog_get(struct request *req)
{
    enum err err = check_type(req, req->argv[3]);

    return err == OK ? show_entries(req, req->argv[2]) : err;
}

enum err
cmd_commandlog_len(struct request *req)
{
    enum err err = check_type(req, req->argv[2]);

    return err == OK ? cmd_slowlog_len(req) : err;
}

enum err
cmd_commandlog_reset(struct request *req)
{
    enum err err = check_type(req, req->argv[2]);

    return err == OK ? cmd_slowlog_reset(req) : err;
}
