/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT LIST and CLIENT KILL: both read the registry of all loops, a piece of
 * it at a time so that ten thousand connections do not stop this loop, and
 * under its lock no longer than one piece takes. A connection that comes or
 * goes between two pieces is seen or is not. Links to other servers are in no
 * registry: they come last (links.h).
 */
#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/cmd_client.h"
#include "command/links.h"
#include "net/registry.h"

enum { HEADER_GAP = 32 };
enum { PIECE_CLIENTS = 32, PIECE_IDS = 16, PIECES_NS = 500 * 1000 };

/* Whether others are to be served now. */
static bool
worked_enough(const struct request *req)
{
    return request_may_pause(req) &&
           clock_mono_ns() - req->worker->now_ns > PIECES_NS;
}

/* ---- LIST ---------------------------------------------------------------- */

struct list {
    struct buf text;
    const struct conn *me;
    const struct command *running; /* by me */
    uint64_t after_id; /* the last client seen, or the last argument done */
    uint64_t now_ms;
    bool has_type;
    enum client_type type;
};

struct list_plan {
    bool has_type;
    enum client_type type;
    const struct slice *ids; /* NULL: no list of ids */
    size_t id_count;
};

static void
list_free(void *state)
{
    struct list *list = state;

    buf_free(&list->text);
    mem_free(list);
}

static enum err
parse_list(struct request *req, struct list_plan *plan)
{
    struct args *args = &req->args;
    int64_t id;

    if (args_left(args) == 0) {
        return OK;
    }
    if (args_left(args) == 2 && args_word(args, "TYPE")) {
        plan->has_type = true;
        return cmd_client_parse_type(req, args_bytes(args), &plan->type);
    }
    if (args_left(args) >= 2 && args_word(args, "ID")) {
        plan->ids = args->argv + args->next;
        plan->id_count = args_left(args);
        for (size_t i = 0; request_resumed(req) == NULL && i < plan->id_count;
             i++) {
            if (!slice_to_i64(plan->ids[i], &id)) {
                return request_fail(req, ERR_CUSTOM, "Invalid client ID");
            }
        }
        return OK;
    }
    return ERR_SYNTAX;
}

static void
list_one(void *ctx, struct conn *conn)
{
    struct list *list = ctx;
    const struct session *session = &client_of(conn)->session;

    if (!list->has_type || cmd_client_type(session) == list->type) {
        cmd_client_line(&list->text, session,
                        conn == list->me ? list->running : NULL, list->now_ms);
    }
}

/* id: 0 for all that the plan wants. */
static void
list_links(struct list *list, const struct links *links, uint64_t id)
{
    for (size_t i = 0; i < links->count; i++) {
        if ((!list->has_type || list->type == CLIENT_REPLICA) &&
            (id == 0 || links->replicas[i].id == id)) {
            links_replica_line(&list->text, &links->replicas[i]);
        }
    }
    if (links_has_primary(links) &&
        (!list->has_type || list->type == CLIENT_MASTER) &&
        (id == 0 || links->figures.link_id == id)) {
        links_primary_line(&list->text, &links->figures);
    }
}

/* The lines come in the order of the arguments; unknown ids have none. */
static bool
list_ids(struct request *req, struct list *list, const struct list_plan *plan)
{
    struct links links = { .count = 0 };
    bool has_links = links_get(req->service, &links) == OK;
    size_t end = plan->id_count - list->after_id > PIECE_IDS
                     ? (size_t)list->after_id + PIECE_IDS
                     : plan->id_count;

    for (size_t i = (size_t)list->after_id; i < end; i++) {
        int64_t id = 0;

        if (slice_to_i64(plan->ids[i], &id) && id > 0 &&
            !registry_visit_one(req->service->registry, (uint64_t)id, list_one,
                                list)) {
            list_links(list, &links, (uint64_t)id);
        }
    }
    list->text.failed = list->text.failed || !has_links;
    links_free(&links);
    list->after_id = end;
    return end < plan->id_count;
}

/* Returns true if there is more. */
static bool
list_piece(struct request *req, struct list *list, const struct list_plan *plan)
{
    struct links links;

    if (plan->ids != NULL) {
        return list_ids(req, list, plan);
    }
    list->after_id = registry_visit(req->service->registry, list->after_id,
                                    PIECE_CLIENTS, list_one, list);
    if (list->after_id != 0) {
        return true;
    }
    if (links_get(req->service, &links) == OK) {
        list_links(list, &links, 0);
        links_free(&links);
    } else {
        list->text.failed = true;
    }
    return false;
}

/* Room for all lines that are to be expected, so that the text is not moved as
 * it grows, under the registry's lock at that. Memory that is not used is not
 * touched. */
static void
expect_lines(struct list *list)
{
    enum { LINE_BYTES = 320 };
    static const char gap[HEADER_GAP];
    int64_t clients = metric_sum(METRIC_CONNECTED_CLIENTS);

    if (clients > 0) {
        (void)buf_reserve(&list->text, (size_t)clients * LINE_BYTES);
        list->text.failed = false; /* less may do */
    }
    buf_append(&list->text, gap, HEADER_GAP); /* for the reply's header */
}

enum err
cmd_client_list(struct request *req)
{
    struct list_plan plan = { 0 };
    struct list *list = request_resumed(req);
    bool resumed = list != NULL;
    enum err err = parse_list(req, &plan);

    if (err != OK) {
        return err;
    }
    if (list == NULL) {
        list = mem_zalloc(sizeof(*list));
        list->me = req->session->conn;
        list->running = req->command;
        list->now_ms = req->now_ms;
        list->has_type = plan.has_type;
        list->type = plan.type;
        expect_lines(list);
    }
    while (err == OK && list_piece(req, list, &plan)) {
        if (worked_enough(req)) {
            err = ERR_AGAIN;
        }
    }
    if (list->text.failed) {
        err = ERR_NOMEM;
    }
    if (err == ERR_AGAIN) {
        if (!resumed) {
            request_pause(req, list, list_free);
        }
        return err;
    }
    if (err == OK) {
        reply_give_verbatim(req->reply, &list->text, HEADER_GAP);
    }
    if (!resumed) {
        list_free(list);
    }
    return err;
}

/* ---- KILL ---------------------------------------------------------------- */

struct kill_plan {
    bool old_form, skip_me, has_type;
    enum client_type type;
    uint64_t id; /* 0: any */
    struct slice address, local_address;
    bool has_address, has_local_address, has_user;
};

struct victim {
    struct loop *loop;
    uint64_t id;
};

/* Outlives a pause, but for the plan, whose slices are of one call. */
struct kill {
    struct kill_plan plan;
    const struct session *me;
    uint64_t after_id, killed;
    bool kills_me, busy;
    struct victim victims[PIECE_CLIENTS]; /* of one piece */
    size_t victim_count;
};

static enum err
parse_kill_id(struct request *req, struct slice text, struct kill_plan *plan)
{
    int64_t id;

    if (!slice_to_i64(text, &id) || id < 1) {
        return request_fail(req, ERR_CUSTOM,
                            "client-id should be greater than 0");
    }
    plan->id = (uint64_t)id;
    return OK;
}

static enum err
parse_kill_skip_me(struct slice text, struct kill_plan *plan)
{
    if (slice_is_word(text, "yes")) {
        plan->skip_me = true;
    } else if (slice_is_word(text, "no")) {
        plan->skip_me = false;
    } else {
        return ERR_SYNTAX;
    }
    return OK;
}

static enum err
parse_kill_filter(struct request *req, struct kill_plan *plan)
{
    struct args *args = &req->args;

    if (args_left(args) < 2) {
        return ERR_SYNTAX;
    }
    if (args_word(args, "ID")) {
        return parse_kill_id(req, args_bytes(args), plan);
    }
    if (args_word(args, "TYPE")) { /* the last one counts, as in Redis */
        plan->has_type = true;
        return cmd_client_parse_type(req, args_bytes(args), &plan->type);
    }
    if (args_word(args, "USER")) {
        struct slice user = args_bytes(args);

        if (!slice_equal(user, slice_lit("default"))) {
            return request_fail(req, ERR_CUSTOM, "No such user '%.*s'",
                                slice_shown(user), user.data);
        }
        plan->has_user = true;
        return OK;
    }
    if (args_word(args, "ADDR")) {
        plan->has_address = true;
        plan->address = args_bytes(args);
        return OK;
    }
    if (args_word(args, "LADDR")) {
        plan->has_local_address = true;
        plan->local_address = args_bytes(args);
        return OK;
    }
    if (args_word(args, "SKIPME")) {
        return parse_kill_skip_me(args_bytes(args), plan);
    }
    return ERR_SYNTAX;
}

static enum err
parse_kill(struct request *req, struct kill_plan *plan)
{
    enum err err = OK;

    plan->skip_me = true;
    if (req->argc == 3) {
        plan->old_form = true;
        plan->skip_me = false;
        plan->has_address = true;
        plan->address = req->argv[2];
        return OK;
    }
    while (err == OK && args_left(&req->args) > 0) {
        err = parse_kill_filter(req, plan);
    }
    return err;
}

static bool
kill_wants(const struct kill_plan *plan, struct conn *conn)
{
    char text[CONN_ADDRESS_MAX] = "";

    if (plan->has_type &&
        cmd_client_type(&client_of(conn)->session) != plan->type) {
        return false;
    }
    if (plan->id != 0 && conn->id != plan->id) {
        return false;
    }
    if (plan->has_address) {
        conn_peer_address(conn, text);
        if (!slice_equal(plan->address, slice_of(text))) {
            return false;
        }
    }
    if (plan->has_local_address) {
        conn_local_address(conn, text);
        if (!slice_equal(plan->local_address, slice_of(text))) {
            return false;
        }
    }
    return true;
}

/* Nobody has logged in on the link to the primary. */
static bool
kill_wants_link(const struct kill_plan *plan, enum client_type type,
                uint64_t id, const char *const address[2])
{
    return (!plan->has_type || plan->type == type) &&
           (plan->id == 0 || plan->id == id) &&
           (!plan->has_user || type != CLIENT_MASTER) &&
           (!plan->has_address ||
            slice_equal(plan->address, slice_of(address[0]))) &&
           (!plan->has_local_address ||
            slice_equal(plan->local_address, slice_of(address[1])));
}

static enum err
kill_links(const struct request *req, struct kill *kill)
{
    const struct service *service = req->service;
    struct links links;
    enum err err = links_get(service, &links);

    if (err != OK) {
        return err;
    }
    for (size_t i = 0; i < links.count; i++) {
        const struct status_replica *replica = &links.replicas[i];
        const char *const address[] = { replica->address,
                                        replica->local_address };

        if (kill_wants_link(&kill->plan, CLIENT_REPLICA, replica->id,
                            address)) {
            service->replication.kill(service->ctx, replica->id);
            kill->killed++;
        }
    }
    if (links_has_primary(&links)) {
        const struct status_figures *figures = &links.figures;
        const char *const address[] = { figures->link_address,
                                        figures->link_local_address };

        if (kill_wants_link(&kill->plan, CLIENT_MASTER, figures->link_id,
                            address)) {
            service->replication.kill(service->ctx, figures->link_id);
            kill->killed++;
        }
    }
    links_free(&links);
    return OK;
}

static void
kill_mark(void *ctx, struct conn *conn)
{
    struct kill *kill = ctx;

    if (!kill_wants(&kill->plan, conn)) {
        return;
    }
    if (conn == kill->me->conn) {
        if (!kill->plan.skip_me) {
            kill->kills_me = true;
            kill->killed++;
        }
        return;
    }
    kill->victims[kill->victim_count++] =
        (struct victim){ conn->loop, conn->id };
}

/* The loops are asked outside the registry's lock: their mailboxes are leaves
 * too. Returns true if there is more. */
static bool
kill_piece(struct request *req, struct kill *kill)
{
    const struct kill_plan *plan = &kill->plan;
    uint64_t after_id = plan->id != 0 ? plan->id - 1 : kill->after_id;
    unsigned max = plan->id != 0 ? 1 : PIECE_CLIENTS;

    kill->victim_count = 0;
    kill->after_id =
        registry_visit(req->service->registry, after_id, max, kill_mark, kill);
    for (size_t i = 0; i < kill->victim_count; i++) {
        if (conn_kill(kill->victims[i].loop, kill->victims[i].id)) {
            kill->killed++;
        } else {
            kill->busy = true;
        }
    }
    return plan->id == 0 && kill->after_id != 0 && !kill->busy;
}

static enum err
kill_reply(struct request *req, const struct kill *kill)
{
    if (kill->kills_me) {
        req->session->closing = true;
    }
    if (kill->busy) {
        return request_fail(req, ERR_CUSTOM,
                            "a thread has too many requests waiting, try "
                            "again");
    }
    if (!kill->plan.old_form) {
        reply_int(req->reply, (int64_t)kill->killed);
        return OK;
    }
    if (kill->killed == 0) {
        return request_fail(req, ERR_CUSTOM, "No such client");
    }
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_client_kill(struct request *req)
{
    struct kill_plan plan = { 0 };
    struct kill *kill = request_resumed(req);
    bool resumed = kill != NULL;
    enum err err = parse_kill(req, &plan);

    if (err != OK) {
        return err;
    }
    if (kill == NULL) {
        kill = mem_zalloc(sizeof(*kill));
        kill->me = req->session;
    }
    kill->plan = plan;
    while (err == OK && kill_piece(req, kill)) {
        if (worked_enough(req)) {
            err = ERR_AGAIN;
        }
    }
    if (err == ERR_AGAIN) {
        if (!resumed) {
            request_pause(req, kill, mem_free);
        }
        return err;
    }
    if (req->service->replication.kill != NULL) {
        err = kill_links(req, kill);
    }
    if (err == OK) {
        err = kill_reply(req, kill);
    }
    if (!resumed) {
        mem_free(kill);
    }
    return err;
}
