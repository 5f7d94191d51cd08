/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The links to replicas and to the primary as clients see them: a copy of what
 * loop 0 has published (repl/status.h), adapted to the present role, and their
 * lines in CLIENT LIST. Any loop, inside a section of the gate.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"
#include "repl/status.h"

struct links {
    /* Figures of an earlier link to a primary are left out. */
    struct status_figures figures;
    struct status_replica *replicas;
    size_t count;
};

/* Copies the links; there are none without a status. ERR_NOMEM: there is
 * nothing to free. */
MUST_CHECK enum err links_get(const struct service *service,
                              struct links *ret_links);
void links_free(struct links *links);

/* Copies only the figures. */
void links_get_figures(const struct service *service,
                       struct status_figures *ret_figures);

/* Returns whether a replica has data of its primary, or a link that is up. */
bool links_has_data(const struct service *service);

/* Returns how many of the links are to replicas, without servers that take over
 * slots (STATUS_PULLS). */
size_t links_replicas(const struct links *links);

/* What INFO, the metrics, the status page and CLIENT LIST show of a replica. */
struct links_replica {
    char name[STATUS_NAME_MAX]; /* address:port */
    bool online;
    uint64_t lag_bytes; /* bytes of the log that it lacks, up to `position` */
    uint64_t silent_ms; /* since its last acknowledgement; before the first,
                           since it came */
};
void links_measure(const struct status_replica *replica, uint64_t position,
                   struct links_replica *ret_figures);

/* Finds the replica with this address, as FAILOVER names it; NULL if none. */
const struct status_replica *links_find(const struct links *links,
                                        struct slice host, uint64_t port);

/* Returns the bytes that replicas have not received yet. */
uint64_t links_unsent(const struct links *links);

/* Returns whether clients see a link to the primary. */
bool links_has_primary(const struct links *links);

/* A link, shown as a client. Its texts are borrowed from the links. */
struct links_client {
    uint64_t id, age_s, idle_s, unsent;
    const char *address, *local_address, *user, *command;
    char flag; /* 'S': to a replica, 'M': to the primary */
};

/* Calls visit for the link with this id; for each link if id is 0. */
typedef void (*links_visit_fn)(void *ctx, const struct links_client *client);
void links_visit(const struct links *links, uint64_t id, links_visit_fn visit,
                 void *ctx);

/* Appends the link's line in CLIENT LIST, with a line feed. */
void links_client_line(struct buf *text, const struct links_client *line);
