/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Places, ids and pages of the list of connections, and threads that come and
 * go while another reads.
 */
#include "net/registry.h"

#include "../test.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/conn.h"

enum { CONNS = 50, SEEN_MAX = 64 };

struct seen {
    uint64_t id[SEEN_MAX];
    unsigned count;
};

static void
see(void *ctx, struct conn *conn)
{
    struct seen *seen = ctx;

    assert_true(seen->count < SEEN_MAX);
    seen->id[seen->count++] = conn_id(conn);
}

TEST(places_are_given_up_to_the_limit_and_given_back)
{
    struct registry *registry = registry_new();

    assert_false(registry_reserve(registry, PLACE_COMMON, 0));
    for (int i = 0; i < 3; i++) {
        assert_true(registry_reserve(registry, PLACE_COMMON, 3));
    }
    assert_false(registry_reserve(registry, PLACE_COMMON, 3));
    /* Refusing takes no place, and the other group has its own. */
    assert_false(registry_reserve(registry, PLACE_COMMON, 3));
    assert_true(registry_reserve(registry, PLACE_RESERVED, 1));
    assert_false(registry_reserve(registry, PLACE_RESERVED, 1));
    registry_release(registry, PLACE_RESERVED);
    assert_true(registry_reserve(registry, PLACE_COMMON, 4));
    registry_release(registry, PLACE_COMMON);
    registry_release(registry, PLACE_COMMON);
    assert_true(registry_reserve(registry, PLACE_COMMON, 3));
    /* The limit was lowered. */
    assert_false(registry_reserve(registry, PLACE_COMMON, 2));
    for (int i = 0; i < 3; i++) {
        registry_release(registry, PLACE_COMMON);
    }
    registry_free(registry);
    registry_free(NULL);
}

TEST(ids_rise_from_one_and_are_never_used_again)
{
    struct registry *registry = registry_new();
    struct conn *conn = mem_zalloc(sizeof(*conn));

    for (uint64_t i = 1; i <= 5; i++) {
        registry_add(registry, &conn->registered, conn);
        assert_int_equal(i, conn_id(conn));
        registry_remove(registry, &conn->registered);
    }
    mem_free(conn);
    registry_free(registry);
}

/* Pages of every size over lists with holes in every place. */
TEST(pages_visit_all_in_order_once)
{
    struct registry *registry = registry_new();
    struct conn *conn = mem_zalloc(CONNS * sizeof(*conn));
    unsigned left = CONNS;

    for (int i = 0; i < CONNS; i++) {
        registry_add(registry, &conn[i].registered, &conn[i]);
    }
    /* Removes the first, the last, and then every third. */
    for (int round = 0; round < 3; round++) {
        for (unsigned page = 1; page <= CONNS + 1; page++) {
            struct seen seen = { .count = 0 };
            uint64_t after = 0;
            unsigned pages = 0;

            do {
                after = registry_visit(registry, after, page, see, &seen);
                pages++;
            } while (after != 0);
            assert_int_equal(left, seen.count);
            assert_int_equal((left + page - 1) / page, pages);
            for (unsigned i = 1; i < seen.count; i++) {
                assert_true(seen.id[i] > seen.id[i - 1]);
            }
        }
        if (round == 0) {
            registry_remove(registry, &conn[0].registered);
            registry_remove(registry, &conn[CONNS - 1].registered);
            left -= 2;
        } else if (round == 1) {
            for (int i = 1; i < CONNS - 1; i += 3) {
                registry_remove(registry, &conn[i].registered);
                left--;
            }
        }
    }
    for (int i = 1; i < CONNS - 1; i++) {
        if (i % 3 != 1) {
            registry_remove(registry, &conn[i].registered);
        }
    }
    mem_free(conn);
    registry_free(registry);
}

TEST(an_empty_list_has_one_empty_page)
{
    struct registry *registry = registry_new();
    struct seen seen = { .count = 0 };

    assert_int_equal(0, registry_visit(registry, 0, 10, see, &seen));
    assert_int_equal(0, seen.count);
    registry_free(registry);
}

TEST(one_connection_is_found_by_its_id)
{
    struct registry *registry = registry_new();
    struct conn *conn = mem_zalloc(3 * sizeof(*conn));
    struct seen seen = { .count = 0 };

    for (int i = 0; i < 3; i++) {
        registry_add(registry, &conn[i].registered, &conn[i]);
    }
    assert_true(registry_visit_one(registry, conn_id(&conn[2]), see, &seen));
    assert_int_equal(1, seen.count);
    registry_remove(registry, &conn[1].registered);
    assert_false(registry_visit_one(registry, conn_id(&conn[1]), see, &seen));
    assert_false(registry_visit_one(registry, 0, see, &seen));
    assert_false(
        registry_visit_one(registry, conn_id(&conn[2]) + 1, see, &seen));
    assert_int_equal(1, seen.count);
    registry_remove(registry, &conn[0].registered);
    registry_remove(registry, &conn[2].registered);
    mem_free(conn);
    registry_free(registry);
}

enum { COMERS = 3, ROUNDS = 3000 };

static void
come_and_go(void *arg)
{
    struct registry *registry = arg;
    struct conn *conn = mem_zalloc(2 * sizeof(*conn));

    for (int i = 0; i < ROUNDS; i++) {
        registry_add(registry, &conn[0].registered, &conn[0]);
        registry_add(registry, &conn[1].registered, &conn[1]);
        registry_remove(registry, &conn[0].registered);
        registry_lock(registry);
        conn[1].fd = i; /* what visitors read changes under the lock */
        registry_unlock(registry);
        registry_remove(registry, &conn[1].registered);
    }
    mem_free(conn);
    metric_thread_exit();
}

static void
see_descriptor(void *ctx, struct conn *conn)
{
    struct seen *seen = ctx;

    assert_true(conn->fd >= 0 && conn->fd < ROUNDS);
    assert_true(seen->count == 0 || conn_id(conn) > seen->id[0]);
    seen->id[0] = conn_id(conn);
    seen->count = 1;
}

TEST(threads_come_and_go_while_another_reads)
{
    struct registry *registry = registry_new();
    uv_thread_t thread[COMERS];

    for (int i = 0; i < COMERS; i++) {
        assert_int_equal(0,
                         uv_thread_create(&thread[i], come_and_go, registry));
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct seen seen = { .count = 0 };
        uint64_t after = 0;

        do {
            after = registry_visit(registry, after, 2, see_descriptor, &seen);
        } while (after != 0);
    }
    for (int i = 0; i < COMERS; i++) {
        assert_int_equal(0, uv_thread_join(&thread[i]));
    }
    registry_free(registry);
}
