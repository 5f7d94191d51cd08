/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands over all names: KEYS SCAN DBSIZE RANDOMKEY. A walk locks one stripe
 * at a time by itself. After WALK_SLICE_NS it pauses (ERR_AGAIN) and keeps what
 * it has found and its cursor in a struct walk; in a transaction it runs to its
 * end. The hard output limit bounds what is found, so that no reply is built
 * that could not be sent. Matching under a lock is bounded: a name that takes
 * more work is copied, and matched after the lock is released.
 */
#include "access/handlers.h"
#include "base/clock.h"
#include "base/glob.h"
#include "base/mem.h"
#include "engine/dialect.h"
#include "engine/request.h"
#include "keyspace/scan.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    WALK_SLICE_NS = 1000 * 1000,
    WALK_STEP_KEYS = 256, /* between two looks at the clock */
    WALK_STEPS = 128,
    /* SCAN visits ten times COUNT steps, as in Redis, and at least this many:
     * a small keyspace is spread over all stripes, and one call should visit
     * many of them. */
    SCAN_STEPS_MIN = 2048,
    LOCKED_WORK = 64 * 1024,  /* of matching, in one step */
    LATER_BYTES = 256 * 1024, /* of names to match later; then a step ends */
    FOUND_BYTES = 256 * 1024  /* of names that a step finds; then it ends */
};

struct walk {
    struct buf found; /* encoded names, behind a gap for the header */
    size_t gap;
    uint64_t count; /* names in `found` */
    uint64_t cursor;
    bool ended;
    uint64_t seen, want; /* keys, matching or not */
    uint64_t steps_left;
    struct buf later; /* names to be matched */
    size_t later_at;  /* the next one */
    /* Of the present call: */
    struct reply reply; /* into found */
    struct slice pattern;
    bool any, none;     /* every name matches; none does */
    size_t locked_work; /* work that is left in this step */
    size_t found_end;   /* the length of `found` at which it ends */
};

static void
walk_free(void *state)
{
    struct walk *walk = state;

    buf_free(&walk->found);
    buf_free(&walk->later);
    mem_free(walk);
}

static bool
visit(void *ctx, const struct entry *entry,
      uint64_t expires_at_ms __attribute__((unused)))
{
    struct walk *walk = ctx;
    struct slice name = entry_name(entry);
    enum glob_verdict verdict = GLOB_YES;

    walk->seen++;
    if (walk->none) {
        return true;
    }
    if (!walk->any) {
        verdict = glob_match(walk->pattern, name, false, &walk->locked_work);
    }
    if (verdict == GLOB_YES) {
        reply_bulk(&walk->reply, name);
        walk->count++;
    } else if (verdict == GLOB_OVER) {
        buf_append_item(&walk->later, name);
    }
    return walk->later.len < LATER_BYTES && walk->found.len < walk->found_end;
}

static bool
is_late(const struct request *req, uint64_t until_ns)
{
    return clock_mono_ns() >= until_ns && request_may_pause(req);
}

static enum err
check_size(struct request *req, const struct walk *walk)
{
    if (!walk->found.failed) {
        return walk->later.failed ? ERR_NOMEM : OK;
    }
    return walk->found.over ? request_fail(req, ERR_CUSTOM, "%s; use SCAN",
                                           err_text(ERR_REPLY_LIMIT))
                            : ERR_NOMEM;
}

/* Matches the copied names, with no lock held. */
static enum err
match_later(struct request *req, struct walk *walk, uint64_t until_ns)
{
    enum err err = check_size(req, walk);
    struct slice name;

    while (err == OK && buf_next_item(&walk->later, &walk->later_at, &name)) {
        size_t work = GLOB_WORK;

        switch (glob_match(walk->pattern, name, false, &work)) {
        case GLOB_YES:
            reply_bulk(&walk->reply, name);
            walk->count++;
            break;
        case GLOB_OVER:
            return ERR_PATTERN_WORK;
        case GLOB_NO:
            break;
        }
        err = check_size(req, walk);
        if (err == OK && is_late(req, until_ns)) {
            return ERR_AGAIN;
        }
    }
    buf_reset(&walk->later, LATER_BYTES);
    walk->later_at = 0;
    return err;
}

static size_t
step_of(uint64_t left, size_t step)
{
    return left < step ? (size_t)left : step;
}

/* Begins a step. A reply that is large already grows here, outside the locks.
 */
static void
begin_step(struct walk *walk)
{
    walk->locked_work = LOCKED_WORK;
    walk->found_end = walk->found.len + FOUND_BYTES;
    if (walk->found.len > FOUND_BYTES) {
        (void)buf_reserve(&walk->found, FOUND_BYTES);
        walk->found.failed = walk->found.over = false; /* less is enough */
    }
}

/* Walks until the walk has what it wants or has to pause. */
static enum err
walk_on(struct request *req, struct walk *walk)
{
    uint64_t until_ns = clock_mono_ns() + WALK_SLICE_NS;
    enum err err = match_later(req, walk, until_ns);

    while (err == OK && !walk->ended && walk->seen < walk->want &&
           walk->steps_left > 0) {
        size_t keys = step_of(walk->want - walk->seen, WALK_STEP_KEYS);
        size_t steps = step_of(walk->steps_left, WALK_STEPS);

        begin_step(walk);
        walk->cursor = keyspace_scan(
            req->keyspace, req->worker->index, atomic_load(&req->session->db),
            walk->cursor, keys, steps, req->now_ms, visit, walk);
        walk->ended = walk->cursor == 0;
        walk->steps_left -= steps;
        err = match_later(req, walk, until_ns);
        if (err == OK && !walk->ended && is_late(req, until_ns)) {
            err = ERR_AGAIN;
        }
    }
    return err;
}

struct walk_plan {
    uint64_t cursor, want, steps;
    struct slice pattern;
    bool any, none; /* every name matches; none does */
};

/* Reserves space for the names, which costs nothing until it is used, and
 * leaves a gap for the header in front, so that the names need not move at the
 * end. */
static void
expect_names(struct request *req, struct walk *walk, bool is_scan)
{
    enum { NAME_BYTES = 24 };
    char header[64];
    uint64_t keys, expires;
    int len;

    keyspace_count(req->keyspace, atomic_load(&req->session->db), &keys,
                   &expires);
    keys = keys < walk->want ? keys : walk->want;
    /* Nearly all cursors of SCAN have 16 digits. */
    len = snprintf(header, sizeof(header), "%s*%" PRIu64 "\r\n",
                   is_scan ? "*2\r\n$16\r\n1234567890123456\r\n" : "", keys);
    walk->gap = (size_t)len;
    if (walk->any && keys > WALK_STEP_KEYS) {
        (void)buf_reserve(&walk->found, keys * NAME_BYTES);
        walk->found.failed = walk->found.over = false; /* less is enough */
    }
    buf_append(&walk->found, header, walk->gap);
}

/* Begins a walk or continues the paused one, and replies when it is done;
 * SCAN's reply has its cursor in front. */
static enum err
walk_run(struct request *req, const struct walk_plan *plan, bool is_scan)
{
    struct walk *walk = request_resumed(req);
    char text[24];
    enum err err;

    if (!plan->any && !glob_is_fair(plan->pattern)) {
        return ERR_PATTERN_LONG;
    }
    if (walk == NULL) {
        walk = mem_try_zalloc(sizeof(*walk));
        if (walk == NULL) {
            return ERR_NOMEM;
        }
        walk->cursor = plan->cursor;
        walk->want = plan->want;
        walk->steps_left = plan->steps;
        walk->found.limit = req->reply->buf->limit;
        walk->any = plan->any;
        expect_names(req, walk, is_scan);
    }
    /* The arguments may have moved since the last call. */
    walk->pattern = plan->pattern;
    walk->any = plan->any;
    walk->none = plan->none;
    walk->reply = (struct reply){ &walk->found, req->reply->resp };
    err = walk_on(req, walk);
    if (err == OK) {
        if (is_scan) {
            (void)snprintf(text, sizeof(text), "%" PRIu64, walk->cursor);
            reply_array(req->reply, 2);
            reply_bulk_text(req->reply, text);
        }
        reply_array(req->reply, walk->count);
        reply_give(req->reply, &walk->found, walk->gap);
    }
    return request_end_piece(req, err, walk, walk_free,
                             sizeof(*walk) + walk->found.capacity);
}

enum err
cmd_keys(struct request *req)
{
    struct walk_plan plan = { .want = UINT64_MAX, .steps = UINT64_MAX };
    enum err err;

    plan.pattern = args_bytes(&req->args);
    plan.any = slice_equal(plan.pattern, slice_lit("*"));
    err = args_end(&req->args);
    return err == OK ? walk_run(req, &plan, false) : err;
}

/* Parses a cursor as strtoul does, on which clients of Redis rely: a sign is
 * allowed, and an empty text is 0. */
static enum err
parse_cursor(struct slice text, uint64_t *ret_cursor)
{
    struct slice digits = text;
    uint64_t cursor = 0;
    bool negative = text.len > 0 && text.data[0] == '-';

    if (text.len > 0 && (negative || text.data[0] == '+')) {
        digits = (struct slice){ text.data + 1, text.len - 1 };
        if (digits.len == 0) {
            return ERR_INVALID_CURSOR;
        }
    }
    for (size_t i = 0; i < digits.len; i++) {
        unsigned digit = (unsigned char)digits.data[i] - (unsigned)'0';

        if (digit > 9 || __builtin_mul_overflow(cursor, 10U, &cursor) ||
            __builtin_add_overflow(cursor, digit, &cursor)) {
            return ERR_INVALID_CURSOR;
        }
    }
    *ret_cursor = negative ? 0 - cursor : cursor;
    return OK;
}

/* Parses one of MATCH, COUNT and TYPE with its value. */
static enum err
parse_scan_option(struct args *args, struct walk_plan *plan)
{
    int64_t count;

    if (args_left(args) < 2) {
        return ERR_SYNTAX;
    }
    if (args_word(args, "count")) {
        count = args_i64(args);
        if (args->err != OK) {
            return args->err;
        }
        if (count < 1) {
            return ERR_SYNTAX;
        }
        plan->want = (uint64_t)count;
    } else if (args_word(args, "match")) {
        plan->pattern = args_bytes(args);
        plan->any = slice_equal(plan->pattern, slice_lit("*"));
    } else if (args_word(args, "type")) {
        struct slice type = args_bytes(args);

        plan->none = !slice_is_word(type, DIALECT_TYPE_VALKEY) &&
                     !slice_is_word(type, DIALECT_TYPE_REDIS);
    } else {
        return ERR_SYNTAX;
    }
    return OK;
}

enum err
cmd_scan(struct request *req)
{
    struct walk_plan plan = { .want = 10, .any = true };
    enum err err = parse_cursor(args_bytes(&req->args), &plan.cursor);

    while (err == OK && args_left(&req->args) > 0) {
        err = parse_scan_option(&req->args, &plan);
    }
    if (err == OK) {
        err = args_end(&req->args);
    }
    if (err != OK) {
        return err;
    }
    if (__builtin_mul_overflow(plan.want, 10U, &plan.steps)) {
        plan.steps = UINT64_MAX;
    }
    if (plan.steps < SCAN_STEPS_MIN) {
        plan.steps = SCAN_STEPS_MIN;
    }
    return walk_run(req, &plan, true);
}

enum err
cmd_dbsize(struct request *req)
{
    uint64_t keys, expires;

    keyspace_count(req->keyspace, atomic_load(&req->session->db), &keys,
                   &expires);
    reply_int(req->reply, (int64_t)keys);
    return OK;
}

static bool
reply_name(void *ctx, const struct entry *entry,
           uint64_t expires_at_ms __attribute__((unused)))
{
    reply_bulk(ctx, entry_name(entry));
    return false;
}

enum err
cmd_randomkey(struct request *req)
{
    if (!keyspace_random(req->keyspace, req->worker->index,
                         atomic_load(&req->session->db), req->now_ms,
                         reply_name, req->reply)) {
        reply_null(req->reply);
    }
    return OK;
}
