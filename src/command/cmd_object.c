/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OBJECT ENCODING FREQ IDLETIME REFCOUNT. ENCODING is the layout of the filter:
 * native, redisbloom or valkeybloom. The commands do not count as a use of the
 * key, nor as a hit or miss. Whether FREQ or IDLETIME works depends on
 * maxmemory-policy, as in Redis.
 */
#include "engine/request.h"

#include "access/handlers.h"
#include "core/bloom.h"
#include "keyspace/access.h"

#define TAKE_TIME                                                              \
    " Please note that when switching between policies at runtime LRU and "    \
    "LFU data will take some time to adjust."

/* Finds the key. If it is missing, replies with a null and returns NULL. */
static struct entry *
find_key(struct request *req)
{
    struct entry *entry = keyspace_find(req->keyspace, &req->key, req->now_ms);

    if (entry == NULL) {
        reply_null(req->reply);
    }
    return entry;
}

enum err
cmd_object_encoding(struct request *req)
{
    const struct entry *entry = find_key(req);

    if (entry != NULL) {
        reply_bulk_text(req->reply, bloom_kind_name(bloom_kind(&entry->bloom)));
    }
    return OK;
}

enum err
cmd_object_refcount(struct request *req)
{
    if (find_key(req) != NULL) {
        reply_int(req->reply, 1);
    }
    return OK;
}

/* OBJECT FREQ and IDLETIME. */
enum err
cmd_object_access(struct request *req)
{
    bool frequency = req->command->id == CMD_ID_OBJECT_FREQ;
    const struct access *access = keyspace_access(req->keyspace);
    const struct entry *entry = find_key(req);

    if (entry == NULL) {
        return OK;
    }
    if (frequency != conf_policy_is_lfu(req->service->conf)) {
        return request_fail(
            req, ERR_CUSTOM, "%s",
            frequency ? "An LFU maxmemory policy is not selected, access "
                        "frequency not tracked." TAKE_TIME
                      : "An LFU maxmemory policy is selected, idle time not "
                        "tracked." TAKE_TIME);
    }
    reply_int(req->reply, frequency ? (int64_t)access_frequency(access, entry)
                                    : (int64_t)access_idle_s(access, entry));
    return OK;
}
