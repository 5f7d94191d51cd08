/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_scan.h"

#include "base/clock.h"
#include "base/num.h"
#include "load/load_target.h"

/* Replies to TYPE of RedisBloom and valkey-bloom; a Bloomery has either. */
static const char *const type_names[] = { "MBbloom--", "bloomfltr" };

bool
load_scan_complain(struct load_scan *scan, struct slice reply)
{
    struct slice text = resp_text(reply);

    load_link_fail(&scan->link, "%.*s", resp_shown(text), text.data);
    return false;
}

bool
load_scan_open(struct load *load, struct load_scan *ret_scan)
{
    struct slice reply;
    int64_t at_ms;

    *ret_scan = (struct load_scan){ .load = load };
    if (!load_link_open(load, &load->from, &ret_scan->link) ||
        !load_link_ask(&ret_scan->link, &reply, "PEXPIRETIME", "bloomery-load",
                       NULL)) {
        return false;
    }
    ret_scan->has_expiretime = resp_integer(reply, &at_ms);
    return true;
}

void
load_scan_close(struct load_scan *scan)
{
    load_link_close(&scan->link);
    buf_free(&scan->names);
}

/* ---- one filter ---------------------------------------------------------- */

const char *
load_scan_expiry_command(const struct load_scan *scan)
{
    return scan->has_expiretime ? "PEXPIRETIME" : "PTTL";
}

bool
load_scan_take_expiry(struct load_scan *scan, int64_t *ret_at_ms)
{
    struct slice reply;
    int64_t at_ms = 0;

    if (!load_link_reply(&scan->link, &reply)) {
        return false;
    }
    if (!resp_integer(reply, &at_ms)) {
        return load_scan_complain(scan, reply);
    }
    *ret_at_ms = at_ms < 0 || scan->has_expiretime
                     ? at_ms
                     : at_ms + (int64_t)clock_wall_ms();
    return true;
}

bool
load_scan_expiry(struct load_scan *scan, struct slice key, int64_t *ret_at_ms)
{
    const struct slice words[] = { slice_of(load_scan_expiry_command(scan)),
                                   key };

    load_link_send(&scan->link, words, 2);
    return load_scan_take_expiry(scan, ret_at_ms);
}

bool
load_scan_piece(struct load_scan *scan, struct slice key, uint64_t iterator,
                uint64_t *ret_iterator, struct slice *ret_data)
{
    char digits[NUM_U64_MAX];
    const struct slice words[] = {
        slice_lit("BF.SCANDUMP"),
        key,
        { digits, num_format_u64(iterator, digits) },
    };
    struct slice reply, rest, number, data;
    int64_t next = 0;

    load_link_send(&scan->link, words, 3);
    if (!load_link_reply(&scan->link, &reply)) {
        return false;
    }
    if (resp_is_error(reply)) {
        *ret_iterator = UINT64_MAX;
        *ret_data = resp_text(reply);
        return true;
    }
    if (!resp_array(reply, &rest) || !resp_element(&rest, &number) ||
        !resp_element(&rest, &data) || !resp_integer(number, &next) ||
        next < 0) {
        return load_scan_complain(scan,
                                  slice_lit("-bad reply to BF.SCANDUMP\r\n"));
    }
    *ret_iterator = (uint64_t)next;
    *ret_data = resp_text(data);
    return true;
}

/* Keeps the names whose TYPE is a filter. */
static bool
keep_filters(struct load_scan *scan)
{
    struct buf kept = { 0 };
    struct slice name, reply;
    size_t at = 0;
    bool ok = true;

    while (buf_next_item(&scan->names, &at, &name)) {
        const struct slice words[] = { slice_lit("TYPE"), name };

        load_link_send(&scan->link, words, 2);
    }
    at = 0;
    while (ok && buf_next_item(&scan->names, &at, &name)) {
        ok = load_link_reply(&scan->link, &reply);
        for (size_t i = 0; ok && i < 2; i++) {
            if (slice_equal(resp_text(reply), slice_of(type_names[i]))) {
                buf_append_item(&kept, name);
            }
        }
    }
    buf_exchange(&kept, &scan->names);
    ok = ok && !scan->names.failed;
    buf_free(&kept);
    return ok;
}

/* ---- all filters --------------------------------------------------------- */

/* Reads a reply of SCAN: the next cursor, and the names. */
static bool
take_scan(struct load_scan *scan, struct slice reply, struct slice *ret_cursor)
{
    struct slice rest, names, name;

    if (!resp_array(reply, &rest) || !resp_element(&rest, ret_cursor) ||
        !resp_array(rest, &names)) {
        return load_scan_complain(
            scan,
            resp_is_error(reply) ? reply : slice_lit("-bad reply to SCAN\r\n"));
    }
    buf_reset(&scan->names, SIZE_MAX);
    while (resp_element(&names, &name)) {
        buf_append_item(&scan->names, resp_text(name));
    }
    *ret_cursor = resp_text(*ret_cursor);
    return !scan->names.failed;
}

static bool
ask_scan(struct load_scan *scan, struct slice cursor, const char *type,
         struct slice *ret_reply)
{
    const struct slice words[] = {
        slice_lit("SCAN"),  cursor,
        slice_lit("COUNT"), slice_lit("1000"),
        slice_lit("TYPE"),  slice_of(type != NULL ? type : ""),
    };

    load_link_send(&scan->link, words, type != NULL ? 6 : 4);
    return load_link_reply(&scan->link, ret_reply);
}

/* Visits the filters of one type in the selected database. */
static bool
visit_type(struct load_scan *scan, const char *type)
{
    char cursor[32] = "0";
    struct slice reply, next;

    do {
        if (!ask_scan(scan, slice_of(cursor), type, &reply)) {
            return false;
        }
        if (type != NULL && resp_is_error(reply) && strcmp(cursor, "0") == 0) {
            scan->asks_types = true; /* Redis before 6.0 */
            return true;
        }
        if (!take_scan(scan, reply, &next)) {
            return false;
        }
        if (next.len == 0 || next.len >= sizeof(cursor)) {
            return load_scan_complain(scan,
                                      slice_lit("-bad cursor of SCAN\r\n"));
        }
        memcpy(cursor, next.data, next.len);
        cursor[next.len] = '\0';
        if ((type == NULL && !keep_filters(scan)) || !scan->visit(scan->ctx)) {
            return false;
        }
    } while (strcmp(cursor, "0") != 0);
    return true;
}

static bool
visit_database(struct load_scan *scan, uint64_t db)
{
    char digits[NUM_U64_MAX + 1];
    struct slice reply;
    bool ok = true;

    digits[num_format_u64(db, digits)] = '\0';
    scan->db = db;
    if (!load_link_ask(&scan->link, &reply, "SELECT", digits, NULL)) {
        return false;
    }
    if (resp_is_error(reply)) {
        return load_scan_complain(scan, reply);
    }
    for (size_t i = 0; ok && i < 2 && !scan->asks_types; i++) {
        ok = visit_type(scan, type_names[i]);
    }
    return ok && (!scan->asks_types || visit_type(scan, NULL));
}

/* Visits the databases that INFO names: lines such as db0:keys=1,... */
static bool
visit_all(struct load_scan *scan)
{
    struct slice reply;
    const char *at, *end;
    bool listed[LOAD_DATABASES_MAX] = { false };
    bool ok = true;

    if (!load_link_ask(&scan->link, &reply, "INFO", "keyspace", NULL)) {
        return false;
    }
    if (resp_is_error(reply)) {
        return load_scan_complain(scan, reply);
    }
    reply = resp_text(reply);
    end = reply.data + reply.len;
    for (at = reply.data; at < end;) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        const char *colon = memchr(at, ':', (size_t)(end - at));
        uint64_t db;

        if (end - at > 2 && memcmp(at, "db", 2) == 0 && colon != NULL &&
            slice_to_u64((struct slice){ at + 2, (size_t)(colon - at) - 2 },
                         &db) &&
            db < LOAD_DATABASES_MAX) {
            listed[db] = true;
        }
        at = lf != NULL ? lf + 1 : end;
    }
    for (uint64_t db = 0; ok && db < LOAD_DATABASES_MAX; db++) {
        ok = !listed[db] || visit_database(scan, db);
    }
    return ok;
}

bool
load_scan_all(struct load_scan *scan, bool (*visit)(void *ctx), void *ctx)
{
    scan->visit = visit;
    scan->ctx = ctx;
    return scan->load->db == LOAD_DB_ALL ? visit_all(scan)
                                         : visit_database(scan, scan->load->db);
}
