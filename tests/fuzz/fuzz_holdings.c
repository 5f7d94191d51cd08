/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text as the state of slots, of the file in dir or of another daemon; it
 * gets a checksum that holds. What is read is written as a text that reads as
 * the same state.
 */
#include "base/checksum.h"
#include "base/err.h"
#include "base/mem.h"
#include "cluster/holdings.h"
#include "target.h"

#include <stdio.h>
#include <string.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct holdings holdings, again;
    char *text = mem_alloc(size + CHECKSUM_LINE_BYTES);
    struct buf first = { 0 }, second = { 0 };
    char reason[HOLDINGS_REASON_MAX] = "";
    size_t len;

    if (size > 0) {
        memcpy(text, data, size);
    }
    len = checksum_append(text, size);
    CHECK(!holdings_parse((struct slice){ text, size }, &holdings, reason) ||
          checksum_holds((struct slice){ text, size }));
    if (holdings_parse((struct slice){ text, len }, &holdings, reason)) {
        holdings_write_file(&holdings, &first);
        CHECK(holdings_parse(buf_slice(&first), &again, reason));
        holdings_write_file(&again, &second);
        CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
        CHECK(memcmp(holdings.held, again.held, sizeof(again.held)) == 0);
        (void)holdings_learn(&again, &holdings);
    } else {
        CHECK(reason[0] != '\0');
    }
    buf_free(&first);
    buf_free(&second);
    mem_free(text);
    return 0;
}

/* Writes the text of a random state without its last line, and spoils it. */
size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    static struct holdings holdings;
    uint64_t random = seed;
    struct buf text = { 0 };
    size_t len;

    holdings = (struct holdings){ .from = fuzz_next(&random) % 1000 };
    (void)snprintf(holdings.node, sizeof(holdings.node), "%040d", 7);
    if (fuzz_next(&random) % 2 == 0) {
        (void)snprintf(holdings.follows, sizeof(holdings.follows), "%040d", 8);
        (void)snprintf(holdings.history, sizeof(holdings.history), "%040d", 9);
    }
    if (fuzz_next(&random) % 2 == 0) {
        (void)snprintf(holdings.data[0], sizeof(holdings.data[0]), "%040d", 5);
    }
    for (uint64_t n = fuzz_next(&random) % 20; n > 0; n--) {
        size_t slot = fuzz_next(&random) % CLUSTER_SLOTS;

        holdings.held[slot] = holdings.known[slot] = 1 + fuzz_next(&random) % 9;
    }
    if (fuzz_next(&random) % 2 == 0) {
        holdings_write_file(&holdings, &text);
    } else {
        holdings_write(&holdings, &text);
    }
    len = text.len - CHECKSUM_LINE_BYTES;
    len = len < max ? len : max;
    memcpy(to, text.data, len);
    buf_free(&text);
    if (fuzz_next(&random) % 2 == 0) {
        to[fuzz_next(&random) % len] ^= (uint8_t)(1U << fuzz_next(&random) % 8);
    }
    return len;
}
