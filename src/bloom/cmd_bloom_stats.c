/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.STATS, a map in RESP3 and else an array, the same in both dialects:
 *
 *   kind, items, capacity, bytes as BF.INFO and OBJECT ENCODING have them
 *   error-rate-asked            of the first layer
 *   error-rate                  at which absent items are found now
 *   items-until-next-layer      of a nonscaling filter: until it is full
 *   items-until-limit           until an add fails, under the present
 *                               bf.bloom-memory-usage-limit
 *   sampled                     the share of the lines that was read
 *   hash                        plain or keyed (core/keyed.h)
 *   layers                      an array of maps: items, capacity, bits,
 *                               bits-set, error-rate-asked, error-rate
 *
 * An ageing filter has seconds and generations before the layers. Its figures
 * are those of the generations that are live now, and each layer has its age:
 * the milliseconds since its generation began.
 *
 * It reads only a sample of a large filter, to release the lock soon.
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "bloom/bloom_make.h"
#include "core/measure.h"
#include "engine/keys.h"

enum { LINES_READ = 1 << 16 /* of all layers, about */ };

struct stats_of_filter {
    double clean; /* chance that no layer finds an absent item */
    double lines, lines_read;
};

static void
put_layer(struct reply *reply, const struct bloom *bloom, uint32_t index,
          const struct measured *measured, uint64_t now_ms)
{
    struct bloom_layer_info info = { .struct_size = sizeof(info) };
    bool ages = bloom_kind(bloom) == BLOOM_AGEING;

    CHECK(bloom_get_layer(bloom, index, &info));
    reply_map(reply, ages ? 7 : 6);
    reply_named_int(reply, "items", info.items);
    reply_named_int(reply, "capacity", info.capacity);
    reply_named_int(reply, "bits", measured->bits);
    reply_named_int(reply, "bits-set", (uint64_t)(measured->ones + 0.5));
    reply_named_double(reply, "error-rate-asked",
                       bloom_asked_rate(bloom, index));
    reply_named_double(reply, "error-rate", measured->rate);
    if (ages) {
        reply_named_int(reply, "age", ageing_age_ms(bloom, index, now_ms));
    }
}

/* ---- the work, in pieces ------------------------------------------------- */

/* A filter of many layers is measured in pieces. Earlier pieces stay valid
 * unless the key has got another filter, or a generation has ended, since then.
 */
struct work {
    uint64_t incarnation;
    uint32_t first, next; /* layers: the first that is live, and the next one */
    struct stats_of_filter all;
    struct buf layers; /* their replies */
    bool sizes;        /* the layers are done: `room` is computed */
    struct measure_room room;
};

static void
forget_work(void *state)
{
    struct work *work = state;

    buf_free(&work->layers);
    mem_free(work);
}

static void
begin_work(struct request *req, const struct entry *entry, struct work *work)
{
    buf_free(&work->layers);
    *work = (struct work){ .incarnation = entry->incarnation,
                           .all.clean = 1,
                           .layers.limit = req->reply->buf->limit };
    work->first =
        entry->bloom.count - ageing_layers(&entry->bloom, req->now_ms);
    work->next = work->first;
}

static bool
is_same(const struct request *req, const struct entry *entry,
        const struct work *work)
{
    const struct bloom *bloom = &entry->bloom;

    return work->incarnation == entry->incarnation &&
           work->next <= bloom->count &&
           work->first == bloom->count - ageing_layers(bloom, req->now_ms);
}

/* Measures the layers that are left. ERR_AGAIN: it is time for others. */
static enum err
measure_layers(struct request *req, const struct bloom *bloom,
               struct work *work, uint32_t *steps)
{
    struct reply to = { &work->layers, req->reply->resp };
    uint64_t share = measure_share(bloom, LINES_READ);
    struct measured measured;

    while (measure_layer(bloom, work->next, share, &measured)) {
        put_layer(&to, bloom, work->next++, &measured, req->now_ms);
        work->all.clean *= 1 - measured.rate;
        work->all.lines += (double)measured.lines;
        work->all.lines_read += (double)measured.lines_read;
        if (request_piece_is_over(req, ++*steps)) {
            return ERR_AGAIN;
        }
    }
    return OK;
}

static enum err
go_on(struct request *req, const struct bloom *bloom, struct work *work)
{
    uint64_t limit = (uint64_t)req->service->conf->bf_memory_usage_limit;
    uint32_t steps = 0;
    enum err err = measure_layers(req, bloom, work, &steps);

    if (err == OK && work->layers.failed) {
        return work->layers.over ? ERR_REPLY_LIMIT : ERR_NOMEM;
    }
    if (err == OK && !work->sizes) {
        work->sizes = true;
        measure_room_begin(&work->room, bloom, limit);
    }
    while (err == OK && measure_room_step(&work->room)) {
        err = request_piece_is_over(req, ++steps) ? ERR_AGAIN : OK;
    }
    return err;
}

/* ---- the reply ----------------------------------------------------------- */

/* Appends how many items there is room for: in the newest layer, or in the
 * first one of the generation that the next add begins; and below the limit. */
static void
put_room(struct reply *reply, const struct bloom *bloom, uint64_t room,
         uint64_t now_ms)
{
    uint64_t fresh = ageing_room(bloom, now_ms);
    uint64_t layer = fresh > 0 ? fresh : measure_layer_room(bloom);

    reply_named_int(reply, "items-until-next-layer", layer);
    reply_named_int(reply, "items-until-limit", room < layer ? layer : room);
}

static void
put_stats(struct request *req, const struct bloom *bloom, struct work *work)
{
    struct bloom_info info = { .struct_size = sizeof(info) };
    struct bloom_params params = { .struct_size = sizeof(params) };
    const struct stats_of_filter *all = &work->all;
    struct reply *reply = req->reply;

    bloom_get_info(bloom, &info);
    bloom_get_params(bloom, &params);
    reply_map(reply, params.seconds > 0 ? 13 : 11);
    reply_bulk_text(reply, "kind");
    reply_bulk_text(reply, bloom_kind_name(bloom_kind(bloom)));
    reply_named_int(reply, "items", ageing_items(bloom, req->now_ms));
    reply_named_int(reply, "capacity", info.capacity);
    reply_named_int(reply, "bytes", info.size_bytes);
    reply_named_double(reply, "error-rate-asked", params.error_rate);
    reply_named_double(reply, "error-rate", 1 - all->clean);
    put_room(reply, bloom, work->room.room, req->now_ms);
    reply_named_double(reply, "sampled",
                       all->lines > 0 ? all->lines_read / all->lines : 1);
    if (params.seconds > 0) {
        reply_named_int(reply, "seconds", params.seconds);
        reply_named_int(reply, "generations", params.generations);
    }
    reply_bulk_text(reply, "hash");
    reply_bulk_text(reply, bloom_is_keyed(bloom) ? "keyed" : "plain");
    reply_bulk_text(reply, "layers");
    reply_array(reply, work->next - work->first);
    reply_give(reply, &work->layers, 0);
}

enum err
cmd_bf_stats(struct request *req)
{
    struct work *work = request_resumed(req);
    const struct entry *entry =
        work == NULL ? keys_find(req, &req->key)
                     : keyspace_find(req->keyspace, &req->key, req->now_ms);
    enum err err;

    if (entry == NULL || bloom_is_incomplete(&entry->bloom)) {
        return entry == NULL ? ERR_BF_NOT_FOUND : ERR_BF_INCOMPLETE;
    }
    if (work == NULL) {
        work = mem_try_zalloc(sizeof(*work));
        if (work == NULL) {
            return ERR_NOMEM;
        }
        begin_work(req, entry, work);
    } else if (!is_same(req, entry, work)) {
        begin_work(req, entry, work);
    }
    err = go_on(req, &entry->bloom, work);
    if (err == OK) {
        put_stats(req, &entry->bloom, work);
    }
    return request_end_piece(req, err, work, forget_work,
                             work->layers.capacity);
}
