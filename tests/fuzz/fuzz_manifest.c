/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as a manifest, as they are and with a right checksum behind them:
 * what is accepted is written back to the same bytes.
 */
#include "base/err.h"
#include "base/mem.h"
#include "journal/manifest.h"
#include "target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void
play(struct slice text)
{
    static struct manifest manifest;
    static char again[MANIFEST_BYTES_MAX];
    char reason[256] = "";

    if (manifest_parse(text, &manifest, reason, sizeof(reason)) ==
        MANIFEST_OK) {
        CHECK(manifest_format(&manifest, again) == text.len);
        CHECK(memcmp(again, text.data, text.len) == 0);
    } else {
        CHECK(reason[0] != '\0');
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = mem_alloc(size + 32);

    play((struct slice){ (const char *)data, size });
    if (size > 0) {
        memcpy(copy, data, size);
    }
    size += (size_t)snprintf(copy + size, 32, "checksum %016" PRIx64 "\n",
                             (uint64_t)XXH3_64bits(copy, size));
    play((struct slice){ copy, size });
    mem_free(copy);
    return 0;
}

/* ---- inputs for replay.c ------------------------------------------------- */

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    uint64_t number = fuzz_next(&random) % 100;
    char text[1024];
    int len = snprintf(text, sizeof(text),
                       "bloomery-journal %d\ngeneration %" PRIu64
                       "\nbase %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                       fuzz_next(&random) % 16 == 0 ? 2 : 1,
                       fuzz_next(&random) % 1000, number,
                       fuzz_next(&random) >> (fuzz_next(&random) % 60),
                       fuzz_next(&random) % 1000);

    for (uint64_t left = fuzz_next(&random) % 8; left > 0; left--) {
        number += fuzz_next(&random) % 16 == 0 ? 0 : 1 + fuzz_next(&random) % 3;
        len += fuzz_next(&random) % (left + 1) == 0
                   ? snprintf(text + len, sizeof(text) - (size_t)len,
                              "increment %" PRIu64 " -\n", number)
                   : snprintf(text + len, sizeof(text) - (size_t)len,
                              "increment %" PRIu64 " %" PRIu64 "\n", number,
                              128 + fuzz_next(&random) % 1000);
    }
    if (fuzz_next(&random) % 4 == 0) {
        text[fuzz_next(&random) % (uint64_t)len] =
            "0 -\n9"[fuzz_next(&random) % 5];
    }
    CHECK((size_t)len <= max);
    memcpy(to, text, (size_t)len);
    return (size_t)len;
}
