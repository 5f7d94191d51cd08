/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filters of CLIENT LIST and CLIENT KILL, in any number and order. A client
 * or link must match all of them. If a filter is given twice, the last one
 * counts, but ids add up. The filters are parsed once and outlive the pauses of
 * their command: they remember the positions of their texts among the
 * arguments, since the arguments may move.
 */
#pragma once

#include "command/cmd_client.h"
#include "info/links.h"

/* Sorted by name, as the table of filters is. */
enum cmd_client_filter_kind {
    FILTER_ADDR,
    FILTER_CAPA,
    FILTER_DB,
    FILTER_FLAGS,
    FILTER_ID,
    FILTER_IDLE,
    FILTER_IP,
    FILTER_LADDR,
    FILTER_LIB_NAME,
    FILTER_LIB_VER,
    FILTER_MAXAGE,
    FILTER_NAME,
    FILTER_SKIPME,
    FILTER_TYPE,
    FILTER_USER
};
enum { FILTER_KINDS = FILTER_USER + 1 };

/* The second element of each pair is for the form with NOT-. */
struct cmd_client_filter {
    bool for_kill;
    bool skip_me, has_ids;
    size_t at[FILTER_KINDS][2]; /* index in req->args, +1; 0: none */
    enum client_type type[2];
    int64_t db[2];
    int64_t age_s, idle_s; /* at least; 0: any */
    uint64_t *ids[2];      /* sorted and each once, but ids[0] of LIST is in the
                              order of the arguments */
    size_t id_count[2];
};

/* Parses all arguments that are left. Fails with an error for the client; the
 * caller frees the filter in any case. */
MUST_CHECK enum err cmd_client_filter_parse(struct request *req, bool for_kill,
                                            struct cmd_client_filter *filter);
void cmd_client_filter_free(struct cmd_client_filter *filter);

/* Returns whether a client matches everything but the list of wanted ids, which
 * the caller walks. args: the same as when parsing. Under the registry's lock
 * for a session of another loop. */
bool cmd_client_filter_wants(const struct cmd_client_filter *filter,
                             const struct slice *args,
                             const struct session *session, uint64_t now_ms);
bool cmd_client_filter_wants_link(const struct cmd_client_filter *filter,
                                  const struct slice *args,
                                  const struct links_client *link);
