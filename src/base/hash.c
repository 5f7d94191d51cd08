/* SPDX-License-Identifier: BSD-3-Clause
 *
 * xxHash is inlined here: a call across the library boundary costs more than
 * hashing a short name.
 */
#define XXH_INLINE_ALL
#include "base/hash.h"

#include "base/random.h"

#include <xxhash.h>

static uint64_t process_seed; /* written once before threads start */

void
hash_seed_process(void)
{
    random_bytes(&process_seed, sizeof(process_seed));
}

uint64_t
hash_name(struct slice name)
{
    return XXH3_64bits_withSeed(name.data, name.len, process_seed);
}
