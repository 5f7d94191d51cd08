/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The links to replicas and to the primary as clients see them: a copy of what
 * loop 0 has published (repl/status.h), read in the light of the role, and the
 * lines that CLIENT LIST shows of them. Any loop, inside a section of the gate.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"
#include "repl/status.h"

struct links {
    /* What it says of the link to the primary is about the present one: what
     * loop 0 said of an earlier one is left out. */
    struct status_figures figures;
    struct status_replica *replicas;
    size_t count;
};

/* ERR_NOMEM: nothing is to be freed. Without a status there are no links. */
MUST_CHECK enum err links_get(const struct service *service,
                              struct links *ret_links);
void links_free(struct links *links);

/* The figures alone. */
void links_get_figures(const struct service *service,
                       struct status_figures *ret_figures);

/* A replica with data of its primary, or with a link that is up. */
bool links_has_data(const struct service *service);

/* The replica with this address, as FAILOVER names it; NULL: there is none. */
const struct status_replica *links_find(const struct links *links,
                                        struct slice host, uint64_t port);

/* Bytes that replicas have yet to take. */
uint64_t links_unsent(const struct links *links);

/* Whether there is a link to the primary that clients can see. */
bool links_has_primary(const struct links *links);

/* A link as a client: its texts are borrowed from what it was made of. */
struct links_client {
    uint64_t id, age_s, idle_s, unsent;
    const char *address, *local_address, *user, *command;
    char flag; /* 'S': to a replica, 'M': to the primary */
};

/* Calls visit for each link, or for the one with this id (0: all). */
typedef void (*links_visit_fn)(void *ctx, const struct links_client *client);
void links_visit(const struct links *links, uint64_t id, links_visit_fn visit,
                 void *ctx);

/* Its line as those of other clients, with a line feed. */
void links_client_line(struct buf *text, const struct links_client *line);
