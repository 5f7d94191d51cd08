/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A copy of a filter in a program, for tests: reads items, a line each, and
 * prints what the copy says of each: absent, present or unknown. A line with a
 * number and a blank asks for so many items, from 0 on, and prints how many are
 * unknown, absent and present. An empty line prints the state, the connections,
 * the loads, the age and the last error.
 *
 *   local_probe URL KEY MAX_STALE_MS FLAGS [MAX_BYTES [CA]]
 */
#include <bloomery/local.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096, MANY_MAX = 1000000, WORD_BYTES = 16 };

static void
answer_status(struct bloomery_local *local)
{
    static const char *const states[] = { "none", "fresh", "stale", "missing" };
    struct bloomery_local_status status = { .struct_size = sizeof(status) };

    bloomery_local_status(local, &status);
    (void)printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
                 states[status.state], status.connections, status.loads,
                 status.age_ms, status.error_text);
}

/* Asks for `n-0`, `n-1` ... */
static void
answer_many(struct bloomery_local *local, const char *line)
{
    static struct bloomery_local_item items[MANY_MAX];
    static char words[MANY_MAX][WORD_BYTES];
    static int8_t answers[MANY_MAX];
    size_t count = strtoul(line, NULL, 10), sums[3] = { 0, 0, 0 };

    if (count > MANY_MAX) {
        exit(2);
    }
    for (size_t i = 0; i < count; i++) {
        items[i].data = words[i];
        items[i].bytes = (size_t)snprintf(words[i], WORD_BYTES, "n-%zu", i);
    }
    (void)bloomery_local_contains_many(local, items, count, answers);
    for (size_t i = 0; i < count; i++) {
        sums[answers[i] + 1]++;
    }
    (void)printf("%zu %zu %zu\n", sums[0], sums[1], sums[2]);
}

static void
answer(struct bloomery_local *local, const char *line, size_t len)
{
    static const char *const words[] = { "unknown", "absent", "present" };

    if (len == 0) {
        answer_status(local);
    } else if (line[len - 1] == ' ') {
        answer_many(local, line);
    } else {
        (void)printf("%s\n",
                     words[bloomery_local_contains(local, line, len) + 1]);
    }
}

int
main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    struct bloomery_local_options options = { .struct_size = sizeof(options),
                                              .refresh_ms = 1000 };
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct bloomery_local *local;
    enum bloomery_local_code code;

    if (argc < 5) {
        return 2;
    }
    options.url = argv[1];
    options.key = argv[2];
    options.max_stale_ms = (uint32_t)strtoul(argv[3], NULL, 10);
    options.flags = (uint32_t)strtoul(argv[4], NULL, 10);
    options.max_bytes = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
    options.ca_file = argc > 6 ? argv[6] : NULL;
    code = bloomery_local_open(&options, &local, &status);
    if (code != BLOOMERY_LOCAL_OK) {
        (void)printf("%s: %s\n", bloomery_local_text(code), status.error_text);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        answer(local, line, strcspn(line, "\n"));
        (void)fflush(stdout);
    }
    bloomery_local_free(local);
    return 0;
}
