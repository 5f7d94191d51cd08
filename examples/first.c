/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first steps with libbloomery: make a filter, add items, ask for them.
 *
 *   cc first.c $(pkg-config --cflags --libs libbloomery) -o first && ./first
 */
#include <bloomery/bloom.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void
ask(const struct bloom *filter, const char *item)
{
    struct bloom_hash hash = bloom_hash(filter, item, strlen(item));

    printf("%s: %s\n", item, bloom_contains(filter, hash) ? "yes" : "no");
}

int
main(void)
{
    const char *fruit[] = { "apple", "banana", "apple" };
    /* It has room for 1000 items, and 1 % of absent items are answered "yes".
     * When it is full it grows by a layer of 2000 items at 0.5 %, and so on. */
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 1000,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };
    struct bloom_info info = { .struct_size = sizeof(info) };
    struct bloom *filter;
    enum bloom_status status;

    bloom_select_cpu(false);
    status = bloom_new(&params, NULL, &filter);
    for (size_t i = 0; i < 3 && status == BLOOM_OK; i++) {
        struct bloom_hash hash = bloom_hash(filter, fruit[i], strlen(fruit[i]));
        bool added;

        status = bloom_add(filter, NULL, hash, &added);
        if (status == BLOOM_OK) {
            printf("%s is %s\n", fruit[i], added ? "new" : "there already");
        }
    }
    if (status != BLOOM_OK) {
        fprintf(stderr, "first: %s\n", bloom_status_text(status));
        return 1;
    }
    ask(filter, "apple");
    ask(filter, "cherry");
    bloom_get_info(filter, &info);
    printf("%" PRIu64 " items in %" PRIu64 " bytes\n", info.items,
           info.size_bytes);
    bloom_free(filter, NULL);
    return 0;
}
