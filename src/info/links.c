/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The number of replicas may change between counting and copying them; the
 * second call copies at most as many as the first one counted.
 */
#include "info/links.h"

#include "access/table.h"
#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* The role changes at once, and loop 0 moves the link afterwards. Until then
 * the link shows as connecting. */
static void
judge_link(const struct service *service, struct status_figures *figures)
{
    if (atomic_load(&service->absent)) {
        figures->synced_once = false;
    }
    if (figures->epoch == service->role.epoch && service->role.replica) {
        if (figures->link == STATUS_NO_LINK) {
            figures->link = STATUS_CONNECT;
        }
        return;
    }
    figures->link = service->role.replica ? STATUS_CONNECT : STATUS_NO_LINK;
    figures->link_id = 0;
    figures->reason[0] = '\0';
    figures->heard_mono_ms = 0;
    figures->down_mono_ms = 0;
    figures->synced_mono_ms = 0;
    figures->synced_once = false;
}

void
links_get_figures(const struct service *service,
                  struct status_figures *ret_figures)
{
    memset(ret_figures, 0, sizeof(*ret_figures));
    if (service->status != NULL) {
        (void)status_get(service->status, ret_figures, NULL, 0);
    }
    judge_link(service, ret_figures);
}

enum err
links_get(const struct service *service, struct links *ret_links)
{
    struct links links;
    size_t max;

    memset(&links, 0, sizeof(links));
    if (service->status != NULL) {
        max = status_get(service->status, &links.figures, NULL, 0);
        links.replicas = mem_try_alloc((max + 1) * sizeof(*links.replicas));
        if (links.replicas == NULL) {
            return ERR_NOMEM;
        }
        links.count =
            status_get(service->status, &links.figures, links.replicas, max);
        links.count = links.count < max ? links.count : max;
    }
    judge_link(service, &links.figures);
    *ret_links = links;
    return OK;
}

void
links_free(struct links *links)
{
    mem_free(links->replicas);
    memset(links, 0, sizeof(*links));
}

bool
links_has_data(const struct service *service)
{
    struct status_figures figures;

    links_get_figures(service, &figures);
    return figures.link == STATUS_CONNECTED || figures.synced_once;
}

size_t
links_replicas(const struct links *links)
{
    size_t count = 0;

    for (size_t i = 0; i < links->count; i++) {
        count += links->replicas[i].state != STATUS_PULLS;
    }
    return count;
}

static uint64_t
silent_ms(const struct status_replica *replica)
{
    return clock_ms_since(replica->acked_mono_ms > 0 ? replica->acked_mono_ms
                                                     : replica->since_mono_ms);
}

void
links_measure(const struct status_replica *replica, uint64_t position,
              struct links_replica *ret_figures)
{
    status_name(replica, ret_figures->name);
    ret_figures->online = replica->state == STATUS_ONLINE;
    ret_figures->lag_bytes =
        position > replica->acked ? position - replica->acked : 0;
    ret_figures->silent_ms = silent_ms(replica);
}

const struct status_replica *
links_find(const struct links *links, struct slice host, uint64_t port)
{
    for (size_t i = 0; i < links->count; i++) {
        const struct status_replica *replica = &links->replicas[i];

        if (replica->port == port && strlen(replica->ip) == host.len &&
            strncasecmp(replica->ip, host.data, host.len) == 0) {
            return replica;
        }
    }
    return NULL;
}

uint64_t
links_unsent(const struct links *links)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < links->count; i++) {
        sum += links->replicas[i].unsent_bytes;
    }
    return sum;
}

bool
links_has_primary(const struct links *links)
{
    return links->figures.link_id != 0 &&
           links->figures.link_address[0] != '\0';
}

/* ---- as clients ---------------------------------------------------------- */

void
links_client_line(struct buf *text, const struct links_client *line)
{
    buf_printf(text, "id=%" PRIu64 " addr=", line->id);
    buf_append_slice(text, slice_of(line->address));
    buf_append_slice(text, slice_lit(" laddr="));
    buf_append_slice(text, slice_of(line->local_address));
    buf_printf(text,
               " fd=-1 name= age=%" PRIu64 " idle=%" PRIu64
               " flags=%c capa= db=0 sub=0 psub=0 ssub=0 multi=-1",
               line->age_s, line->idle_s, line->flag);
    buf_printf(text,
               " qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 "
               "oll=%d omem=%" PRIu64 " tot-mem=%" PRIu64 " events=%s",
               line->unsent > 0, line->unsent, line->unsent,
               line->unsent > 0 ? "rw" : "r");
    buf_printf(text,
               " cmd=%s user=%s redir=-1 resp=2 filters=0 lib-name= lib-ver=\n",
               line->command, line->user);
}

static struct links_client
replica_client(const struct status_replica *replica)
{
    return (struct links_client){
        .id = replica->id,
        .age_s = clock_ms_since(replica->since_mono_ms) / 1000,
        .idle_s = silent_ms(replica) / 1000,
        .unsent = replica->unsent_bytes,
        .address = replica->address,
        .local_address = replica->local_address,
        .user = replica->user,
        .command = replica->acked_mono_ms > 0 ? "replconf" : "psync",
        .flag = 'S',
    };
}

/* The primary has no user: what it sends is executed. */
static struct links_client
primary_client(const struct status_figures *figures)
{
    return (struct links_client){
        .id = figures->link_id,
        .age_s = clock_ms_since(figures->synced_mono_ms) / 1000,
        .idle_s = clock_ms_since(figures->heard_mono_ms) / 1000,
        .address = figures->link_address,
        .local_address = figures->link_local_address,
        .user = "(superuser)",
        .command = "NULL",
        .flag = 'M',
    };
}

void
links_visit(const struct links *links, uint64_t id, links_visit_fn visit,
            void *ctx)
{
    for (size_t i = 0; i < links->count; i++) {
        if (id == 0 || links->replicas[i].id == id) {
            const struct links_client client =
                replica_client(&links->replicas[i]);

            visit(ctx, &client);
        }
    }
    if (links_has_primary(links) && (id == 0 || links->figures.link_id == id)) {
        const struct links_client client = primary_client(&links->figures);

        visit(ctx, &client);
    }
}
