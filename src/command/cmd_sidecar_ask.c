/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SIDECAR. Daemons of a cluster ask each other HOLDINGS and FENCE
 * (cluster/sidecar.h), and COUNT, how many filters they have in slots. An
 * operator decides about slots by FORCE-SERVE and LET-GO. Loop 0 executes these
 * two and FENCE, and their clients wait for it. STATUS shows the lines of INFO
 * about transfers of slots.
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "cluster/candidates.h"
#include "cluster/fence_order.h"
#include "core/parts.h"
#include "engine/request.h"
#include "keyspace/slot_keys.h"

static bool
is_on(const struct request *req)
{
    return req->service->sidecar.fence != NULL;
}

static enum err
fail_off(struct request *req)
{
    return request_fail(req, ERR_CUSTOM,
                        "this server stands beside no node of a cluster "
                        "(sidecar-of)");
}

/* Returns whether this server has older data than a replica: then it gives
 * nothing to other servers, and they treat it as silent. */
static bool
is_behind(const struct request *req)
{
    return service_is_behind(req->service);
}

/* SIDECAR HOLDINGS [version]: if `version` is current, the text is empty. */
enum err
cmd_sidecar_holdings(struct request *req)
{
    uint64_t seen = 0;
    struct buf text = { 0 };
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;

    if (!is_on(req)) {
        return fail_off(req);
    }
    if (is_behind(req)) {
        return ERR_BEHIND;
    }
    if (req->argc > 3) {
        return ERR_SYNTAX;
    }
    if (req->argc == 3 && !slice_to_u64(req->argv[2], &seen)) {
        return ERR_NOT_INTEGER;
    }
    if (!req->service->sidecar.holdings(req->service->sidecar.ctx, seen, &text,
                                        history, &position)) {
        return ERR_LOADING; /* holdings not compared with the data yet */
    }
    if (text.failed) {
        buf_free(&text);
        return ERR_NOMEM;
    }
    reply_array(req->reply, 3);
    reply_bulk_text(req->reply, history);
    reply_int(req->reply, (int64_t)position);
    reply_bulk(req->reply, buf_slice(&text));
    buf_free(&text);
    return OK;
}

static enum err
parse_slots(struct request *req, struct slice text, struct slot_set *set)
{
    return slot_set_parse(text, set) && !slot_set_is_empty(set)
               ? OK
               : request_fail(req, ERR_CUSTOM,
                              "slots are numbers below 16384 and ranges of "
                              "them, such as 0-5460,9000");
}

/* ---- FENCE --------------------------------------------------------------- */

static bool
parse_question(struct slice word, enum sidecar_question *ret_question)
{
    static const struct {
        const char *word;
        enum sidecar_question question;
    } words[] = {
        { "all", SIDECAR_ASK_FENCE },
        { "empty", SIDECAR_ASK_FENCE_EMPTY },
        { "handoff", SIDECAR_ASK_HAND_OFF },
        { "come", SIDECAR_ASK_COME },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (slice_is_word(word, words[i].word)) {
            *ret_question = words[i].question;
            return true;
        }
    }
    return false;
}

/* FENCE all|empty|handoff|come <node> <epoch> surveyed|owner|chosen <known>
 * <slots> */
static enum err
parse(struct request *req, struct sidecar_ask *ask, char *node,
      struct slot_set *set)
{
    const struct slice *argv = req->argv;

    if (!parse_question(argv[2], &ask->question)) {
        return request_fail(req, ERR_CUSTOM,
                            "fence all, empty, handoff or come");
    }
    if (argv[3].len != TOPOLOGY_ID_LEN) {
        return request_fail(req, ERR_CUSTOM, "a node's id has 40 characters");
    }
    memcpy(node, argv[3].data, TOPOLOGY_ID_LEN);
    node[TOPOLOGY_ID_LEN] = '\0';
    ask->chosen = slice_is_word(argv[5], "chosen");
    ask->surveyed = ask->chosen || slice_is_word(argv[5], "surveyed");
    if (!slice_to_u64(argv[4], &ask->epoch) || ask->epoch == UINT64_MAX ||
        !slice_to_u64(argv[6], &ask->known) ||
        (!ask->surveyed && !slice_is_word(argv[5], "owner"))) {
        return ERR_SYNTAX;
    }
    ask->node = node;
    ask->set = set;
    return parse_slots(req, argv[7], set);
}

static void
answer_let_go(struct request *req, const struct fence_order *order)
{
    reply_map(req->reply, 4);
    reply_named_int(req->reply, "slots", slot_set_count(&order->set));
    reply_named_int(req->reply, "filters", order->filters);
    reply_named_int(req->reply, "items", order->items);
    reply_bulk_text(req->reply, "file");
    reply_bulk_text(req->reply, order->file);
}

static void
write_row(struct request *req, const struct candidate_row *row)
{
    struct buf ranges = { 0 };

    reply_map(req->reply, 5);
    reply_bulk_text(req->reply, "node");
    reply_bulk_text(req->reply, row->node);
    reply_bulk_text(req->reply, "slots");
    slot_set_write(&ranges, &row->set);
    req->reply->buf->failed = req->reply->buf->failed || ranges.failed;
    reply_bulk(req->reply, buf_slice(&ranges));
    buf_free(&ranges);
    reply_bulk_text(req->reply, "epoch");
    if (row->epoch > 0) {
        reply_int(req->reply, (int64_t)(row->epoch - 1));
    } else {
        reply_null(req->reply); /* this server does not hold them */
    }
    reply_named_int(req->reply, "filters", row->filters);
    reply_named_int(req->reply, "items", row->items);
}

static void
write_rows(struct request *req, const struct candidate *first, bool chosen)
{
    size_t place = reply_begin(req->reply);
    size_t count = 0;

    for (const struct candidate *at = first; at != NULL; at = at->next) {
        struct slot_set left = at->has;
        struct candidate_row row;

        while (candidate_next_row(at, &left, &row)) {
            if (row.chosen == chosen) {
                write_row(req, &row);
                count++;
            }
        }
    }
    reply_array_end(req->reply, place, count);
}

static void
answer_force(struct request *req, const struct fence_order *order)
{
    reply_map(req->reply, 3);
    reply_named_int(req->reply, "slots", slot_set_count(&order->set));
    reply_bulk_text(req->reply, "chosen");
    write_rows(req, order->candidates, true);
    reply_bulk_text(req->reply, "others");
    write_rows(req, order->candidates, false);
}

static enum err
answer_order(struct request *req, const struct fence_order *order)
{
    const struct sidecar_answer *answer = &order->answer;
    struct buf ranges = { 0 };

    switch (answer->kind) {
    case SIDECAR_FENCED:
        slot_set_write(&ranges, answer->granted);
        reply_array(req->reply, 4);
        reply_bulk_text(req->reply, "fenced");
        reply_bulk_text(req->reply, answer->history);
        reply_int(req->reply, (int64_t)answer->position);
        reply_bulk(req->reply, buf_slice(&ranges));
        buf_free(&ranges);
        return ranges.failed ? ERR_NOMEM : OK;
    case SIDECAR_HAS_KEYS:
        reply_array(req->reply, 1);
        reply_bulk_text(req->reply, "keys");
        return OK;
    case SIDECAR_FORCED:
        answer_force(req, order);
        return OK;
    case SIDECAR_GONE:
        answer_let_go(req, order);
        return OK;
    case SIDECAR_REFUSED:
    case SIDECAR_SILENT:
    case SIDECAR_HOLDS:
    case SIDECAR_SAME:
        break;
    }
    return request_fail(req, ERR_CUSTOM, "%s", answer->reason);
}

static bool
hand_over(struct request *req, struct fence_order *order)
{
    return req->service->sidecar.fence(req->service->sidecar.ctx, order);
}

/* Hands a question over to loop 0. */
static enum err
order(struct request *req, const struct sidecar_ask *ask)
{
    struct fence_order *order = fence_order_new(ask);

    if (order == NULL) {
        return ERR_NOMEM;
    }
    request_pause(req, order, fence_order_drop);
    return hand_over(req, order) ? OK : ERR_NOMEM;
}

/* Waits for loop 0. */
static enum err
await_order(struct request *req, const struct fence_order *order)
{
    CHECK(order != NULL);
    if (!atomic_load_explicit(&order->done, memory_order_acquire)) {
        req->session->wait = CONN_FOR_EVENT;
        return ERR_AGAIN;
    }
    return answer_order(req, order);
}

static enum err
await(struct request *req)
{
    return await_order(req, request_resumed(req));
}

static enum err
check_begin(struct request *req)
{
    if (!is_on(req)) {
        return fail_off(req);
    }
    return request_may_pause(req) ? OK : ERR_NOT_ALLOWED_IN_TXN;
}

/* SIDECAR FENCE */
enum err
cmd_sidecar_fence(struct request *req)
{
    struct sidecar_ask ask = { .number = 0 };
    char node[TOPOLOGY_ID_LEN + 1];
    struct slot_set set;
    enum err err = OK;

    if (request_resumed(req) == NULL) {
        err = check_begin(req);
        if (err == OK && is_behind(req)) {
            err = ERR_BEHIND;
        }
        if (err == OK) {
            err = parse(req, &ask, node, &set);
        }
        if (err == OK) {
            err = order(req, &ask);
        }
    }
    return err == OK ? await(req) : err;
}

/* ---- COUNT, FORCE-SERVE, LET-GO ------------------------------------------ */

/* Counts what this server has of slots, and then waits for loop 0. */
struct count {
    struct keyspace *ks;
    struct slot_set set;
    uint64_t cursor;
    struct fence_order *order; /* NULL: it is counting */
    struct slot_tally slot[CLUSTER_SLOTS];
};

static void
free_count(void *state)
{
    struct count *count = state;

    if (count != NULL) {
        fence_order_drop(count->order);
        mem_free(count);
    }
}

static void
count_key(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    struct count *count = ctx;
    const struct entry *entry = keyspace_find(count->ks, key, 0);
    struct slot_tally *tally = &count->slot[key_slot(key->hash)];

    (void)expires_at_ms;
    if (entry != NULL) {
        tally->filters++;
        tally->items += bloom_items(&entry->bloom);
    }
}

/* Begins to count, or goes on. ERR_AGAIN: it needs more time. */
static enum err
count_slots(struct request *req, struct count **ret_count)
{
    struct count *count = request_resumed(req);
    enum err err = OK;

    if (count == NULL) {
        err = check_begin(req);
        count = err == OK ? mem_try_zalloc(sizeof(*count)) : NULL;
        if (count == NULL) {
            return err == OK ? ERR_NOMEM : err;
        }
        count->ks = req->keyspace;
        count->cursor = 0;
        err = parse_slots(req, req->argv[2], &count->set);
    } else if (count->cursor == 0) {
        *ret_count = count;
        return OK;
    }
    while (err == OK) {
        count->cursor =
            slot_keys_scan(req->keyspace, req->worker->index, &count->set,
                           count->cursor, count_key, count);
        if (count->cursor == 0) {
            break;
        }
        if (request_is_late(req)) {
            err = ERR_AGAIN;
        }
    }
    *ret_count = count;
    return err;
}

static enum err
reply_counts(struct request *req, const struct count *count)
{
    struct buf counts = { 0 };
    struct buf text = { 0 };
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
    enum err err = OK;

    slot_counts_write(count->slot, &counts);
    if (!req->service->sidecar.holdings(req->service->sidecar.ctx, 0, &text,
                                        history, &position)) {
        err = ERR_LOADING; /* holdings not compared with the data yet */
    } else if (text.failed || counts.failed) {
        err = ERR_NOMEM;
    } else {
        reply_array(req->reply, 2);
        reply_bulk(req->reply, buf_slice(&text));
        reply_bulk(req->reply, buf_slice(&counts));
    }
    buf_free(&text);
    buf_free(&counts);
    return err;
}

/* SIDECAR COUNT slots: replies with the holdings, and counts for each slot. */
enum err
cmd_sidecar_count(struct request *req)
{
    struct count *count = NULL;
    enum err err =
        is_on(req) && is_behind(req) ? ERR_BEHIND : count_slots(req, &count);

    if (err == OK) {
        err = reply_counts(req, count);
    }
    return request_end_piece(req, err, count, free_count, sizeof(*count));
}

/* FORCE-SERVE slots [FROM node] */
static enum err
order_force(struct request *req, struct count *count)
{
    char from[TOPOLOGY_ID_LEN + 1] = "";
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_FORCE,
                                     .node = from,
                                     .set = &count->set };

    if (req->argc != 3 &&
        (req->argc != 5 || !slice_is_word(req->argv[3], "from"))) {
        return ERR_SYNTAX;
    }
    if (req->argc == 5) {
        if (req->argv[4].len != TOPOLOGY_ID_LEN) {
            return request_fail(req, ERR_CUSTOM,
                                "a node's id has 40 characters");
        }
        memcpy(from, req->argv[4].data, TOPOLOGY_ID_LEN);
        from[TOPOLOGY_ID_LEN] = '\0';
    }
    count->order = fence_order_new(&ask);
    if (count->order == NULL) {
        return ERR_NOMEM;
    }
    slot_counts_write(count->slot, &count->order->counts);
    return hand_over(req, count->order) ? OK : ERR_NOMEM;
}

/* SIDECAR FORCE-SERVE */
enum err
cmd_sidecar_force_serve(struct request *req)
{
    struct count *count = NULL;
    enum err err = count_slots(req, &count);

    if (err == OK && count->order == NULL) {
        err = order_force(req, count);
    }
    if (err == OK) {
        err = await_order(req, count->order);
    }
    return request_end_piece(req, err, count, free_count, sizeof(*count));
}

/* SIDECAR LET-GO slots */
enum err
cmd_sidecar_let_go(struct request *req)
{
    struct slot_set set;
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_LET_GO,
                                     .node = "",
                                     .set = &set };
    enum err err = OK;

    if (request_resumed(req) == NULL) {
        err = check_begin(req);
        if (err == OK) {
            err = parse_slots(req, req->argv[2], &set);
        }
        if (err == OK) {
            err = order(req, &ask);
        }
    }
    return err == OK ? await(req) : err;
}

/* ---- STATUS -------------------------------------------------------------- */

/* SIDECAR STATUS */
enum err
cmd_sidecar_status(struct request *req)
{
    const struct service *service = req->service;
    struct buf text = { 0 };

    if (service->slots.describe != NULL) {
        service->slots.describe(service->slots.ctx, &text);
    }
    if (text.failed) {
        buf_free(&text);
        return ERR_NOMEM;
    }
    reply_verbatim(req->reply, buf_slice(&text));
    buf_free(&text);
    return OK;
}
