/* SPDX-License-Identifier: BSD-3-Clause
 *
 * To find a client, its loop walks over all its connections. So each target is
 * looked up only once.
 */
#include "push/targets.h"

#include "base/err.h"
#include "base/mem.h"
#include "net/conn.h"

enum { CUT_AT_ONCE = 64 };

/* NEW -> FOUND or GONE at the first look-up. FOUND -> NEW by targets_forget. */
enum target_state { TARGET_NEW, TARGET_FOUND, TARGET_GONE };
struct target {
    uint64_t uses; /* trackers that redirect to it */
    enum target_state state;
    struct receiver *receiver; /* only while FOUND */
};

static struct slice
name_of(const uint64_t *id)
{
    return (struct slice){ (const char *)id, sizeof(*id) };
}

void
targets_init(struct targets *targets)
{
    memset(targets, 0, sizeof(*targets));
    CHECK(pthread_mutex_init(&targets->mutex, NULL) == 0);
}

void
targets_fini(struct targets *targets)
{
    CHECK(targets->map.count == 0);
    map_free(&targets->map);
    pthread_mutex_destroy(&targets->mutex);
}

bool
targets_use(struct targets *targets, uint64_t id)
{
    struct target *target;

    pthread_mutex_lock(&targets->mutex);
    target = map_find(&targets->map, name_of(&id));
    if (target == NULL) {
        target = mem_try_zalloc(sizeof(*target));
        if (target != NULL && !map_put(&targets->map, name_of(&id), target)) {
            mem_free(target);
            target = NULL;
        }
    }
    if (target != NULL) {
        target->uses++;
    }
    pthread_mutex_unlock(&targets->mutex);
    return target != NULL;
}

void
targets_release(struct targets *targets, uint64_t id)
{
    struct target *target;

    pthread_mutex_lock(&targets->mutex);
    target = map_find(&targets->map, name_of(&id));
    CHECK(target != NULL && target->uses > 0);
    if (--target->uses == 0) {
        (void)map_remove(&targets->map, name_of(&id));
        mem_free(target);
    }
    pthread_mutex_unlock(&targets->mutex);
}

static bool
is_closing(const struct receiver *receiver)
{
    return receiver->conn != NULL && conn_is_closing(receiver->conn);
}

/* Returns whether the target's client is connected. Looks it up if it is new.
 */
static bool
is_connected(struct target *target, uint64_t id, targets_find_fn find,
             void *ctx)
{
    if (target->state == TARGET_NEW) {
        target->receiver = find(ctx, id);
        target->state = target->receiver != NULL ? TARGET_FOUND : TARGET_GONE;
        if (target->receiver != NULL) {
            target->receiver->is_target = true;
        }
    }
    return target->state == TARGET_FOUND && !is_closing(target->receiver);
}

struct receiver *
targets_get(struct targets *targets, uint64_t id, targets_find_fn find,
            void *ctx, bool *ret_used)
{
    struct receiver *receiver = NULL;
    struct target *target;

    pthread_mutex_lock(&targets->mutex);
    target = map_find(&targets->map, name_of(&id));
    if (target != NULL && is_connected(target, id, find, ctx)) {
        receiver = target->receiver;
    }
    *ret_used = target != NULL;
    pthread_mutex_unlock(&targets->mutex);
    return receiver;
}

void
targets_forget(struct targets *targets, struct receiver *receiver)
{
    uint64_t id =
        receiver->conn != NULL ? conn_id(receiver->conn) : receiver->id;
    struct target *target;

    pthread_mutex_lock(&targets->mutex);
    target = map_find(&targets->map, name_of(&id));
    if (target != NULL) {
        target->state = TARGET_NEW;
        target->receiver = NULL;
    }
    pthread_mutex_unlock(&targets->mutex);
    receiver->is_target = false;
}

struct cutting {
    targets_find_fn find;
    void *ctx;
    struct receiver *some[CUT_AT_ONCE];
    size_t count;
};

static bool
collect_one(void *ctx, struct slice name, void *value)
{
    struct cutting *cutting = ctx;
    struct target *target = value;
    uint64_t id;

    memcpy(&id, name.data, sizeof(id));
    if (is_connected(target, id, cutting->find, cutting->ctx)) {
        cutting->some[cutting->count++] = target->receiver;
    }
    return cutting->count < CUT_AT_ONCE;
}

/* A cut takes locks that are leaves as well, so this collects some targets
 * under the lock and cuts them without it. A cut client is closing, so the next
 * round does not collect it again. */
void
targets_cut(struct targets *targets, targets_find_fn find, void *ctx)
{
    struct cutting cutting = { .find = find, .ctx = ctx };

    do {
        cutting.count = 0;
        pthread_mutex_lock(&targets->mutex);
        (void)map_each(&targets->map, collect_one, &cutting);
        pthread_mutex_unlock(&targets->mutex);
        for (size_t i = 0; i < cutting.count; i++) {
            receiver_cut(cutting.some[i]);
        }
    } while (cutting.count == CUT_AT_ONCE);
}
