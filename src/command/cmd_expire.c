/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Expiry: EXPIRE PEXPIRE EXPIREAT PEXPIREAT, TTL PTTL EXPIRETIME PEXPIRETIME,
 * PERSIST. Every time is stored as absolute milliseconds of the wall clock. The
 * effect of the EXPIRE family has that time, too (PEXPIREAT key ms, or DEL key
 * if it is past), so that it means the same whenever it is replayed.
 */
#include "access/handlers.h"
#include "engine/keys.h"
#include "engine/observe.h"
#include "engine/request.h"

/* The unit of the command's time, in milliseconds. */
static int64_t
unit_ms(const struct request *req)
{
    switch (req->command->id) {
    case CMD_ID_PEXPIRE:
    case CMD_ID_PEXPIREAT:
    case CMD_ID_PTTL:
    case CMD_ID_PEXPIRETIME:
        return 1;
    default:
        return 1000;
    }
}

/* The moment from which the command counts its time: now, or 1970. */
static uint64_t
base_ms(const struct request *req)
{
    switch (req->command->id) {
    case CMD_ID_EXPIREAT:
    case CMD_ID_PEXPIREAT:
    case CMD_ID_EXPIRETIME:
    case CMD_ID_PEXPIRETIME:
        return 0;
    default:
        return req->now_ms;
    }
}

enum { CONDITION_NX = 1, CONDITION_XX = 2, CONDITION_GT = 4, CONDITION_LT = 8 };

/* Parses the words behind the time. They are checked before the time. */
static enum err
parse_conditions(struct request *req, unsigned *ret_conditions)
{
    static const char *const word[] = { "nx", "xx", "gt", "lt" };
    unsigned conditions = 0;

    while (args_left(&req->args) > 0) {
        unsigned i = 0;

        while (i < 4 && !args_word(&req->args, word[i])) {
            i++;
        }
        if (i == 4) {
            struct slice bad = args_bytes(&req->args);

            return request_fail(req, ERR_CUSTOM, "Unsupported option %.*s",
                                slice_shown(bad), bad.data);
        }
        conditions |= 1U << i;
    }
    if ((conditions & CONDITION_NX) && conditions != CONDITION_NX) {
        return request_fail(req, ERR_CUSTOM,
                            "NX and XX, GT or LT options at the same time "
                            "are not compatible");
    }
    if ((conditions & CONDITION_GT) && (conditions & CONDITION_LT)) {
        return request_fail(req, ERR_CUSTOM,
                            "GT and LT options at the same time are not "
                            "compatible");
    }
    *ret_conditions = conditions;
    return OK;
}

/* Parses the command's time into milliseconds since 1970. A negative result
 * only means that the time is past. */
static enum err
parse_time(struct request *req, struct slice text, int64_t *ret_at_ms)
{
    int64_t at_ms;

    if (!slice_to_i64(text, &at_ms)) {
        return ERR_NOT_INTEGER;
    }
    if (__builtin_mul_overflow(at_ms, unit_ms(req), &at_ms) ||
        __builtin_add_overflow(at_ms, (int64_t)base_ms(req), &at_ms)) {
        return request_fail(req, ERR_INVALID_EXPIRE, "%s", req->command->name);
    }
    *ret_at_ms = at_ms;
    return OK;
}

/* Checks NX, XX, GT and LT. expires_ms is 0 for a key without expiry, which GT
 * and LT treat as later than any time. */
static bool
conditions_hold(unsigned conditions, uint64_t expires_ms, int64_t at_ms)
{
    if (expires_ms == 0) {
        return (conditions & (CONDITION_XX | CONDITION_GT)) == 0;
    }
    if (conditions & CONDITION_NX) {
        return false;
    }
    if (conditions & CONDITION_GT) {
        return at_ms > (int64_t)expires_ms;
    }
    if (conditions & CONDITION_LT) {
        return at_ms < (int64_t)expires_ms;
    }
    return true;
}

/* Makes the effect before anything changes, since that can fail. */
static enum err
effect_delete(struct request *req)
{
    enum err err = request_effect_begin(req, 2);

    if (err == OK) {
        request_effect_add(req, slice_lit("DEL"));
        request_effect_add(req, req->key.name);
    }
    return err;
}

static enum err
effect_expire_at(struct request *req, uint64_t at_ms)
{
    enum err err = request_effect_begin(req, 3);

    if (err == OK) {
        request_effect_add(req, slice_lit("PEXPIREAT"));
        request_effect_add(req, req->key.name);
        request_effect_add_number(req, at_ms);
    }
    return err;
}

/* Sets the expiry of an existing key. The entry is looked up again for writing,
 * so that WATCH sees a change. */
static enum err
set_end(struct request *req, int64_t at_ms)
{
    struct entry *entry;
    uint64_t end_ms = at_ms > 0 ? (uint64_t)at_ms : 1;
    bool over = !req->obey && end_ms <= req->now_ms;
    enum err err = over ? effect_delete(req) : effect_expire_at(req, end_ms);

    if (err != OK) {
        return err;
    }
    entry = keys_open(req, &req->key);
    CHECK(entry != NULL);
    if (over) {
        keyspace_remove(req->keyspace, &req->key, entry);
        observe_change(req, &req->key, FEED_GONE, CONF_EVENT_GENERIC, "del");
    } else {
        err = keyspace_set_expiry(req->keyspace, &req->key, entry, end_ms);
        if (err == OK) {
            observe_change(req, &req->key, FEED_NOTHING, CONF_EVENT_GENERIC,
                           "expire");
        }
    }
    if (err == OK) {
        req->dirty = 1;
        reply_int(req->reply, 1);
    }
    return err;
}

/* EXPIRE PEXPIRE EXPIREAT PEXPIREAT. */
enum err
cmd_expire(struct request *req)
{
    struct slice text;
    struct entry *entry;
    int64_t at_ms = 0;
    unsigned conditions = 0;
    enum err err;

    (void)args_bytes(&req->args); /* the key */
    text = args_bytes(&req->args);
    err = parse_conditions(req, &conditions);
    if (err == OK) {
        err = args_end(&req->args);
    }
    if (err == OK) {
        err = parse_time(req, text, &at_ms);
    }
    if (err != OK) {
        return err;
    }
    entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
    if (entry == NULL ||
        !conditions_hold(conditions,
                         keyspace_expiry(req->keyspace, &req->key, entry),
                         at_ms)) {
        reply_int(req->reply, 0);
        return OK;
    }
    return set_end(req, at_ms);
}

/* TTL PTTL EXPIRETIME PEXPIRETIME: replies -2 for a missing key, -1 for a key
 * without expiry, else the time, rounded to the nearest unit. */
enum err
cmd_ttl(struct request *req)
{
    uint64_t unit = (uint64_t)unit_ms(req), base = base_ms(req);
    struct entry *entry = keys_peek(req, &req->key);
    uint64_t end_ms;

    if (entry == NULL) {
        reply_int(req->reply, -2);
        return OK;
    }
    end_ms = keyspace_expiry(req->keyspace, &req->key, entry);
    if (end_ms == 0) {
        reply_int(req->reply, -1);
        return OK;
    }
    end_ms = end_ms > base ? end_ms - base : 0;
    reply_int(req->reply, (int64_t)((end_ms + unit / 2) / unit));
    return OK;
}

enum err
cmd_persist(struct request *req)
{
    struct entry *entry = keyspace_find(req->keyspace, &req->key, req->now_ms);

    /* The key is opened for writing only if something changes: a PERSIST that
     * does nothing must not fail a WATCH. */
    if (entry != NULL &&
        keyspace_expiry(req->keyspace, &req->key, entry) != 0) {
        entry = keys_open(req, &req->key);
        CHECK(entry != NULL);
        req->dirty = keyspace_clear_expiry(req->keyspace, &req->key, entry);
        observe_change(req, &req->key, FEED_NOTHING, CONF_EVENT_GENERIC,
                       "persist");
    }
    reply_int(req->reply, (int64_t)req->dirty);
    return OK;
}
