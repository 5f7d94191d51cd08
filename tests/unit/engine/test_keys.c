/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lookups count as hits, misses and uses.
 */
#include "engine/keys.h"

#include "base/metrics.h"
#include "engine/execute.h"
#include "keyspace/ahead.h"
#include "rig.h"

/* To find a key is to use it, to peek is not, and a client may want that its
 * uses do not count. All of it is a hit, or a miss. */
TEST(lookups_count_as_hits_and_misses_and_some_as_uses)
{
    const struct slice argv[] = { slice_lit("x"), slice_lit("k"),
                                  slice_lit("missing") };
    struct rig *rig = rig_new();
    struct keyspace *ks = rig->service.keyspace;
    int64_t hits = metric_sum(METRIC_KEYSPACE_HITS);
    int64_t misses = metric_sum(METRIC_KEYSPACE_MISSES);
    struct request req;
    struct key key;
    struct key missing;
    struct entry *entry;

    run_text(rig, "BF.ADD k a", true);
    req = madd_request(rig, argv, 3);
    key = request_key(&req, 1);
    missing = request_key(&req, 2);
    entry = keyspace_find(ks, &key, 0);
    access_set_idle(keyspace_access(ks), entry, 100);
    assert_ptr_equal(entry, keys_peek(&req, &key));
    assert_int_equal(100, access_idle_s(keyspace_access(ks), entry));
    rig->session.no_touch = true;
    assert_ptr_equal(entry, keys_find(&req, &key));
    assert_ptr_equal(entry, keys_open(&req, &key));
    assert_int_equal(100, access_idle_s(keyspace_access(ks), entry));
    rig->session.no_touch = false;
    assert_ptr_equal(entry, keys_find(&req, &key));
    assert_int_equal(0, access_idle_s(keyspace_access(ks), entry));
    access_set_idle(keyspace_access(ks), entry, 100);
    assert_ptr_equal(entry, keys_open(&req, &key));
    assert_int_equal(0, access_idle_s(keyspace_access(ks), entry));
    assert_null(keys_find(&req, &missing));
    assert_null(keys_peek(&req, &missing));
    assert_null(keys_open(&req, &missing));
    assert_int_equal(hits + 3, metric_sum(METRIC_KEYSPACE_HITS));
    assert_int_equal(misses + 2, metric_sum(METRIC_KEYSPACE_MISSES));
    rig_free(rig);
}

static char visited[2048];

static void
note_key(struct request *req, const struct key *key, void *ctx)
{
    char *text = ctx;
    size_t len = strlen(text);

    (void)snprintf(text + len, sizeof(visited) - len, "%.*s%s ",
                   (int)key->name.len, key->name.data,
                   keys_peek(req, key) != NULL ? "+" : "");
}

/* More than one group of names, and a rest that is not looked up ahead. */
TEST(each_key_of_many_is_visited_in_order)
{
    enum { NAMES = 2 * KEYSPACE_AHEAD_MAX + 3 };
    static char names[NAMES][8];
    struct slice argv[1 + NAMES] = { slice_lit("EXISTS") };
    struct rig *rig = rig_new();
    char expected[sizeof(visited)] = "";
    struct request req;

    run_text(rig, "BF.ADD n0 a; BF.ADD n64 a; BF.ADD n129 a", true);
    for (int i = 0; i < NAMES; i++) {
        size_t len = strlen(expected);

        (void)snprintf(names[i], sizeof(names[i]), "n%d", i);
        argv[1 + i] = slice_of(names[i]);
        (void)snprintf(expected + len, sizeof(expected) - len, "n%d%s ", i,
                       i == 0 || i == 64 || i == 129 ? "+" : "");
    }
    req = madd_request(rig, argv, 1 + NAMES);
    visited[0] = '\0';
    keys_each(&req, 1, note_key, visited);
    assert_string_equal(expected, visited);
    rig_free(rig);
}
