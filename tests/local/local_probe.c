/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A copy of a filter in a program, for tests: reads items, a line each, and
 * prints what the copy says of each: absent, present or unknown. An empty line
 * prints the stage and the last error.
 *
 *   local_probe HOST PORT KEY MAX_STALE_MS
 */
#include "base/err.h"
#include "local/local_link.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 };

static void
answer(const struct local_link *link, struct slice item)
{
    static const char *const words[] = { "absent", "present", "unknown" };

    if (item.len == 0) {
        (void)printf("%d %u %s\n", (int)local_copy_stage(link->copy),
                     link->connections, link->error);
    } else {
        (void)printf(
            "%s\n",
            words[local_copy_contains(link->copy, item, local_link_now_ms())]);
    }
    (void)fflush(stdout);
}

/* Answers the whole lines that have come. False: there are no more. */
static bool
serve(const struct local_link *link, char *line, size_t *len)
{
    ssize_t got = read(STDIN_FILENO, line + *len, LINE_BYTES - *len);
    char *lf;

    if (got == 0) {
        return false;
    }
    *len += got > 0 ? (size_t)got : 0;
    while ((lf = memchr(line, '\n', *len)) != NULL) {
        size_t taken = (size_t)(lf - line) + 1;

        answer(link, (struct slice){ line, taken - 1 });
        *len -= taken;
        memmove(line, line + taken, *len);
    }
    return true;
}

int
main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    size_t len = 0;
    struct local_link link;
    struct local_address address = { .password = { NULL, 0 } };
    struct local_options options = { .refresh_ms = 1000 };

    if (argc != 5) {
        return 2;
    }
    address.host = argv[1];
    address.port = argv[2];
    options.key = slice_of(argv[3]);
    options.max_stale_ms = strtoull(argv[4], NULL, 10);
    CHECK(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) == 0);
    local_link_init(&link, &address, local_copy_new(&options), -1);
    while (serve(&link, line, &len)) {
        local_link_step(&link, local_link_now_ms() + 2);
    }
    local_link_close(&link);
    local_copy_free(link.copy);
    return 0;
}
