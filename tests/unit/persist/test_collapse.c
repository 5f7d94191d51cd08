/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Huge pages that a save broke up are put together again.
 */
#include "persist_rig.h"

#include "base/huge.h"
#include "persist/collapse.h"

#include <sys/mman.h>

static bool
kernel_can(void)
{
    char *at = huge_map(HUGE_PAGE_BYTES);
    bool can;

    assert_non_null(at);
    memset(at, 1, HUGE_PAGE_BYTES);
    can = madvise(at, HUGE_PAGE_BYTES, 25 /* MADV_COLLAPSE */) == 0;
    huge_unmap(at, HUGE_PAGE_BYTES);
    return can;
}

static void
add_large(struct prig *rig, const char *text, uint32_t db)
{
    struct bloom_params params = { .capacity = 4000000,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };
    struct slice name = slice_of(text);
    struct key key = { name, hash_name(name), db };
    struct bloom *bloom;
    struct entry *entry;

    assert_int_equal(bloom_new(&params, &rig->env, &bloom), BLOOM_OK);
    assert_int_equal(keyspace_insert(rig->ks, &key, bloom, 1, &entry), OK);
    for (unsigned i = 0; i < 20000; i++) {
        bool added;

        (void)bloom_add(&entry->bloom, &rig->env,
                        bloom_hash(&entry->bloom, &i, sizeof(i)), &added);
    }
}

TEST(collapse_walks_the_large_layers_of_all_databases)
{
    struct prig *rig = prig_start("no", "no");
    bool can = kernel_can();

    add_large(rig, "a", 0);
    add_large(rig, "b", 7);
    (void)prig_write(rig);
    collapse_want(rig->persist);
    PRIG_WAIT(rig, !rig->persist->collapse.wanted &&
                       !task_is_running(rig->persist->task));
    if (!can) {
        skip(); /* the machine has no huge pages to give */
    }
    /* Two filters of 4,000,000 items at 0.01: more than 2 x 4.5 MB. */
    assert_true(atomic_load(&rig->persist->collapse.pages) >= 4);
    prig_free(rig);
}

TEST(collapse_follows_a_save)
{
    struct prig *rig = prig_start("no", "no");
    prig_save(rig);
    PRIG_WAIT(rig, !rig->persist->collapse.wanted);
    prig_free(rig);
}
