/* SPDX-License-Identifier: BSD-3-Clause
 *
 * At most one question is on its way. While pieces are on their way, nothing is
 * asked, unless a valid copy has to stay fresh: otherwise it would be unknown
 * whether an error answers the question or the request for a piece. An error
 * that may answer a question ends the connection.
 */
#include "local/local_copy.h"

#include "base/little.h"
#include "base/mem.h"
#include "core/ageing.h"
#include "core/filter.h"
#include "core/payload.h"
#include "core/stream.h"
#include "local/local_frame.h"
#include "proto/compose.h"
#include "proto/resp.h"

#include <stdio.h>

enum {
    PIECE_BYTES = 256 * 1024,
    PIECES_AHEAD = 4,
    ASKS = 4, /* questions in max_stale_ms */
    KEPT_MAX_BYTES = 256 * 1024 * 1024,
    DELETED_SHARE = 10, /* a tenth of the items */
    NUMBER_MAX = 24,
    ERROR_MAX = 200
};

struct local_copy {
    struct local_options options;
    unsigned left_out;
    enum local_stage stage;
    enum bloomery_local_code fault;
    char error[ERROR_MAX];
    uint64_t loads, changes;
    bool missing;

    /* The copy that answers. Without a filter it says that the key is missing.
     */
    bool has_copy, intact; /* intact: only adds and deletions were told since
                              its load began */
    struct bloom *bloom;
    uint64_t incarnation, deadline_ms;
    uint64_t server_ms; /* the server's clock at the last answer that was for
                           this copy: an ageing one goes by it */
    uint64_t deleted, deleted_ms; /* items deleted since its load began, and
                                     when the first was told */

    /* The question on its way. */
    bool asks, asks_check; /* asks_check: it was sent after a load's last piece
                            */
    uint64_t asked_ms, next_ask_ms;

    /* The load. */
    struct bloom *part; /* NULL: the header is not there yet */
    uint64_t part_incarnation;
    bool header_asked;
    uint64_t next_place, got_place; /* places in the stream: the next to ask
                                       for, and how far it has arrived */
    unsigned on_way;                /* replies that are due */
    unsigned dropped;               /* how many of these to ignore: their load
                                       was given up */
    struct buf kept;                /* struct told_item, each told since the
                                       load began */
};

struct told_item {
    struct bloom_hash hash;
    uint64_t ms;
};

/* ---- life ---------------------------------------------------------------- */

struct local_copy *
local_copy_new(const struct local_options *options)
{
    struct local_copy *copy = mem_try_zalloc(sizeof(*copy));

    if (copy != NULL) {
        copy->options = *options;
        copy->kept.limit = KEPT_MAX_BYTES;
    }
    return copy;
}

/* Gives up a load. The replies that are on their way will be ignored. */
static void
drop_load(struct local_copy *copy)
{
    bloom_free(copy->part, copy->options.env);
    copy->part = NULL;
    copy->header_asked = false;
    copy->dropped = copy->on_way;
    buf_free(&copy->kept);
}

void
local_copy_free(struct local_copy *copy)
{
    if (copy != NULL) {
        drop_load(copy);
        bloom_free(copy->bloom, copy->options.env);
        mem_free(copy);
    }
}

void
local_copy_leave_out(struct local_copy *copy, unsigned rules)
{
    copy->left_out = rules;
}

static void
note_fault(struct local_copy *copy, enum bloomery_local_code fault,
           const char *text)
{
    copy->fault = fault;
    (void)snprintf(copy->error, sizeof(copy->error), "%s", text);
}

/* Notes why the copy's own filter fails. */
static void
note_status(struct local_copy *copy, const char *what, enum bloom_status status)
{
    copy->fault = status == BLOOM_NOMEM   ? BLOOMERY_LOCAL_NOMEM
                  : status == BLOOM_LIMIT ? BLOOMERY_LOCAL_LIMIT
                                          : BLOOMERY_LOCAL_FOREIGN;
    (void)snprintf(copy->error, sizeof(copy->error), "%s: %s", what,
                   bloom_status_text(status));
}

/* Notes an error that the server replied. */
static void
note_refusal(struct local_copy *copy, struct slice text)
{
    struct slice rest = text;
    bool unknown = slice_take(&rest, "ERR unknown command");

    copy->fault = unknown ? BLOOMERY_LOCAL_FOREIGN : BLOOMERY_LOCAL_REFUSED;
    (void)snprintf(copy->error, sizeof(copy->error), "%s%.*s",
                   unknown ? "the server is no Bloomery server: " : "",
                   resp_shown(text), text.data);
}

void
local_copy_facts(const struct local_copy *copy, struct local_facts *ret_facts)
{
    *ret_facts = (struct local_facts){ .has_copy = copy->has_copy,
                                       .bloom = copy->bloom,
                                       .missing = copy->missing,
                                       .deadline_ms = copy->deadline_ms,
                                       .server_ms = copy->server_ms,
                                       .loads = copy->loads,
                                       .changes = copy->changes,
                                       .fault = copy->fault,
                                       .error = copy->error };
}

enum local_stage
local_copy_stage(const struct local_copy *copy)
{
    return copy->stage;
}

/* Plans the next load, which an answer begins. */
static void
want_load(struct local_copy *copy, uint64_t when_ms)
{
    drop_load(copy);
    copy->stage = LOCAL_WANTED;
    copy->next_ask_ms = when_ms;
}

void
local_copy_link(struct local_copy *copy, uint64_t now_ms)
{
    copy->asks = false;
    copy->on_way = 0;
    want_load(copy, now_ms);
}

void
local_copy_cut(struct local_copy *copy)
{
    drop_load(copy);
    copy->stage = LOCAL_UNLINKED;
    copy->intact = false;
    copy->asks = false;
    copy->on_way = 0;
    copy->dropped = 0;
}

/* ---- the copy ------------------------------------------------------------ */

/* Handles that the filter has changed, in a way that was not told. */
static void
on_changed(struct local_copy *copy, uint64_t now_ms)
{
    copy->changes += copy->intact;
    copy->intact = false;
    if (copy->stage != LOCAL_WANTED) {
        want_load(copy, now_ms);
    }
}

/* Adds an item, as the server did. */
static enum bloom_status
add_item(const struct local_copy *copy, struct bloom *bloom,
         const struct told_item *item)
{
    bool added;

    if ((bloom_kind(bloom) == BLOOM_AGEING) != (item->ms > 0)) {
        return BLOOM_INVALID;
    }
    return item->ms > 0
               ? bloom_add_at(bloom, copy->options.env, item->hash, item->ms,
                              &added)
               : bloom_add(bloom, copy->options.env, item->hash, &added);
}

/* Adds the told items to the copy, and keeps them for a load. */
static void
on_add(struct local_copy *copy, struct slice pairs, uint64_t ms,
       uint64_t now_ms)
{
    bool loads = copy->stage == LOCAL_LOADING || copy->stage == LOCAL_CHECKING;

    for (; pairs.len > 0;
         pairs.data += LOCAL_PAIR_BYTES, pairs.len -= LOCAL_PAIR_BYTES) {
        const uint8_t *at = (const uint8_t *)pairs.data;
        struct told_item item = { .hash = { get_u64(at), get_u64(at + 8) },
                                  .ms = ms };

        enum bloom_status status = BLOOM_OK;

        if (copy->intact) {
            status = copy->bloom != NULL ? add_item(copy, copy->bloom, &item)
                                         : BLOOM_INVALID;
        }
        if (status != BLOOM_OK) {
            note_status(copy, "an item cannot be added to the copy", status);
            on_changed(copy, now_ms);
            return;
        }
        if (loads && (copy->left_out & LOCAL_WITHOUT_GATHERED) == 0) {
            buf_append(&copy->kept, &item, sizeof(item));
        }
    }
    if (copy->kept.failed) {
        note_fault(copy, BLOOMERY_LOCAL_NOMEM,
                   "too many items are added while it loads");
        want_load(copy, now_ms + copy->options.max_stale_ms);
    }
}

static void
on_deleted(struct local_copy *copy, uint64_t count, uint64_t now_ms)
{
    if (copy->deleted == 0) {
        copy->deleted_ms = now_ms;
    }
    copy->deleted =
        count > UINT64_MAX - copy->deleted ? UINT64_MAX : copy->deleted + count;
}

/* Returns whether a valid copy has too many deleted items. */
static bool
is_to_be_refreshed(const struct local_copy *copy, uint64_t now_ms)
{
    struct bloom_info info = { .struct_size = sizeof(info) };

    if (copy->stage != LOCAL_LOADED || copy->deleted == 0 ||
        copy->bloom == NULL) {
        return false;
    }
    bloom_get_info(copy->bloom, &info);
    return now_ms - copy->deleted_ms >= copy->options.refresh_ms ||
           copy->deleted > info.items / DELETED_SHARE;
}

/* ---- the load ------------------------------------------------------------ */

static void
begin_load(struct local_copy *copy, uint64_t incarnation)
{
    drop_load(copy);
    copy->stage = LOCAL_LOADING;
    copy->part_incarnation = incarnation;
    copy->next_place = 0;
    copy->got_place = 0;
    copy->deleted = 0;
}

/* Frees a filter that the copy does not have any more. */
static void
free_swapped(const struct local_copy *copy, struct bloom *old)
{
    if (copy->options.on_swap != NULL) {
        copy->options.on_swap(copy->options.ctx);
    }
    bloom_free(old, copy->options.env);
}

/* Puts what was loaded in the place of the copy. */
static void
finish_load(struct local_copy *copy, uint64_t server_ms, uint64_t deadline_ms,
            uint64_t now_ms)
{
    struct bloom *old;

    for (size_t at = 0; at < copy->kept.len; at += sizeof(struct told_item)) {
        struct told_item item;
        enum bloom_status status;

        memcpy(&item, copy->kept.data + at, sizeof(item));
        status = add_item(copy, copy->part, &item);
        if (status != BLOOM_OK) {
            note_status(copy, "an item cannot be added to the copy", status);
            want_load(copy, now_ms + copy->options.max_stale_ms);
            return;
        }
    }
    old = copy->bloom;
    copy->bloom = copy->part;
    copy->part = NULL;
    copy->incarnation = copy->part_incarnation;
    copy->server_ms = server_ms;
    copy->deadline_ms = deadline_ms;
    copy->has_copy = true;
    copy->intact = true;
    copy->stage = LOCAL_LOADED;
    copy->loads++;
    note_fault(copy, BLOOMERY_LOCAL_OK, "");
    drop_load(copy);
    free_swapped(copy, old);
}

/* Handles a missing key: there is no copy, or one without items. */
static void
on_missing(struct local_copy *copy, uint64_t fresh_until_ms)
{
    struct bloom *old = copy->bloom;

    drop_load(copy);
    copy->bloom = NULL;
    copy->deleted = 0;
    copy->stage = LOCAL_WANTED;
    copy->has_copy = copy->options.missing_is_absent;
    copy->intact = false;
    copy->missing = true;
    copy->deadline_ms = fresh_until_ms;
    free_swapped(copy, old);
}

/* Goes on with a load after a piece has come: after the last, it is checked. */
static void
look_at_load(struct local_copy *copy, uint64_t now_ms)
{
    if (bloom_is_incomplete(copy->part)) {
        return;
    }
    if ((copy->left_out & LOCAL_WITHOUT_CHECK) != 0) {
        finish_load(copy, copy->server_ms, now_ms + copy->options.max_stale_ms,
                    now_ms);
        return;
    }
    copy->stage = LOCAL_CHECKING;
    copy->next_ask_ms = now_ms;
}

/* Takes the bytes of a piece, or the header. False: they are neither. */
static bool
take_bytes(struct local_copy *copy, int64_t iterator, struct slice bytes)
{
    uint64_t left;
    struct stream_chunk chunk = { copy->got_place, bytes.data, bytes.len };
    bool changed;

    if (copy->part == NULL) {
        enum bloom_status status = payload_read_header(
            bytes.data, bytes.len, copy->options.env, &copy->part);

        if (status != BLOOM_OK) {
            note_status(copy, "the filter cannot be copied", status);
        }
        return status == BLOOM_OK && iterator == 1;
    }
    left = stream_left(copy->part, copy->got_place);
    if (bytes.len != (left < PIECE_BYTES ? left : PIECE_BYTES) ||
        (uint64_t)iterator != copy->got_place + bytes.len + 1 ||
        stream_write(copy->part, copy->options.env, &chunk, false, &changed) !=
            STREAM_OK) {
        note_fault(copy, BLOOMERY_LOCAL_FOREIGN,
                   "a piece of the filter does not fit");
        return false;
    }
    copy->got_place += bytes.len;
    return true;
}

/* Takes a reply to BF.SCANDUMP; a bad one ends the load. False: nothing was
 * asked. */
static bool
take_reply(struct local_copy *copy, struct slice value, uint64_t now_ms)
{
    struct slice rest, number, bytes;
    int64_t iterator = 0;
    bool is_dump = resp_array(value, &rest) && resp_element(&rest, &number) &&
                   resp_integer(number, &iterator) &&
                   resp_element(&rest, &bytes) && bytes.len > 0 &&
                   bytes.data[0] == '$';

    copy->on_way--;
    if (copy->dropped > 0) {
        copy->dropped--;
        return true;
    }
    if (copy->stage != LOCAL_LOADING) {
        note_fault(copy, BLOOMERY_LOCAL_FOREIGN,
                   "the server answers what was not asked");
        return false;
    }
    if (resp_is_error(value)) {
        note_refusal(copy, resp_text(value));
    }
    if (!is_dump || !take_bytes(copy, iterator, resp_text(bytes))) {
        want_load(copy, now_ms + copy->options.max_stale_ms / ASKS);
        return true;
    }
    look_at_load(copy, now_ms);
    return true;
}

/* ---- what the server says ------------------------------------------------ */

static void
on_answer(struct local_copy *copy, const struct local_frame *frame,
          uint64_t now_ms)
{
    uint64_t fresh_until_ms =
        copy->options.max_stale_ms +
        ((copy->left_out & LOCAL_WITHOUT_SENT) != 0 ? now_ms : copy->asked_ms);
    bool revives = (copy->left_out & LOCAL_WITHOUT_CHANGED) != 0;

    copy->asks = false;
    if (frame->missing) {
        on_missing(copy, fresh_until_ms);
        return;
    }
    copy->missing = false;
    if (copy->intact && frame->incarnation != copy->incarnation) {
        on_changed(copy, now_ms);
    }
    if (copy->intact) { /* else adds that renew items may be missing */
        copy->server_ms = frame->ms;
    }
    if (copy->has_copy && (copy->intact || revives) &&
        fresh_until_ms > copy->deadline_ms) {
        copy->deadline_ms = fresh_until_ms;
    }
    if (copy->stage == LOCAL_WANTED) {
        begin_load(copy, frame->incarnation);
    } else if (copy->stage == LOCAL_CHECKING && !copy->asks_check) {
        copy->next_ask_ms = now_ms;
    } else if (copy->stage == LOCAL_CHECKING &&
               frame->incarnation == copy->part_incarnation) {
        finish_load(copy, frame->ms, fresh_until_ms, now_ms);
    } else if (copy->stage == LOCAL_CHECKING) {
        want_load(copy, now_ms);
    }
}

static bool
take_push(struct local_copy *copy, struct slice value, uint64_t now_ms)
{
    struct local_frame frame;

    if (!local_frame_read(value, copy->options.key, &frame)) {
        return true; /* another kind of push, or about another key */
    }
    switch (frame.kind) {
    case LOCAL_FRAME_IS:
        if (!copy->asks) {
            note_fault(copy, BLOOMERY_LOCAL_FOREIGN,
                       "the server answers what was not asked");
            return false;
        }
        on_answer(copy, &frame, now_ms);
        break;
    case LOCAL_FRAME_ADD:
        on_add(copy, frame.pairs, frame.ms, now_ms);
        break;
    case LOCAL_FRAME_DELETED:
        on_deleted(copy, frame.count, now_ms);
        break;
    case LOCAL_FRAME_CHANGED:
        on_changed(copy, now_ms);
        break;
    }
    return true;
}

bool
local_copy_take(struct local_copy *copy, struct slice value, uint64_t now_ms)
{
    if (value.data[0] == '>') {
        return take_push(copy, value, now_ms);
    }
    if (resp_is_error(value) && copy->asks) {
        note_refusal(copy, resp_text(value));
        return false;
    }
    if (copy->on_way == 0) {
        note_fault(copy, BLOOMERY_LOCAL_FOREIGN,
                   "the server answers what was not asked");
        return false;
    }
    return take_reply(copy, value, now_ms);
}

/* ---- what is sent -------------------------------------------------------- */

static void
say_ask(struct local_copy *copy, uint64_t now_ms, struct buf *out)
{
    const struct slice words[] = { slice_lit("BF.SUBSCRIBE"),
                                   copy->options.key };

    compose_command(out, words, 2);
    copy->asks = true;
    copy->asks_check = copy->stage == LOCAL_CHECKING;
    copy->asked_ms = now_ms;
    copy->next_ask_ms = now_ms + copy->options.max_stale_ms / ASKS;
}

/* Asks for the header, or for a piece. */
static void
say_dump(struct local_copy *copy, uint64_t iterator, uint64_t bytes,
         struct buf *out)
{
    char place[NUMBER_MAX], count[NUMBER_MAX], turn[NUMBER_MAX];
    uint64_t at = copy->part != NULL ? ageing_turn(copy->part) : 0;
    struct slice words[] = {
        slice_lit("BF.SCANDUMP"),
        copy->options.key,
        { NULL, 0 },
        slice_lit("BYTES"),
        { NULL, 0 },
        slice_lit("TURN"),
        { NULL, 0 },
    };

    (void)snprintf(place, sizeof(place), "%llu", (unsigned long long)iterator);
    (void)snprintf(count, sizeof(count), "%llu", (unsigned long long)bytes);
    (void)snprintf(turn, sizeof(turn), "%llu", (unsigned long long)at);
    words[2] = slice_of(place);
    words[4] = slice_of(count);
    words[6] = slice_of(turn);
    compose_command(out, words, 7);
    copy->on_way++;
}

static void
say_load(struct local_copy *copy, struct buf *out)
{
    if (copy->part == NULL) {
        if (!copy->header_asked) {
            say_dump(copy, 0, PIECE_BYTES, out);
            copy->header_asked = true;
        }
        return;
    }
    while (copy->on_way - copy->dropped < PIECES_AHEAD) {
        uint64_t left = stream_left(copy->part, copy->next_place);

        if (left == 0) {
            return;
        }
        say_dump(copy, copy->next_place + 1, PIECE_BYTES, out);
        copy->next_place += left < PIECE_BYTES ? left : PIECE_BYTES;
    }
}

bool
local_copy_is_quiet(const struct local_copy *copy)
{
    return !copy->asks && copy->on_way == 0;
}

uint64_t
local_copy_say(struct local_copy *copy, uint64_t now_ms, struct buf *out)
{
    if (copy->stage == LOCAL_UNLINKED) {
        return UINT64_MAX;
    }
    if (is_to_be_refreshed(copy, now_ms)) {
        want_load(copy, now_ms);
    }
    if (copy->stage == LOCAL_LOADING) {
        say_load(copy, out);
    }
    if (copy->asks || (copy->on_way > 0 && !copy->intact)) {
        return UINT64_MAX;
    }
    if (now_ms >= copy->next_ask_ms) {
        say_ask(copy, now_ms, out);
        return UINT64_MAX;
    }
    return copy->next_ask_ms;
}

/* ---- what programs ask --------------------------------------------------- */

enum local_answer
local_copy_contains(const struct local_copy *copy, struct slice item,
                    uint64_t now_ms)
{
    const struct bloom *bloom = copy->bloom;

    if (!copy->has_copy) {
        return LOCAL_UNKNOWN;
    }
    /* An ageing copy goes by the server's clock: ours may be ahead. */
    if (bloom != NULL &&
        bloom_contains_at(bloom, bloom_hash(bloom, item.data, item.len),
                          copy->server_ms)) {
        return LOCAL_PRESENT;
    }
    return now_ms <= copy->deadline_ms ? LOCAL_ABSENT : LOCAL_UNKNOWN;
}
