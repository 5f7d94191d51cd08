/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One copy, stepped by the test as the library's thread does.
 */
#include "local/local_member.h"

#include "base/mem.h"
#include "local/local_readers.h"

#include "../test.h"
#include "fake_server.h"

#include <stdio.h>
#include <string.h>

struct told {
    enum bloomery_local_event events[16];
    char text[256];
    unsigned count;
};

static void
on_event(void *context, enum bloomery_local_event event, const char *text)
{
    struct told *told = context;

    assert_true(told->count < 16);
    told->events[told->count++] = event;
    (void)snprintf(told->text, sizeof(told->text), "%s", text);
}

static struct bloomery_local *
new_member(struct told *told)
{
    const struct bloomery_local_options options = {
        .struct_size = sizeof(options),
        .key = "k",
        .key_bytes = 1,
        .max_stale_ms = 1000,
        .max_bytes = UINT64_MAX,
        .flags = BLOOMERY_LOCAL_MISSING_IS_ABSENT,
        .on_event = on_event,
        .context = told,
    };
    struct bloomery_local *member = local_member_new(&options, "fake");

    assert_true(local_readers_init(false));
    assert_non_null(member);
    return member;
}

static struct bloomery_local_status
status_of(struct bloomery_local *member)
{
    struct bloomery_local_status status = { .struct_size = sizeof(status) };

    local_member_status(member, &status);
    return status;
}

static void
step(struct bloomery_local *member)
{
    local_link_step(&member->link, local_link_now_ms() + 20);
    local_member_look(member);
}

TEST(a_copy_tells_what_became_of_it)
{
    struct fake_server fake;
    struct told told = { .count = 0 };
    struct bloomery_local *member = new_member(&told);
    const struct local_address address = { .host = "127.0.0.1",
                                           .port = fake.port };
    uint64_t end_ms = fake_now_ms() + 60000;

    fake_begin(&fake);
    local_member_begin(member, &address, -1);
    while (!member->answered) {
        assert_true(fake_now_ms() < end_ms);
        step(member);
    }
    assert_int_equal(local_member_wait(member, 0), BLOOMERY_LOCAL_OK);
    assert_int_equal(local_place_contains(&member->place, "x", 1),
                     BLOOMERY_LOCAL_ABSENT);
    assert_int_equal(status_of(member).state, BLOOMERY_LOCAL_MISSING);
    assert_int_equal(status_of(member).connections, 1);
    assert_true(status_of(member).age_ms < 60000);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.events[0], BLOOMERY_LOCAL_GONE);
    local_member_close(member);
    assert_int_equal(status_of(member).error, BLOOMERY_LOCAL_CLOSED);
    assert_int_equal(local_place_contains(&member->place, "x", 1),
                     BLOOMERY_LOCAL_UNKNOWN);
    (void)atomic_fetch_add(&member->references, 1);
    local_member_end(member);
    local_member_release(member);
    fake_end(&fake);
}

TEST(dials_that_fail_are_told_once)
{
    struct told told = { .count = 0 };
    struct bloomery_local *member = new_member(&told);
    const struct local_address address = { .host = "127.0.0.1", .port = "1" };

    local_member_begin(member, &address, -1);
    while (member->link.cuts < 3) {
        step(member);
    }
    assert_int_equal(told.count, 1);
    assert_int_equal(told.events[0], BLOOMERY_LOCAL_CUT);
    assert_string_equal(told.text, "cannot connect: Connection refused");
    assert_int_equal(status_of(member).error, BLOOMERY_LOCAL_CONNECT);
    assert_int_equal(local_member_wait(member, 0), BLOOMERY_LOCAL_LATE);
    local_member_end(member);
}

TEST(a_copy_for_which_there_is_no_memory_leaves_nothing)
{
    const struct bloomery_local_options options = {
        .struct_size = sizeof(options), .key = "k", .key_bytes = 1
    };
    struct bloomery_local *member = NULL;
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        mem_fail_at(nth);
        member = local_member_new(&options, "fake");
        fired = mem_fail_clear();
        assert_true(fired == (member == NULL));
    }
    local_member_abandon(member);
}
