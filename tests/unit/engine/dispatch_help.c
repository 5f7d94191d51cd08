/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch_help.h"

unsigned
below(uint64_t *random, unsigned n)
{
    return (unsigned)test_random_below(random, n);
}

char names[KEYS][NAME_MAX_BYTES];

void
choose_names(void)
{
    unsigned stripe[KEYS] = { 0 };
    int found = 0;

    for (unsigned i = 0; found < KEYS; i++) {
        char name[NAME_MAX_BYTES];
        int len = snprintf(name, sizeof(name), "k%u", i);
        unsigned s =
            keyspace_stripe_of(hash_name((struct slice){ name, (size_t)len }));
        bool fits = found == 0 || (found < 3 && s == stripe[0]) ||
                    (found == 3 && s != stripe[0]) ||
                    (found == 4 && s == stripe[3]) ||
                    (found == 5 && s != stripe[0] && s != stripe[3]);

        if (fits) {
            memcpy(names[found], name, sizeof(name));
            stripe[found++] = s;
        }
    }
}

void
end_time_of(struct rig *rig, const char *name, uint32_t db)
{
    struct key key = key_named(slice_of(name), db);
    struct entry *entry = keyspace_find(rig->service.keyspace, &key, 0);

    if (entry != NULL) {
        assert_int_equal(
            OK, keyspace_set_expiry(rig->service.keyspace, &key, entry, 1));
    }
}
