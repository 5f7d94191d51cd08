/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which clients CLIENT LIST shows and CLIENT KILL closes: the filters of both,
 * in any number and order, and what they say of one client or link. All that
 * are named must hold; of one that is named twice the later one counts, but ids
 * add up. A filter is parsed once and outlives the pauses of its command: it
 * remembers where its texts lie among the arguments, which are given anew.
 */
#pragma once

#include "command/cmd_client.h"
#include "info/links.h"

/* In the order of their names, which is that of the table. */
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

/* Of each pair the second is for the form with NOT-. */
struct cmd_client_filter {
    bool for_kill;
    bool skip_me, has_ids;
    size_t at[FILTER_KINDS][2]; /* of the value among req->args, +1; 0: none */
    enum client_type type[2];
    int64_t db[2];
    int64_t age_s, idle_s; /* at least; 0: any */
    uint64_t *ids[2];      /* the wanted ones of LIST as they came, else sorted
                              and each one once */
    size_t id_count[2];
};

/* Reads all arguments that are left. Fails with an error for the client; the
 * filter is to be freed either way. */
MUST_CHECK enum err cmd_client_filter_parse(struct request *req, bool for_kill,
                                            struct cmd_client_filter *filter);
void cmd_client_filter_free(struct cmd_client_filter *filter);

/* Whether all hold but the list of wanted ids, which the caller walks. args:
 * those that were parsed. For a session of another loop: under the registry's
 * lock. */
bool cmd_client_filter_wants(const struct cmd_client_filter *filter,
                             const struct slice *args,
                             const struct session *session, uint64_t now_ms);
bool cmd_client_filter_wants_link(const struct cmd_client_filter *filter,
                                  const struct slice *args,
                                  const struct links_client *link);
