/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Refused logins: what an entry keeps, which are merged, which are dropped.
 */
#include "access/acl_log.h"

#include "../test.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct shown {
    size_t total, entries;
    char text[512];
};

static void
on_total(void *ctx, size_t entries)
{
    ((struct shown *)ctx)->total = entries;
}

static void
on_entry(void *ctx, const struct acl_log_entry *entry)
{
    struct shown *shown = ctx;
    size_t len = strlen(shown->text);

    (void)snprintf(shown->text + len, sizeof(shown->text) - len,
                   "%llu %s %s %.*s %.*s %.*s @%llu;",
                   (unsigned long long)entry->count, entry->reason,
                   entry->context, (int)entry->object.len, entry->object.data,
                   (int)entry->user.len, entry->user.data,
                   (int)entry->client.len, entry->client.data,
                   (unsigned long long)entry->time_ms);
    shown->entries++;
}

static void
check(struct acl_log *log, uint64_t count, const char *expected)
{
    struct shown shown = { 0 };

    acl_log_visit(log, count,
                  &(struct acl_log_visitor){ on_total, on_entry, &shown });
    assert_string_equal(expected, shown.text);
    assert_int_equal(shown.total, shown.entries);
}

static void
add(struct acl_log *log, uint64_t time_ms, const char *user, const char *client)
{
    struct acl_log_entry entry = { .time_ms = time_ms,
                                   .reason = "auth",
                                   .context = "toplevel",
                                   .object = slice_lit("AUTH"),
                                   .user = slice_of(user),
                                   .client = slice_of(client) };

    acl_log_add(log, &entry, 3);
}

TEST(refusals_are_shown_the_newest_first)
{
    struct acl_log *log = acl_log_new();

    check(log, 10, "");
    add(log, 1, "a", "one");
    add(log, 2, "b", "two");
    check(log, 10,
          "1 auth toplevel AUTH b two @2;1 auth toplevel AUTH a one @1;");
    check(log, 1, "1 auth toplevel AUTH b two @2;");
    check(log, 0, "");
    acl_log_reset(log);
    check(log, 10, "");
    acl_log_free(log);
}

TEST(equal_refusals_within_a_minute_are_one_entry)
{
    struct acl_log *log = acl_log_new();

    add(log, 1000, "a", "one");
    add(log, 1001, "b", "x");
    add(log, 1000 + ACL_LOG_GROUP_MS, "a", "two");
    check(log, 10,
          "2 auth toplevel AUTH a two @61000;1 auth toplevel AUTH b x @1001;");
    add(log, 61001 + ACL_LOG_GROUP_MS, "a", "three");
    check(log, 10,
          "1 auth toplevel AUTH a three @121001;2 auth toplevel AUTH a two "
          "@61000;"
          "1 auth toplevel AUTH b x @1001;");
    acl_log_free(log);
}

TEST(no_more_refusals_are_kept_than_allowed)
{
    struct acl_log *log = acl_log_new();
    struct acl_log_entry entry = { .reason = "key", .context = "multi" };
    char name[ACL_LOG_NAME_MAX + 100];

    add(log, 1, "a", "");
    add(log, 2, "b", "");
    add(log, 3, "c", "");
    add(log, 4, "d", "");
    check(log, 10,
          "1 auth toplevel AUTH d  @4;1 auth toplevel AUTH c  @3;1 auth "
          "toplevel AUTH b  "
          "@2;");
    memset(name, 'x', sizeof(name));
    entry.user = (struct slice){ name, sizeof(name) };
    acl_log_reset(log);
    acl_log_add(log, &entry, 1);
    {
        char expected[ACL_LOG_NAME_MAX + 32];

        (void)snprintf(expected, sizeof(expected), "1 key multi  %.*s  @0;",
                       ACL_LOG_NAME_MAX, name);
        check(log, 10, expected);
    }
    acl_log_add(log, &entry, 0);
    check(log, 10, "");
    acl_log_free(log);
}

TEST(a_refusal_without_memory_is_not_kept)
{
    struct acl_log *log = acl_log_new();

    add(log, 1, "a", "");
    mem_fail_at(1);
    add(log, 2, "b", "");
    assert_true(mem_fail_clear());
    check(log, 10, "1 auth toplevel AUTH a  @1;");
    acl_log_free(log);
}
