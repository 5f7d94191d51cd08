/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT LIST and CLIENT KILL read the registry of all loops in pieces, and
 * hold the registry's lock for one piece at a time, so that ten thousand
 * connections stop neither this loop nor others. A connection that comes or
 * goes between two pieces may be missing or not. Links to other servers are in
 * no registry; they come last (links.h).
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/cmd_client.h"
#include "command/cmd_client_filter.h"
#include "info/links.h"
#include "net/registry.h"
#include "net/serve.h"

enum { HEADER_GAP = 32 };
enum { PIECE_CLIENTS = 32, PIECE_IDS = 16 };

/* ---- the walk of LIST and KILL ------------------------------------------- */

/* The state that stays between two pieces, except the arguments, which may
 * move. */
struct walk {
    struct cmd_client_filter filter;
    const struct slice *args;
    const struct session *me;
    uint64_t now_ms; /* when the command began */
    uint64_t after;  /* id of the last client, or number of ids done */
    bool failed;     /* no memory for the links */
    /* Called for each client that the filter wants, under the registry's lock,
     * and for each link that it wants, without the lock. */
    void (*found)(struct walk *walk, struct conn *conn);
    void (*found_link)(struct walk *walk, const struct links_client *link);
};

static void
walk_visit(void *ctx, struct conn *conn)
{
    struct walk *walk = ctx;

    if ((!walk->filter.skip_me || conn != walk->me->conn) &&
        cmd_client_filter_wants(&walk->filter, walk->args,
                                &client_of(conn)->session, walk->now_ms)) {
        walk->found(walk, conn);
    }
}

static void
walk_visit_link(void *ctx, const struct links_client *link)
{
    struct walk *walk = ctx;

    if (cmd_client_filter_wants_link(&walk->filter, walk->args, link)) {
        walk->found_link(walk, link);
    }
}

/* Visits the clients of the next ids, in their order. Skips unknown ids.
 * Returns true if there are more ids. */
static bool
walk_ids(const struct request *req, struct walk *walk)
{
    struct links links = { .count = 0 };
    const uint64_t *ids = walk->filter.ids[false];
    size_t count = walk->filter.id_count[false], end = count;
    bool has_links = links_get(req->service, &links) == OK;

    if (count - walk->after > PIECE_IDS) {
        end = (size_t)walk->after + PIECE_IDS;
    }
    for (size_t i = (size_t)walk->after; i < end; i++) {
        if (!registry_visit_one(req->service->registry, ids[i], walk_visit,
                                walk)) {
            links_visit(&links, ids[i], walk_visit_link, walk);
        }
    }
    links_free(&links);
    walk->failed = walk->failed || !has_links;
    walk->after = end;
    return end < count;
}

/* Visits one piece of the registry. Returns true if there is more. */
static bool
walk_piece(const struct request *req, struct walk *walk)
{
    struct links links;

    walk->args = req->args.argv;
    if (walk->filter.has_ids) {
        return walk_ids(req, walk);
    }
    walk->after = registry_visit(req->service->registry, walk->after,
                                 PIECE_CLIENTS, walk_visit, walk);
    if (walk->after != 0) {
        return true;
    }
    if (links_get(req->service, &links) == OK) {
        links_visit(&links, 0, walk_visit_link, walk);
        links_free(&links);
    } else {
        walk->failed = true;
    }
    return false;
}

static enum err
walk_begin(struct request *req, struct walk *walk, bool for_kill)
{
    walk->me = req->session;
    walk->now_ms = req->now_ms;
    return cmd_client_filter_parse(req, for_kill, &walk->filter);
}

static size_t
walk_bytes(const struct walk *walk)
{
    return (walk->filter.id_count[false] + walk->filter.id_count[true]) *
           sizeof(uint64_t);
}

/* ---- LIST ---------------------------------------------------------------- */

struct list {
    struct walk walk; /* first */
    struct buf text;
    const struct command *running; /* what this client executes now */
};

static void
list_free(void *state)
{
    struct list *list = state;

    cmd_client_filter_free(&list->walk.filter);
    buf_free(&list->text);
    mem_free(list);
}

static void
list_found(struct walk *walk, struct conn *conn)
{
    struct list *list = (struct list *)walk;

    client_line(&list->text, &client_of(conn)->session,
                conn == walk->me->conn ? list->running : NULL, walk->now_ms);
}

static void
list_found_link(struct walk *walk, const struct links_client *link)
{
    links_client_line(&((struct list *)walk)->text, link);
}

/* Reserves space for all expected lines, so that the text does not move while
 * it grows under the registry's lock. Unused memory is never touched. */
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

static enum err
list_begin(struct request *req, struct list **ret_list)
{
    struct list *list = mem_try_zalloc(sizeof(*list));
    enum err err;

    if (list == NULL) {
        return ERR_NOMEM;
    }
    list->walk.found = list_found;
    list->walk.found_link = list_found_link;
    list->running = req->command;
    err = walk_begin(req, &list->walk, false);
    if (err != OK) {
        list_free(list);
        return err;
    }
    expect_lines(list);
    *ret_list = list;
    return OK;
}

enum err
cmd_client_list(struct request *req)
{
    struct list *list = request_resumed(req);
    enum err err = list != NULL ? OK : list_begin(req, &list);

    if (err != OK) {
        return err;
    }
    while (err == OK && walk_piece(req, &list->walk)) {
        err = request_is_late(req) ? ERR_AGAIN : OK;
    }
    if (list->text.failed || list->walk.failed) {
        err = ERR_NOMEM;
    }
    if (err == OK) {
        reply_give_verbatim(req->reply, &list->text, HEADER_GAP);
    }
    return request_end_piece(req, err, list, list_free,
                             sizeof(*list) + list->text.capacity +
                                 walk_bytes(&list->walk));
}

/* ---- KILL ---------------------------------------------------------------- */

struct victim {
    struct loop *loop;
    uint64_t id;
};

struct kill {
    struct walk walk; /* first */
    const struct service *service;
    uint64_t killed;
    bool old_form, kills_me, busy;
    struct victim victims[PIECE_CLIENTS]; /* of one piece */
    size_t victim_count;
};

static void
kill_free(void *state)
{
    struct kill *kill = state;

    cmd_client_filter_free(&kill->walk.filter);
    mem_free(kill);
}

static void
kill_found(struct walk *walk, struct conn *conn)
{
    struct kill *kill = (struct kill *)walk;

    if (conn == walk->me->conn) {
        kill->kills_me = true;
        kill->killed++;
        return;
    }
    kill->victims[kill->victim_count++] =
        (struct victim){ conn->loop, conn_id(conn) };
}

/* posted: whether the mail that closes the client found room. */
static void
count_kill(struct kill *kill, bool posted)
{
    kill->killed += posted;
    kill->busy = kill->busy || !posted;
}

static void
kill_found_link(struct walk *walk, const struct links_client *link)
{
    struct kill *kill = (struct kill *)walk;
    const struct replication_calls *calls = &kill->service->replication;

    if (calls->kill != NULL) {
        count_kill(kill, calls->kill(calls->ctx, link->id));
    }
}

/* Closes the clients of one piece. Messages to the loops are sent outside the
 * registry's lock, since mailboxes are leaf locks, too. Returns true if there
 * is more. */
static bool
kill_piece(const struct request *req, struct kill *kill)
{
    bool more;

    kill->victim_count = 0;
    more = walk_piece(req, &kill->walk);
    for (size_t i = 0; i < kill->victim_count; i++) {
        count_kill(kill,
                   serve_kill(kill->victims[i].loop, kill->victims[i].id));
    }
    return more && !kill->busy;
}

static enum err
kill_begin(struct request *req, struct kill **ret_kill)
{
    struct kill *kill = mem_try_zalloc(sizeof(*kill));
    enum err err;

    if (kill == NULL) {
        return ERR_NOMEM;
    }
    kill->walk.found = kill_found;
    kill->walk.found_link = kill_found_link;
    kill->service = req->service;
    kill->old_form = req->argc == 3;
    err = walk_begin(req, &kill->walk, true);
    if (err != OK) {
        kill_free(kill);
        return err;
    }
    *ret_kill = kill;
    return OK;
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
    if (!kill->old_form) {
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
    struct kill *kill = request_resumed(req);
    enum err err = kill != NULL ? OK : kill_begin(req, &kill);

    if (err != OK) {
        return err;
    }
    while (err == OK && kill_piece(req, kill)) {
        err = request_is_late(req) ? ERR_AGAIN : OK;
    }
    if (err == OK) {
        err = kill->walk.failed ? ERR_NOMEM : kill_reply(req, kill);
    }
    return request_end_piece(req, err, kill, kill_free,
                             sizeof(*kill) + walk_bytes(&kill->walk));
}
