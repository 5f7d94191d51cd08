/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lookups count as hits, misses and uses.
 */
#include "engine/keys.h"

#include "base/metrics.h"
#include "engine/execute.h"
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
