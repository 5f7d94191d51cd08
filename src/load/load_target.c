/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_target.h"

#include "base/clock.h"
#include "base/num.h"
#include "load/load_report.h"
#include "load/load_secrets.h"
#include "proto/reply.h"

#include <inttypes.h>
#include <stdarg.h>

enum {
    COMPLAINTS_MAX = 20,
    TEXT_MAX = 512,
    AWAITED_MAX = 4096, /* replies */
    QUEUED_MAX = 8 * 1024 * 1024,
    PUSH_BYTES = 64 * 1024,
};

/* What kind of command a reply answers. */
enum kind { KIND_SELECT, KIND_RESTORE, KIND_COMMAND, KIND_WHOLE };

struct awaited {
    enum kind kind;
    uint64_t db;
};

/* The values of the maps are pointers into this array. A key that is ours has
 * the mark of the round (the full copy) that brought it. Later rounds use the
 * marks again. That does no harm, since a complete copy deletes the keys of all
 * earlier rounds: only copies that broke one after another have marks at the
 * same time. */
enum { MARK_SPARED, MARK_LOST, MARK_ROUNDS, MARKS = 4096 };
static char marks[MARKS];

/* Asks for the longest argument that the server takes: it closes the connection
 * on a longer one. */
static bool
ask_bulk_max(struct load_target *target)
{
    struct slice reply, rest, name, value;

    target->bulk_max = UINT64_MAX;
    if (!load_link_ask(&target->link, &reply, "CONFIG", "GET",
                       "proto-max-bulk-len", NULL)) {
        return false;
    }
    if (resp_array(reply, &rest) && resp_element(&rest, &name) &&
        resp_element(&rest, &value)) {
        (void)num_parse_bytes(resp_text(value), &target->bulk_max);
    }
    return true;
}

bool
load_target_open(struct load *load, struct load_target *ret_target)
{
    memset(ret_target, 0, sizeof(*ret_target));
    ret_target->load = load;
    ret_target->side.client.fd = -1;
    if (!load_link_open(load, &load->to, &ret_target->link)) {
        return false;
    }
    if (!ask_bulk_max(ret_target)) {
        load_link_close(&ret_target->link);
        return false;
    }
    return true;
}

void
load_target_close(struct load_target *target)
{
    load_link_close(&target->link);
    if (target->side.client.fd >= 0) {
        load_link_close(&target->side);
    }
    buf_free(&target->awaited);
    for (size_t i = 0; i < LOAD_DATABASES_MAX; i++) {
        map_free(&target->keys[i]);
        map_free(&target->in_pieces[i]);
    }
}

static bool
stop(struct load_target *target, const char *why)
{
    if (!target->stopped) {
        tool_complain(&target->load->tool, LOAD_UNREADABLE, "%s: %s",
                      target->load->to.address, why);
    }
    target->stopped = true;
    return false;
}

void
load_target_refuse(struct load_target *target, uint64_t db, struct slice key,
                   const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    tool_raise(&target->load->tool, LOAD_INCOMPLETE);
    if (target->complaints++ >= COMPLAINTS_MAX) {
        if (target->complaints == COMPLAINTS_MAX + 1) {
            tool_complain(&target->load->tool, LOAD_INCOMPLETE,
                          "more of these are counted only");
        }
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    tool_complain(&target->load->tool, LOAD_INCOMPLETE,
                  "key '%.*s' of database %" PRIu64 ": %s", slice_shown(key),
                  key.len > 0 ? key.data : "", db, text);
}

/* ---- keys ---------------------------------------------------------------- */

enum load_key
load_target_key(const struct load_target *target, uint64_t db, struct slice key)
{
    const char *mark = map_find(&target->keys[db], key);

    if (mark == NULL) {
        return LOAD_KEY_UNKNOWN;
    }
    return mark == &marks[MARK_SPARED] ? LOAD_KEY_SPARED
           : mark == &marks[MARK_LOST] ? LOAD_KEY_LOST
                                       : LOAD_KEY_OURS;
}

static size_t
mark_of_round(const struct load_target *target)
{
    return MARK_ROUNDS + target->round % (MARKS - MARK_ROUNDS);
}

static bool
note_state(struct load_target *target, uint64_t db, struct slice key,
           enum load_key state)
{
    size_t mark = state == LOAD_KEY_SPARED ? MARK_SPARED
                  : state == LOAD_KEY_LOST ? MARK_LOST
                                           : mark_of_round(target);

    return map_put(&target->keys[db], key, &marks[mark]) ||
           stop(target, "no memory for the names of the keys");
}

bool
load_target_forget(struct load_target *target, uint64_t db, struct slice key)
{
    return map_remove(&target->keys[db], key) != NULL;
}

/* ---- replies ------------------------------------------------------------- */

static bool
expect(struct load_target *target, enum kind kind, uint64_t db,
       struct slice key)
{
    const struct awaited awaited = { kind, db };

    if (target->awaited_at == target->awaited.len) {
        buf_reset(&target->awaited, SIZE_MAX);
        target->awaited_at = 0;
    } else if (target->awaited_at > QUEUED_MAX) {
        buf_consume(&target->awaited, target->awaited_at);
        target->awaited_at = 0;
    }
    buf_append_item(&target->awaited,
                    (struct slice){ (const char *)&awaited, sizeof(awaited) });
    buf_append_item(&target->awaited, key);
    return !target->awaited.failed ||
           stop(target, "no memory for what is awaited");
}

/* Returns whether every later command would fail in the same way. */
static bool
is_fatal(struct slice error)
{
    static const char *const words[] = { "OOM ",       "READONLY ", "NOAUTH ",
                                         "NOPERM ",    "LOADING ",  "MISCONF ",
                                         "UNKILLABLE " };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);

        if (error.len >= len && memcmp(error.data, words[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static bool
begins(struct slice text, const char *word)
{
    return text.len >= strlen(word) &&
           memcmp(text.data, word, strlen(word)) == 0;
}

static bool
take_busy(struct load_target *target, uint64_t db, struct slice key)
{
    if (target->load->existing == LOAD_EXISTING_SKIP) {
        target->spared++;
        return note_state(target, db, key, LOAD_KEY_SPARED);
    }
    load_target_refuse(target, db, key,
                       "exists; --existing says whether to skip or replace it");
    target->stopped = true;
    return false;
}

/* An error may also say that the key has gone meanwhile. */
static bool
take_piece(struct load_target *target, uint64_t db, struct slice key,
           struct slice error)
{
    if (!begins(error, "ERR the filter is incomplete")) {
        return true;
    }
    target->refused++;
    tool_raise(&target->load->tool, LOAD_UNREADABLE);
    load_target_refuse(target, db, key,
                       "is incomplete: the source ends before its last "
                       "BF.LOADCHUNK; delete it");
    return note_state(target, db, key, LOAD_KEY_LOST);
}

static bool
take_error(struct load_target *target, const struct awaited *awaited,
           struct slice key, struct slice error)
{
    char text[TEXT_MAX];

    (void)snprintf(text, sizeof(text), "%.*s", resp_shown(error), error.data);
    if (awaited->kind == KIND_SELECT || is_fatal(error)) {
        return stop(target, text);
    }
    if (awaited->kind == KIND_RESTORE && begins(error, "BUSYKEY")) {
        return take_busy(target, awaited->db, key);
    }
    if (awaited->kind == KIND_WHOLE) {
        return take_piece(target, awaited->db, key, error);
    }
    if (awaited->kind == KIND_COMMAND &&
        begins(error, "ERR non scaling filter is full")) {
        target->full++; /* the filter at the source is full, too */
        return true;
    }
    target->refused +=
        load_target_key(target, awaited->db, key) != LOAD_KEY_LOST;
    load_target_refuse(target, awaited->db, key, "%s", text);
    load_secrets_hint(target->load, error);
    return note_state(target, awaited->db, key, LOAD_KEY_LOST);
}

static bool
take_reply(struct load_target *target, struct slice reply)
{
    struct awaited awaited;
    struct slice item, key, error;

    CHECK(buf_next_item(&target->awaited, &target->awaited_at, &item) &&
          buf_next_item(&target->awaited, &target->awaited_at, &key));
    memcpy(&awaited, item.data, sizeof(awaited));
    error = resp_find_error(reply);
    if (error.len > 0) {
        return take_error(target, &awaited, key, error);
    }
    target->restored += awaited.kind == KIND_RESTORE;
    return true;
}

static bool
take_replies(struct load_target *target)
{
    struct slice reply;

    while (!target->stopped && load_link_next(&target->link, &reply)) {
        if (!take_reply(target, reply)) {
            return false;
        }
    }
    if (target->link.client.ended && target->link.awaited > 0) {
        load_link_fail(&target->link, "closed the connection");
    }
    return !target->stopped && !target->link.failed;
}

bool
load_target_push(struct load_target *target)
{
    struct load_link *link = &target->link;
    int timeout_ms = 0;

    do {
        if (!load_link_wait(&link, 1, timeout_ms) || !take_replies(target)) {
            return false;
        }
        timeout_ms = 1000;
    } while (link->awaited > AWAITED_MAX ||
             link->client.out.len - link->client.out_at > QUEUED_MAX);
    return true;
}

bool
load_target_drain(struct load_target *target)
{
    struct load_link *link = &target->link;

    while (link->awaited > 0 && !target->stopped) {
        if (!load_link_wait(&link, 1, 1000) || !take_replies(target)) {
            return false;
        }
    }
    return !target->stopped && !link->failed;
}

/* ---- commands ------------------------------------------------------------ */

static void
say_select(struct load_link *link, uint64_t db)
{
    char digits[NUM_U64_MAX];
    const struct slice words[] = {
        slice_lit("SELECT"),
        { digits, num_format_u64(db, digits) },
    };

    load_link_send(link, words, 2);
}

static bool
enter(struct load_target *target, uint64_t db)
{
    if (target->db == db) {
        return true;
    }
    target->db = db;
    say_select(&target->link, db);
    return expect(target, KIND_SELECT, db, slice_lit(""));
}

/* Writes and reads now and then, so that both sides work at the same time. */
static bool
sent(struct load_target *target)
{
    struct load_link *link = &target->link;

    return (link->client.out.len - link->client.out_at < PUSH_BYTES &&
            link->awaited < AWAITED_MAX / 4) ||
           load_target_push(target);
}

bool
load_target_restore(struct load_target *target, uint64_t db, struct slice key,
                    uint64_t expires_at_ms, struct slice value,
                    struct slice footer)
{
    struct reply out = { &target->link.client.out, 2 };
    bool replace = target->load->existing == LOAD_EXISTING_REPLACE ||
                   load_target_key(target, db, key) == LOAD_KEY_OURS;
    char digits[NUM_U64_MAX];

    if (value.len + footer.len > target->bulk_max) {
        target->refused++;
        load_target_refuse(target, db, key,
                           "has %zu bytes, and proto-max-bulk-len of the "
                           "server is %" PRIu64,
                           value.len + footer.len, target->bulk_max);
        return note_state(target, db, key, LOAD_KEY_LOST);
    }

    if (!note_state(target, db, key, LOAD_KEY_OURS) || !enter(target, db)) {
        return false;
    }
    reply_array(&out, replace ? 6 : 5);
    reply_bulk(&out, slice_lit("RESTORE"));
    reply_bulk(&out, key);
    reply_bulk(&out,
               (struct slice){ digits, num_format_u64(expires_at_ms, digits) });
    reply_header(&out, '$', value.len + footer.len);
    buf_append_slice(out.buf, value);
    buf_append_slice(out.buf, footer);
    buf_append(out.buf, "\r\n", 2);
    reply_bulk(&out, slice_lit("ABSTTL"));
    if (replace) {
        reply_bulk(&out, slice_lit("REPLACE"));
    }
    load_link_send_raw(&target->link, slice_lit(""), 1);
    return expect(target, KIND_RESTORE, db, key) && sent(target);
}

/* Returns whether --db leaves a database out. */
static bool
is_left_out(const struct load_target *target, uint64_t db)
{
    return target->load->db != LOAD_DB_ALL && target->load->db != db;
}

uint64_t
load_target_put_off(struct load_target *target, uint64_t at_ms)
{
    uint64_t now_ms = clock_wall_ms();

    if (at_ms == 0 || target->hold_ms == 0 || at_ms >= LOAD_LATER_MS ||
        (at_ms > now_ms && at_ms - now_ms > target->hold_ms)) {
        return at_ms;
    }
    target->held = true;
    return at_ms + LOAD_LATER_MS;
}

bool
load_target_on_filter(void *ctx, const struct rdb_filter *filter)
{
    struct load_target *target = ctx;
    uint8_t footer[RDB_FOOTER_BYTES];

    if (is_left_out(target, filter->db)) {
        target->left_out++;
        return true;
    }
    if (target->hold_ms == 0 && filter->expires_at_ms > 0 &&
        filter->expires_at_ms <= clock_wall_ms()) {
        target->expired++;
        return true;
    }
    if (filter->db >= LOAD_DATABASES_MAX) {
        return stop(target, "a filter is in a database above 1023");
    }
    if (filter->value.len == 0) {
        target->refused++;
        load_target_refuse(target, filter->db, filter->key,
                           "at offset %" PRIu64 ": is longer than --max-value",
                           filter->offset);
        return note_state(target, filter->db, filter->key, LOAD_KEY_LOST);
    }
    rdb_put_footer(filter->value, filter->module, footer);
    return load_target_restore(
        target, filter->db, filter->key,
        load_target_put_off(target, filter->expires_at_ms), filter->value,
        (struct slice){ (const char *)footer, sizeof(footer) });
}

bool
load_target_command(struct load_target *target, uint64_t db, struct slice key,
                    const struct slice *words, size_t count)
{
    if (!enter(target, db)) {
        return false;
    }
    load_link_send(&target->link, words, count);
    return expect(target, KIND_COMMAND, db, key) && sent(target);
}

bool
load_target_make(struct load_target *target, uint64_t db, struct slice key,
                 const struct buf *value)
{
    const struct slice bytes = { value->data, value->len };
    uint8_t footer[RDB_FOOTER_BYTES];
    struct reply out = { &target->link.client.out, 2 };

    if (value->failed) {
        return stop(target, "no memory for a filter");
    }
    if (!enter(target, db)) {
        return false;
    }
    rdb_put_footer(bytes, RDB_MODULE_REDISBLOOM, footer);
    reply_array(&out, 5);
    reply_bulk(&out, slice_lit("RESTORE"));
    reply_bulk(&out, key);
    reply_bulk(&out, slice_lit("0"));
    reply_header(&out, '$', bytes.len + sizeof(footer));
    buf_append_slice(out.buf, bytes);
    buf_append(out.buf, footer, sizeof(footer));
    buf_append(out.buf, "\r\n", 2);
    reply_bulk(&out, slice_lit("REPLACE"));
    load_link_send_raw(&target->link, slice_lit(""), 1);
    return expect(target, KIND_COMMAND, db, key) && sent(target);
}

bool
load_target_add(struct load_target *target, uint64_t db, struct slice key,
                const struct slice *items, size_t count)
{
    struct reply out = { &target->link.client.out, 2 };

    if (!enter(target, db)) {
        return false;
    }
    reply_array(&out, count + 2);
    reply_bulk(&out, slice_lit("BF.MADD"));
    reply_bulk(&out, key);
    for (size_t i = 0; i < count; i++) {
        reply_bulk(&out, items[i]);
    }
    load_link_send_raw(&target->link, slice_lit(""), 1);
    return expect(target, KIND_COMMAND, db, key) && sent(target);
}

/* ---- filters in pieces --------------------------------------------------- */

bool
load_target_note_piece(struct load_target *target, uint64_t db,
                       struct slice key)
{
    static char noted;

    return map_put(&target->in_pieces[db], key, &noted) ||
           stop(target, "no memory for the names of the keys");
}

struct asking {
    struct load_target *target;
    uint64_t db;
};

static bool
ask_whole(void *ctx, struct slice key, void *value)
{
    const struct asking *asking = ctx;
    struct load_target *target = asking->target;
    const struct slice words[] = { slice_lit("BF.EXISTS"), key, slice_lit("") };

    (void)value;
    if (load_target_key(target, asking->db, key) != LOAD_KEY_OURS) {
        return true;
    }
    if (!enter(target, asking->db)) {
        return false;
    }
    load_link_send(&target->link, words, 3);
    return expect(target, KIND_WHOLE, asking->db, key) && sent(target);
}

bool
load_target_check_pieces(struct load_target *target)
{
    struct asking asking = { .target = target };
    bool ok = load_target_drain(target);

    for (; ok && asking.db < LOAD_DATABASES_MAX; asking.db++) {
        ok = map_each(&target->in_pieces[asking.db], ask_whole, &asking);
    }
    return ok && load_target_drain(target);
}

/* ---- keys that are there ------------------------------------------------- */

static bool
ask_exists(struct load_target *target, uint64_t db, struct slice key,
           bool *ret_exists)
{
    const struct slice words[] = { slice_lit("EXISTS"), key };
    struct load_link *side = &target->side;
    struct slice reply;
    int64_t count = 0;

    if (side->client.fd < 0 &&
        !load_link_open(target->load, &target->load->to, side)) {
        side->client.fd = -1;
        return false;
    }
    if (!load_target_drain(target)) {
        return false;
    }
    if (target->side_db != db) {
        say_select(side, db);
        target->side_db = db;
        if (!load_link_reply(side, &reply)) {
            return false;
        }
    }
    load_link_send(side, words, 2);
    if (!load_link_reply(side, &reply)) {
        return false;
    }
    if (!resp_integer(reply, &count)) {
        struct slice text = resp_text(reply);

        load_link_fail(side, "%.*s", resp_shown(text), text.data);
        return false;
    }
    *ret_exists = count > 0;
    return true;
}

/* deletes: with --existing replace, also delete the filter that the server has
 * under this key. */
static bool
claim(struct load_target *target, uint64_t db, struct slice key, bool deletes,
      bool *ret_go)
{
    const struct slice delete[] = { slice_lit("DEL"), key };
    bool exists = false;

    *ret_go = load_target_key(target, db, key) == LOAD_KEY_OURS;
    if (load_target_key(target, db, key) != LOAD_KEY_UNKNOWN ||
        is_left_out(target, db)) {
        return true;
    }
    *ret_go = true;
    if (target->load->existing == LOAD_EXISTING_REPLACE) {
        return note_state(target, db, key, LOAD_KEY_OURS) &&
               (!deletes || load_target_command(target, db, key, delete, 2));
    }
    if (!ask_exists(target, db, key, &exists)) {
        return false;
    }
    if (exists) {
        *ret_go = false;
        return take_busy(target, db, key);
    }
    return note_state(target, db, key, LOAD_KEY_OURS);
}

bool
load_target_claim(struct load_target *target, uint64_t db, struct slice key,
                  bool *ret_go)
{
    return claim(target, db, key, true, ret_go);
}

bool
load_target_claim_name(struct load_target *target, uint64_t db,
                       struct slice key, bool *ret_go)
{
    return claim(target, db, key, false, ret_go);
}

/* ---- rounds -------------------------------------------------------------- */

void
load_target_begin_round(struct load_target *target)
{
    target->round++;
}

struct sweep {
    struct load_target *target;
    uint64_t db;
    struct buf names;
};

static bool
note_old(void *ctx, struct slice name, void *value)
{
    struct sweep *sweep = ctx;

    if (value != &marks[MARK_SPARED] && value != &marks[MARK_LOST] &&
        value != &marks[mark_of_round(sweep->target)]) {
        buf_append_item(&sweep->names, name);
    }
    return !sweep->names.failed;
}

bool
load_target_delete_old(struct load_target *target)
{
    bool ok = true;

    for (uint64_t db = 0; ok && db < LOAD_DATABASES_MAX; db++) {
        struct sweep sweep = { .target = target, .db = db };
        struct slice name;
        size_t at = 0;

        ok = map_each(&target->keys[db], note_old, &sweep) ||
             stop(target, "no memory for the names of the keys");
        while (ok && buf_next_item(&sweep.names, &at, &name)) {
            const struct slice delete[] = { slice_lit("DEL"), name };

            (void)load_target_forget(target, db, name);
            ok = load_target_command(target, db, name, delete, 2);
        }
        buf_free(&sweep.names);
    }
    return ok;
}

void
load_target_report(const struct load_target *target)
{
    load_report_number("filters restored", target->restored);
    load_report_number("there before", target->spared);
    load_report_number("expired", target->expired);
    load_report_number("refused", target->refused);
    if (target->left_out > 0) {
        load_report_number("left out (--db)", target->left_out);
    }
}
