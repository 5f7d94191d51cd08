/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A keyspace for which there is not all the memory is none, and leaves nothing
 * behind.
 */
#include "keyspace/keyspace.h"

#include "../test.h"
#include "base/mem.h"
#include "keyspace/make.h"

TEST(a_keyspace_survives_every_allocation_failure)
{
    const struct keyspace_options options = { .threads = 2, .databases = 4 };
    uint64_t before = mem_used();
    bool fired = true;
    unsigned nth = 0;

    while (fired) {
        struct keyspace *ks;

        mem_fail_at(++nth);
        ks = keyspace_try_new(&options);
        fired = mem_fail_clear();
        assert_true((ks == NULL) == fired);
        keyspace_free(ks);
        assert_int_equal(before, mem_used());
    }
    assert_in_range(nth, 8, 20);
}
