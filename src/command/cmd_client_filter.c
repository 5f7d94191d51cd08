/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LIST and KILL have the filters of Valkey 9. A filter that Redis 7.0 has, too,
 * has the errors of Redis.
 */
#include "command/cmd_client_filter.h"

#include "access/handlers.h"
#include "access/users.h"
#include "base/host_port.h"
#include "base/mem.h"
#include "command/cmd_client.h"

#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *name;
    bool has_not;
} rows[FILTER_KINDS] = {
    [FILTER_ADDR] = { "addr", true },
    [FILTER_CAPA] = { "capa", true },
    [FILTER_DB] = { "db", true },
    [FILTER_FLAGS] = { "flags", true },
    [FILTER_ID] = { "id", true },
    [FILTER_IDLE] = { "idle", false },
    [FILTER_IP] = { "ip", true },
    [FILTER_LADDR] = { "laddr", true },
    [FILTER_LIB_NAME] = { "lib-name", true },
    [FILTER_LIB_VER] = { "lib-ver", true },
    [FILTER_MAXAGE] = { "maxage", false },
    [FILTER_NAME] = { "name", true },
    [FILTER_SKIPME] = { "skipme", false },
    [FILTER_TYPE] = { "type", true },
    [FILTER_USER] = { "user", true },
};

/* ---- parsing ------------------------------------------------------------- */

static bool
find_row(struct slice word, enum cmd_client_filter_kind *ret_kind,
         bool *ret_not)
{
    bool negated =
        word.len > 4 && slice_is_word((struct slice){ word.data, 4 }, "not-");

    if (negated) {
        word.data += 4;
        word.len -= 4;
    }
    for (unsigned i = 0; i < FILTER_KINDS; i++) {
        if (slice_is_word(word, rows[i].name) &&
            (rows[i].has_not || !negated)) {
            *ret_kind = (enum cmd_client_filter_kind)i;
            *ret_not = negated;
            return true;
        }
    }
    return false;
}

static struct slice
peek(const struct args *args)
{
    return args->argv[args->next];
}

static enum err
refuse_id(struct request *req, bool for_kill)
{
    return request_fail(req, ERR_CUSTOM, "%s",
                        for_kill ? "client-id should be greater than 0"
                                 : "Invalid client ID");
}

/* Parses ids up to the first word that is no number. That word begins the next
 * filter; for LIST, a word that is no filter is an invalid id, as in Redis. */
static enum err
parse_ids(struct request *req, struct cmd_client_filter *filter, bool negated)
{
    struct args *args = &req->args;
    bool for_kill = filter->for_kill;
    size_t first = args->next, *count = &filter->id_count[negated];
    enum cmd_client_filter_kind kind;
    int64_t id;
    bool any;

    filter->has_ids = filter->has_ids || !negated;
    if (filter->ids[negated] == NULL) {
        filter->ids[negated] =
            mem_try_alloc(args_left(args) * sizeof(*filter->ids[negated]));
        if (filter->ids[negated] == NULL) {
            return ERR_NOMEM;
        }
    }
    while (args_left(args) > 0 && slice_to_i64(peek(args), &id)) {
        if (id > 0) {
            filter->ids[negated][(*count)++] = (uint64_t)id;
        } else if (for_kill) {
            return refuse_id(req, for_kill);
        }
        args->next++;
    }
    any = args->next > first;
    if (args_left(args) > 0 &&
        (!any || (!for_kill && !find_row(peek(args), &kind, &any)))) {
        return refuse_id(req, for_kill);
    }
    return args->next > first ? OK : ERR_SYNTAX;
}

static enum err
parse_seconds(struct request *req, struct slice text, const char *name,
              int64_t *ret_seconds)
{
    int64_t seconds;

    if (!slice_to_i64(text, &seconds)) {
        return request_fail(req, ERR_CUSTOM,
                            "%s is not an integer or out of range", name);
    }
    if (seconds <= 0) {
        return request_fail(req, ERR_CUSTOM, "%s should be greater than 0",
                            name);
    }
    *ret_seconds = seconds;
    return OK;
}

static enum err
parse_db(struct request *req, struct slice text, int64_t *ret_db)
{
    int64_t db, end = req->service->conf->databases;

    if (!slice_to_i64(text, &db)) {
        return request_fail(req, ERR_CUSTOM,
                            "DB is not an integer or out of range");
    }
    if (db < 0 || db >= end) {
        return request_fail(req, ERR_CUSTOM,
                            "DB number should be between 0 and %lld",
                            (long long)end - 1);
    }
    *ret_db = db;
    return OK;
}

/* Checks that each letter of the text is one of the known ones. */
static enum err
check_letters(struct request *req, struct slice text, const char *known,
              const char *what, bool negated)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\0' || strchr(known, text.data[i]) == NULL) {
            return request_fail(req, ERR_CUSTOM,
                                "Unknown %s found in the %s filter: %.*s", what,
                                !negated                    ? "provided"
                                : strcmp(what, "capa") == 0 ? "NOT-CAPA"
                                                            : "NOT-FLAGS",
                                slice_shown(text), text.data);
        }
    }
    return OK;
}

static enum err
parse_skip_me(struct slice text, struct cmd_client_filter *filter)
{
    if (!slice_is_word(text, "yes") && !slice_is_word(text, "no")) {
        return ERR_SYNTAX;
    }
    filter->skip_me = slice_is_word(text, "yes");
    return OK;
}

static enum err
parse_value(struct request *req, struct cmd_client_filter *filter,
            enum cmd_client_filter_kind kind, bool negated, struct slice value)
{
    switch (kind) {
    case FILTER_CAPA:
        return check_letters(req, value, "r", "capa", negated);
    case FILTER_DB:
        return parse_db(req, value, &filter->db[negated]);
    case FILTER_FLAGS:
        return check_letters(req, value, "OSMPxbtRBdcuAUreTIN", "flags",
                             negated);
    case FILTER_IDLE:
        return parse_seconds(req, value, "idle", &filter->idle_s);
    case FILTER_MAXAGE:
        return parse_seconds(req, value, "maxage", &filter->age_s);
    case FILTER_SKIPME:
        return parse_skip_me(value, filter);
    case FILTER_TYPE:
        return cmd_client_parse_type(req, value, &filter->type[negated]);
    case FILTER_USER:
        return users_find(req->service->users, value) != NULL
                   ? OK
                   : request_fail(req, ERR_CUSTOM, "No such user '%.*s'",
                                  slice_shown(value), value.data);
    default:
        return OK; /* any text */
    }
}

static int
compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void
sort_ids(struct cmd_client_filter *filter, bool negated)
{
    uint64_t *ids = filter->ids[negated];
    size_t count = filter->id_count[negated], kept = 0;

    if (count == 0) {
        return;
    }
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < count; i++) {
        if (ids[i] != ids[kept]) {
            ids[++kept] = ids[i];
        }
    }
    filter->id_count[negated] = kept + 1;
}

enum err
cmd_client_filter_parse(struct request *req, bool for_kill,
                        struct cmd_client_filter *filter)
{
    struct args *args = &req->args;
    enum err err = OK;

    *filter = (struct cmd_client_filter){ .for_kill = for_kill };
    if (for_kill && args_left(args) == 1) { /* CLIENT KILL address */
        filter->at[FILTER_ADDR][false] = args->next + 1;
        return OK;
    }
    filter->skip_me = for_kill;
    while (err == OK && args_left(args) > 0) {
        enum cmd_client_filter_kind kind;
        bool negated;

        if (args_left(args) < 2 || !find_row(peek(args), &kind, &negated)) {
            return ERR_SYNTAX;
        }
        args->next++;
        if (kind == FILTER_ID) {
            err = parse_ids(req, filter, negated);
        } else {
            filter->at[kind][negated] = args->next + 1;
            err = parse_value(req, filter, kind, negated, args_bytes(args));
        }
    }
    sort_ids(filter, true);
    if (for_kill) { /* LIST keeps the order of its ids */
        sort_ids(filter, false);
    }
    return err;
}

void
cmd_client_filter_free(struct cmd_client_filter *filter)
{
    mem_free(filter->ids[false]);
    mem_free(filter->ids[true]);
}

/* ---- matching a client --------------------------------------------------- */

/* A client; without a session, a link. */
struct candidate {
    const struct session *session;
    const struct links_client *link;
    enum client_type type;
    uint64_t id, age_s, idle_s;
};

static bool
address_is(const struct candidate *who, bool local, struct slice wanted)
{
    char text[CONN_ADDRESS_MAX] = "";

    if (who->session == NULL) {
        return slice_equal(wanted, slice_of(local ? who->link->local_address
                                                  : who->link->address));
    }
    if (local) {
        conn_local_address(who->session->conn, text);
    } else {
        conn_peer_address(who->session->conn, text);
    }
    return slice_equal(wanted, slice_of(text));
}

/* Compares the address without its port and without the brackets of IPv6. A
 * unix socket has the "port" 0 and matches no address. */
static bool
ip_is(const struct candidate *who, struct slice wanted)
{
    char text[CONN_ADDRESS_MAX] = "";
    const char *from = text;
    struct host_port parts;

    if (who->session == NULL) {
        from = who->link->address;
    } else {
        conn_peer_address(who->session->conn, text);
    }
    return host_port_split(slice_of(from), &parts) &&
           !slice_equal(parts.port, slice_lit("0")) &&
           slice_equal(wanted, parts.host);
}

static bool
text_is(const struct candidate *who, const char *text, struct slice wanted)
{
    return who->session != NULL && text != NULL &&
           slice_equal(wanted, slice_of(text));
}

/* A replica's link counts as one of the default user; the link to the primary
 * has no user. */
static bool
is_user(const struct candidate *who, struct slice name)
{
    if (who->session != NULL && who->session->user != NULL) {
        return slice_equal(user_name(who->session->user), name);
    }
    return who->type != CLIENT_MASTER &&
           slice_equal(name, slice_lit("default"));
}

/* Returns whether the client has all of these flags. */
static bool
has_flags(const struct candidate *who, struct slice wanted)
{
    char flags[CLIENT_FLAGS_MAX + 1] = "";

    if (who->session != NULL) {
        client_flags(who->session, flags);
    } else {
        flags[0] = who->link->flag;
    }
    for (size_t i = 0; i < wanted.len; i++) {
        if (strchr(flags, wanted.data[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static uint32_t
db_of(const struct candidate *who)
{
    return who->session != NULL
               ? atomic_load_explicit(&who->session->db, memory_order_relaxed)
               : 0;
}

static bool
holds(const struct cmd_client_filter *filter, const struct candidate *who,
      enum cmd_client_filter_kind kind, bool negated, struct slice value)
{
    const struct session *session = who->session;

    switch (kind) {
    case FILTER_ADDR:
        return address_is(who, false, value);
    case FILTER_CAPA:
        return value.len == 0 ||
               (session != NULL && session->follows_redirects);
    case FILTER_DB:
        return db_of(who) == filter->db[negated];
    case FILTER_FLAGS:
        return has_flags(who, value);
    case FILTER_IDLE:
        return who->idle_s >= (uint64_t)filter->idle_s;
    case FILTER_IP:
        return ip_is(who, value);
    case FILTER_LADDR:
        return address_is(who, true, value);
    case FILTER_LIB_NAME:
        return text_is(who, session != NULL ? session->lib_name : NULL, value);
    case FILTER_LIB_VER:
        return text_is(who, session != NULL ? session->lib_ver : NULL, value);
    case FILTER_MAXAGE:
        return who->age_s >= (uint64_t)filter->age_s;
    case FILTER_NAME:
        return text_is(who, session != NULL ? session->name : NULL, value);
    case FILTER_TYPE:
        return who->type == filter->type[negated];
    case FILTER_USER:
        return is_user(who, value);
    case FILTER_ID:
    case FILTER_SKIPME: /* the callers check both */
        break;
    }
    return true;
}

static bool
wants(const struct cmd_client_filter *filter, const struct slice *args,
      const struct candidate *who)
{
    if (filter->id_count[true] > 0 &&
        bsearch(&who->id, filter->ids[true], filter->id_count[true],
                sizeof(who->id), compare_ids) != NULL) {
        return false;
    }
    for (unsigned i = 0; i < 2 * FILTER_KINDS; i++) {
        enum cmd_client_filter_kind kind = (enum cmd_client_filter_kind)(i / 2);
        bool negated = i % 2 == 1;
        size_t at = filter->at[kind][negated];

        if (at > 0 &&
            holds(filter, who, kind, negated, args[at - 1]) == negated) {
            return false;
        }
    }
    return true;
}

bool
cmd_client_filter_wants(const struct cmd_client_filter *filter,
                        const struct slice *args, const struct session *session,
                        uint64_t now_ms)
{
    const struct candidate who = {
        .session = session,
        .type = cmd_client_type(session),
        .id = session->conn != NULL ? conn_id(session->conn) : session->id,
        .age_s = client_age_s(session, now_ms),
        .idle_s = client_idle_s(session, now_ms),
    };

    return wants(filter, args, &who);
}

bool
cmd_client_filter_wants_link(const struct cmd_client_filter *filter,
                             const struct slice *args,
                             const struct links_client *link)
{
    const struct candidate who = {
        .link = link,
        .type = link->flag == 'M' ? CLIENT_MASTER : CLIENT_REPLICA,
        .id = link->id,
        .age_s = link->age_s,
        .idle_s = link->idle_s,
    };

    return wants(filter, args, &who);
}
