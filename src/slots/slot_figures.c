/* SPDX-License-Identifier: BSD-3-Clause */
#include "slots/slot_figures.h"

#include "base/mem.h"
#include "cluster/cluster.h"
#include "engine/service.h"
#include "keyspace/key_hash.h"
#include "slots/pull.h"
#include "slots/slot_drop.h"

#include <inttypes.h>
#include <stdio.h>

struct slot_figures {
    struct service *service;
    const struct pull *now;
    const struct slot_drop *drop;
    pthread_mutex_t mutex; /* guards what follows */
    bool pulls;
    struct pull_progress pull;
    struct pull_counts counts;
    struct slot_set dropped;
    uint64_t deleted;
};

/* Describes the pull. There is at most one. */
static void
describe_pull(const struct pull_progress *pull, struct buf *text)
{
    buf_append_slice(text, slice_lit("slot_pull0:source="));
    buf_append_slice(text, slice_of(pull->host));
    buf_printf(text, ":%u,state=%s,slots=", pull->port,
               pull_state_name(pull->state));
    for (unsigned at = 0, first, last;
         slot_set_next(&pull->slots, &at, &first, &last);) {
        buf_printf(text, first == last ? "%u " : "%u-%u ", first, last);
    }
    text->len--;
    buf_printf(text,
               ",keys=%" PRIu64 ",bytes=%" PRIu64
               ",attempts=%u,claimed=yes,position=%" PRIu64
               ",lag_bytes=%" PRIu64 ",lag_ms=%" PRIu64 ",reason=\"",
               pull->keys, pull->bytes, pull->attempts, pull->position,
               pull->lag_bytes, pull->lag_ms);
    buf_append_slice(text, slice_of(pull->reason));
    buf_append_slice(text, slice_lit("\"\r\n"));
}

static void
describe_figures(void *ctx, struct buf *text)
{
    struct slot_figures *figures = ctx;
    const struct cluster *cluster = figures->service->cluster;

    if (!key_hash_has_slots()) {
        return;
    }
    pthread_mutex_lock(&figures->mutex);
    buf_printf(text, "slot_pulls:%d\r\n", figures->pulls);
    if (figures->pulls) {
        describe_pull(&figures->pull, text);
    }
    buf_printf(text,
               "slot_pulls_done:%" PRIu64 "\r\nslot_pulls_failed:%" PRIu64
               "\r\nslot_last_cutover_us:%" PRIu64 "\r\n",
               figures->counts.done, figures->counts.failed,
               figures->counts.cutover_us);
    buf_append_slice(text, slice_lit("slot_last_failure:"));
    buf_append_slice(text, slice_of(figures->counts.why));
    buf_append_slice(text, slice_lit("\r\n"));
    if (cluster != NULL && cluster->view != NULL) {
        buf_printf(text, "slots_epoch_fell:%u\r\n", cluster->view->fallen);
    }
    buf_printf(text,
               "slots_being_deleted:%u\r\nslot_keys_deleted:%" PRIu64 "\r\n",
               slot_set_count(&figures->dropped), figures->deleted);
    pthread_mutex_unlock(&figures->mutex);
}

static void
show_transfers(void *ctx, struct slot_transfers *ret_transfers)
{
    struct slot_figures *figures = ctx;
    const struct pull_progress *pull = &figures->pull;

    *ret_transfers = (struct slot_transfers){ .state = "" };
    pthread_mutex_lock(&figures->mutex);
    if (figures->pulls) {
        ret_transfers->count = 1;
        ret_transfers->state = pull_state_name(pull->state);
        (void)snprintf(ret_transfers->source, sizeof(ret_transfers->source),
                       "%s:%u", pull->host, pull->port);
        ret_transfers->slots = slot_set_count(&pull->slots);
        ret_transfers->keys = pull->keys;
        ret_transfers->bytes = pull->bytes;
        ret_transfers->lag_bytes = pull->lag_bytes;
        ret_transfers->age_ms = pull->age_ms;
    }
    pthread_mutex_unlock(&figures->mutex);
}

void
slot_figures_publish(struct slot_figures *figures)
{
    if (!key_hash_has_slots()) {
        return;
    }
    pthread_mutex_lock(&figures->mutex);
    figures->pulls = pull_show(figures->now, &figures->pull);
    figures->counts = *pull_counted(figures->now);
    slot_drop_describe(figures->drop, &figures->dropped, &figures->deleted);
    pthread_mutex_unlock(&figures->mutex);
}

struct slot_figures *
slot_figures_new(struct service *service, const struct pull *pull,
                 const struct slot_drop *drop)
{
    struct slot_figures *figures = mem_zalloc(sizeof(*figures));

    figures->service = service;
    figures->now = pull;
    figures->drop = drop;
    CHECK(pthread_mutex_init(&figures->mutex, NULL) == 0);
    service->slots = (struct slot_calls){ .describe = describe_figures,
                                          .transfers = show_transfers,
                                          .ctx = figures };
    return figures;
}

void
slot_figures_free(struct slot_figures *figures)
{
    if (figures == NULL) {
        return;
    }
    (void)pthread_mutex_destroy(&figures->mutex);
    mem_free(figures);
}
