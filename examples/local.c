/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers items from standard input, a line each, from a copy of a server's
 * filter that stays fresh:
 *
 *   local redis://127.0.0.1:7379 KEY
 */
#include <bloomery/local.h>
#include <stdio.h>
#include <string.h>

static void
say(void *context, enum bloomery_local_event event, const char *text)
{
    (void)context;
    (void)fprintf(stderr, "event %d: %s\n", (int)event, text);
}

static const char *
word(enum bloomery_local_answer answer)
{
    switch (answer) {
    case BLOOMERY_LOCAL_ABSENT:
        return "absent";
    case BLOOMERY_LOCAL_PRESENT:
        return "present";
    case BLOOMERY_LOCAL_UNKNOWN:
        break;
    }
    return "unknown: ask the server";
}

int
main(int argc, char **argv)
{
    struct bloomery_local_options options = { .struct_size = sizeof(options),
                                              .on_event = say };
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct bloomery_local *local;
    char line[4096];

    if (argc != 3) {
        (void)fprintf(stderr, "usage: local URL KEY\n");
        return 2;
    }
    options.url = argv[1];
    options.key = argv[2];
    if (bloomery_local_open(&options, &local, &status) != BLOOMERY_LOCAL_OK) {
        (void)fprintf(stderr, "%s: %s\n", status.server, status.error_text);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        size_t len = strcspn(line, "\n");

        (void)printf("%.*s: %s\n", (int)len, line,
                     word(bloomery_local_contains(local, line, len)));
        (void)fflush(stdout);
    }
    bloomery_local_free(local);
    return 0;
}
