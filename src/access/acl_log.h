/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ACL LOG: the latest refused logins and commands. Equal ones within a minute
 * are one entry with a count. All loops share the log, under a leaf lock.
 */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ACL_LOG_NAME_MAX = 128,  /* bytes kept of a user's name, or an object */
    ACL_LOG_GROUP_MS = 60000 /* equal refusals in this time are one entry */
};

struct acl_log;

struct acl_log *acl_log_new(void);
void acl_log_free(struct acl_log *log);

struct acl_log_entry {
    uint64_t id; /* of the first of equal refusals; counts from 0 */
    uint64_t count;
    uint64_t time_ms;    /* of the latest refusal; wall clock */
    uint64_t first_ms;   /* of the first refusal */
    const char *reason;  /* a constant: "auth", "command", "key", ... */
    const char *context; /* a constant: "toplevel" or "multi" */
    struct slice object; /* what was refused */
    struct slice user;
    struct slice client; /* the line of CLIENT LIST, at the latest refusal */
};

/* Adds a copy of `from` as the newest entry, ignoring its id, count and
 * first_ms, and keeps at most `max` entries. Adds nothing without memory. */
void acl_log_add(struct acl_log *log, const struct acl_log_entry *from,
                 uint64_t max);

/* Calls `total` with a number of entries, at most `count`, then `entry` for
 * each, the newest first. Both run under the lock and must not call the log. */
struct acl_log_visitor {
    void (*total)(void *ctx, size_t entries);
    void (*entry)(void *ctx, const struct acl_log_entry *entry);
    void *ctx;
};
void acl_log_visit(struct acl_log *log, uint64_t count,
                   const struct acl_log_visitor *visitor);

void acl_log_reset(struct acl_log *log);
