/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which keys of a keyspace are written; test_snapshot.c has how.
 */
#include "keyspace/databases.h"
#include "snapshot_help.h"

TEST(databases_that_were_flushed_or_swapped_are_written_as_clients_see_them)
{
    struct keyspace *ks = mixed_keyspace();
    struct keyspace *plain = test_keyspace(1);
    struct loading loading = { .ks = test_keyspace(1) };
    struct bytes content;

    keyspace_swap_db(ks, 0, 3);
    keyspace_flush_db(ks, 15);
    for (size_t i = 0; i < MIXED; i++) {
        struct filter_spec spec = mixed_specs[i];

        spec.db = spec.db == 0 ? 3 : spec.db == 3 ? 0 : spec.db;
        if (spec.db != 15) {
            put_spec(plain, &spec);
        }
    }
    content = snapshot_of_keyspace(ks);
    assert_int_equal(SNAPSHOT_OK, load_bytes(&loading, content, false));
    assert_same_keyspaces(plain, loading.ks);
    mem_free(content.data);
    keyspace_free(ks);
    keyspace_free(plain);
    keyspace_free(loading.ks);
}
