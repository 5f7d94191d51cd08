/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log is a list, the newest entry first. It is short: walking it takes some
 * microseconds.
 */
#include "access/acl_log.h"

#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

struct node {
    struct node *next;
    uint64_t id, count, time_ms, first_ms;
    const char *reason, *context;
    struct slice object, user, client; /* in text */
    char text[];
};

struct acl_log {
    pthread_mutex_t mutex;
    struct node *first;
    uint64_t next_id;
};

struct acl_log *
acl_log_new(void)
{
    struct acl_log *log = mem_zalloc(sizeof(*log));

    CHECK(pthread_mutex_init(&log->mutex, NULL) == 0);
    return log;
}

static void
free_from(struct node **at)
{
    struct node *node = *at;

    *at = NULL;
    while (node != NULL) {
        struct node *next = node->next;

        mem_free(node);
        node = next;
    }
}

void
acl_log_free(struct acl_log *log)
{
    if (log != NULL) {
        free_from(&log->first);
        pthread_mutex_destroy(&log->mutex);
        mem_free(log);
    }
}

static struct slice
shortened(struct slice name)
{
    return (struct slice){ name.data, name.len < ACL_LOG_NAME_MAX
                                          ? name.len
                                          : (size_t)ACL_LOG_NAME_MAX };
}

/* Copies text to *to, and moves *to behind it. */
static struct slice
keep_text(char **to, struct slice text)
{
    struct slice kept = { *to, text.len };

    if (text.len > 0) {
        memcpy(*to, text.data, text.len);
    }
    *to += text.len;
    return kept;
}

static struct node *
new_node(const struct acl_log_entry *from)
{
    struct slice object = shortened(from->object);
    struct slice user = shortened(from->user);
    struct node *node =
        mem_try_alloc(sizeof(*node) + object.len + user.len + from->client.len);
    char *to;

    if (node != NULL) {
        *node = (struct node){ .count = 1,
                               .time_ms = from->time_ms,
                               .first_ms = from->time_ms,
                               .reason = from->reason,
                               .context = from->context };
        to = node->text;
        node->object = keep_text(&to, object);
        node->user = keep_text(&to, user);
        node->client = keep_text(&to, from->client);
    }
    return node;
}

static bool
is_same(const struct node *a, const struct node *b)
{
    return strcmp(a->reason, b->reason) == 0 &&
           strcmp(a->context, b->context) == 0 &&
           slice_equal(a->object, b->object) && slice_equal(a->user, b->user) &&
           b->time_ms - a->time_ms <= ACL_LOG_GROUP_MS;
}

/* Removes the entry that equals the new one, which takes over its id and count.
 */
static void
merge(struct acl_log *log, struct node *node)
{
    for (struct node **at = &log->first; *at != NULL; at = &(*at)->next) {
        struct node *old = *at;

        if (is_same(old, node)) {
            node->count += old->count;
            node->id = old->id;
            node->first_ms = old->first_ms;
            *at = old->next;
            mem_free(old);
            return;
        }
    }
    node->id = log->next_id++;
}

void
acl_log_add(struct acl_log *log, const struct acl_log_entry *from, uint64_t max)
{
    struct node *node = new_node(from);
    struct node **end;

    if (node == NULL) {
        return;
    }
    pthread_mutex_lock(&log->mutex);
    merge(log, node);
    node->next = log->first;
    log->first = node;
    end = &log->first;
    while (*end != NULL && max-- > 0) {
        end = &(*end)->next;
    }
    free_from(end);
    pthread_mutex_unlock(&log->mutex);
}

void
acl_log_visit(struct acl_log *log, uint64_t count,
              const struct acl_log_visitor *visitor)
{
    size_t entries = 0;

    pthread_mutex_lock(&log->mutex);
    for (const struct node *node = log->first; node != NULL && entries < count;
         node = node->next) {
        entries++;
    }
    visitor->total(visitor->ctx, entries);
    for (const struct node *node = log->first; entries > 0;
         node = node->next, entries--) {
        visitor->entry(visitor->ctx,
                       &(struct acl_log_entry){ .id = node->id,
                                                .count = node->count,
                                                .time_ms = node->time_ms,
                                                .first_ms = node->first_ms,
                                                .reason = node->reason,
                                                .context = node->context,
                                                .object = node->object,
                                                .user = node->user,
                                                .client = node->client });
    }
    pthread_mutex_unlock(&log->mutex);
}

void
acl_log_reset(struct acl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    free_from(&log->first);
    pthread_mutex_unlock(&log->mutex);
}
