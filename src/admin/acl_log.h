/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The last refusals of ACL LOG: so far, names and passwords with which nobody
 * may come in. Equal ones that follow within a minute are one entry, which
 * counts them. Shared by all loops; a lock of its own, a leaf, is held for as
 * long as an entry is put in or shown.
 */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ACL_LOG_NAME_MAX = 128,  /* kept of a name, a user's or a command's */
    ACL_LOG_GROUP_MS = 60000 /* how far apart equal ones may be */
};

struct acl_log;

struct acl_log *acl_log_new(void);
void acl_log_free(struct acl_log *log);

struct acl_log_entry {
    uint64_t count;
    uint64_t time_ms;    /* of the last one; wall clock */
    const char *context; /* a constant: "toplevel" or "multi" */
    struct slice object; /* the command, as it was spelled */
    struct slice user;
    struct slice client; /* as CLIENT LIST shows it, of the last one */
};

/* Puts in a copy of `from`, as the newest, whose count does not matter; of the
 * others max - 1 are kept. Without memory nothing is put in. */
void acl_log_add(struct acl_log *log, const struct acl_log_entry *from,
                 uint64_t max);

/* Shows the newest `count` entries, the newest first. `total` is called once
 * before, with their number. Under the lock: neither calls the log. */
struct acl_log_visitor {
    void (*total)(void *ctx, size_t entries);
    void (*entry)(void *ctx, const struct acl_log_entry *entry);
    void *ctx;
};
void acl_log_visit(struct acl_log *log, uint64_t count,
                   const struct acl_log_visitor *visitor);

void acl_log_reset(struct acl_log *log);
