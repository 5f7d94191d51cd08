/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role as commands, the server layer and connections see it change.
 */
#include "engine/role.h"

#include "engine/client.h"
#include "net/registry.h"

#include "rig.h"

static unsigned changes;

static void
note_change(void *ctx)
{
    (void)ctx;
    changes++;
}

TEST(a_place_to_follow_has_a_host_and_a_port)
{
    assert_true(role_place_is_valid(slice_lit("h"), 1));
    assert_true(role_place_is_valid(slice_lit("::1"), 65535));
    assert_false(role_place_is_valid(slice_lit("h"), 0));
    assert_false(role_place_is_valid(slice_lit("h"), 65536));
    assert_false(role_place_is_valid(slice_lit(""), 7000));
    assert_false(role_place_is_valid(slice_lit("/a socket"), 7000));
}

TEST(a_server_leads_until_it_is_told_to_follow)
{
    struct service service;

    memset(&service, 0, sizeof(service));
    service.replication.role_changed = note_change;
    changes = 0;
    role_lead(&service);
    assert_int_equal(0, changes);
    assert_int_equal(0, service.role.epoch);

    atomic_store(&service.link_up, true);
    role_follow(&service, slice_lit("Primary.example"), 7000);
    assert_true(service.role.replica);
    assert_string_equal("Primary.example", service.role.host);
    assert_int_equal(7000, service.role.port);
    assert_int_equal(1, service.role.epoch);
    assert_int_equal(1, changes);
    assert_false(service.link_up);

    role_follow(&service, slice_lit("primary.EXAMPLE"), 7000);
    assert_int_equal(1, service.role.epoch);
    atomic_store(&service.grace_until_ms, GRACE_BEHIND);
    role_follow(&service, slice_lit("primary.exampl"), 7000);
    assert_int_equal(2, service.role.epoch);
    assert_string_equal("primary.exampl", service.role.host);
    assert_int_equal(0, service.grace_until_ms);
    role_follow(&service, slice_lit("primary.exampl"), 7001);
    assert_int_equal(3, service.role.epoch);
    assert_int_equal(3, changes);

    atomic_store(&service.link_up, true);
    atomic_store(&service.grace_until_ms, 5);
    role_lead(&service);
    assert_false(service.role.replica);
    assert_string_equal("", service.role.host);
    assert_int_equal(0, service.role.port);
    assert_int_equal(4, service.role.epoch);
    assert_int_equal(4, changes);
    assert_false(service.link_up);
    assert_int_equal(0, service.grace_until_ms);
}

TEST(the_role_at_the_start_tells_nobody)
{
    struct service service;

    memset(&service, 0, sizeof(service));
    service.replication.role_changed = note_change;
    changes = 0;
    role_set(&service, slice_lit("h"), 1);
    assert_true(service.role.replica);
    assert_int_equal(1, service.role.epoch);
    assert_int_equal(0, changes);
    role_set(&service, slice_lit(""), 0);
    assert_false(service.role.replica);
}

TEST(hosts_are_printable_and_neither_empty_nor_long)
{
    char text[ROLE_HOST_MAX + 1];

    memset(text, 'x', sizeof(text));
    assert_true(role_host_is_valid(slice_lit("10.0.0.1")));
    assert_true(role_host_is_valid(slice_lit("::1")));
    assert_true(role_host_is_valid(slice_lit("fe80::1%eth0")));
    assert_false(role_host_is_valid(slice_lit("")));
    assert_false(role_host_is_valid(slice_lit("a b")));
    assert_false(role_host_is_valid(slice_lit("a\nb")));
    assert_false(role_host_is_valid(slice_lit("\"a")));
    assert_false(role_host_is_valid(slice_lit("\xc3\xa4")));
    assert_true(role_host_is_valid((struct slice){ text, ROLE_HOST_MAX - 1 }));
    assert_false(role_host_is_valid((struct slice){ text, ROLE_HOST_MAX }));
}

TEST(positions_written_before_following_mean_nothing_to_replicas)
{
    enum { CLIENTS = 3000 }; /* more than are visited at a time */
    struct client *clients = mem_zalloc(CLIENTS * sizeof(*clients));
    struct service service;

    memset(&service, 0, sizeof(service));
    service.registry = registry_new();
    for (unsigned i = 0; i < CLIENTS; i++) {
        atomic_store(&clients[i].session.written, i);
        registry_add(service.registry, &clients[i].conn.registered,
                     &clients[i].conn);
    }
    role_lead(&service);
    assert_int_equal(1, clients[1].session.written);
    role_follow(&service, slice_lit("h"), 1);
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_true(clients[i].session.written == (i > 0 ? UINT64_MAX : 0));
    }
    atomic_store(&clients[1].session.written, 7);
    role_follow(&service, slice_lit("other"), 1); /* it was a replica before */
    role_lead(&service);
    assert_int_equal(7, clients[1].session.written);
    for (unsigned i = 0; i < CLIENTS; i++) {
        registry_remove(service.registry, &clients[i].conn.registered);
    }
    registry_free(service.registry);
    mem_free(clients);
}

static void
expect_allowed(const char *list, const char *host, bool wanted)
{
    struct conf_error error;
    struct conf conf;

    conf_init(&conf);
    assert_true(conf_set(&conf, &conf_table[CONF_OPTION_replicaof_allowed],
                         slice_of(list), &error));
    if (role_host_is_allowed(&conf, slice_of(host)) != wanted) {
        fail_msg("'%s' for '%s'", host, list);
    }
    conf_fini(&conf);
}

TEST(where_it_may_point_is_a_list)
{
    static const char *const allowed[][2] = {
        { "*", "anybody.example" },
        { "10.0.0.5", "10.0.0.5" },
        { "a.example B.example", "b.EXAMPLE" },
        { "10.1.0.0/16", "10.1.255.9" },
        { "10.1.2.3/31", "10.1.2.2" },
        { "0.0.0.0/0", "8.8.8.8" },
        { "fd00::/8", "fdff::1" },
        { "fd00::/9", "fd7f::1" },
        { "::/0", "1.2.3.4" },
        { "::1", "0:0:0:0:0:0:0:1" },
        { "1.2.3.4", "::ffff:1.2.3.4" },
        { "x 10.0.0.0/8 y", "10.9.9.9" },
    };
    static const char *const refused[][2] = {
        { "", "10.0.0.5" },
        { "10.0.0.5", "10.0.0.50" },
        { "10.1.0.0/16", "10.2.0.1" },
        { "10.1.2.3/31", "10.1.2.4" },
        { "fd00::/9", "fd80::1" },
        { "a.example", "b.a.example" },
        { "10.0.0.0/8", "10.example" },
        { "127.0.0.1", "127.1" },
        { "127.0.0.1", "2130706433" },
        { "10.0.0.0/99", "10.0.0.1" },
        { "10.0.0.0/", "10.0.0.1" },
        { "0.0.0.0/0", "::1" },
        { "10.0.0.0/-1", "10.0.0.1" },
        { "fe80::1", "fe80::1%lo" },
    };

    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
        expect_allowed(allowed[i][0], allowed[i][1], true);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        expect_allowed(refused[i][0], refused[i][1], false);
    }
}
