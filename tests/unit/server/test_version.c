/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What --version prints: a line each, which reports of faults rely on.
 */
#include "server/version.h"

#include "../capture.h"

#include <bloomery_version.h>

TEST(the_version_comes_first_and_each_part_has_a_line)
{
    static const char *const parts[] = {
        "build: mode ", "cpu: ",    "allocator: ", "libuv: ",
        "hiredis: ",    "xxHash: ", "OpenSSL: "
    };
    static const char first[] = "bloomery-server " BLOOMERY_VERSION "\n";
    struct capture output;
    const char *line;

    capture_begin(&output, STDOUT_FILENO);
    version_print();
    line = capture_end(&output);
    assert_true(strncmp(line, first, strlen(first)) == 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        line = strchr(line, '\n') + 1;
        assert_true(strncmp(line, parts[i], strlen(parts[i])) == 0);
        assert_true(line[strlen(parts[i])] > ' '); /* it has a value */
    }
    assert_string_equal("\n", strchr(line, '\n'));
}
