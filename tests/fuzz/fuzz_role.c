/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text as the file of the role, with a checksum that holds. It is read as a
 * state that equals itself, or refused, or set aside under its other name with
 * a reason; the start goes on in any case that it says so.
 */
#include "base/checksum.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "roles/role_file.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REASON_MAX = 256, TEXT_MAX = 4096 };

static char path[] = "/tmp/bloomery-role-XXXXXX";

static void
remove_dir(void)
{
    (void)rmdir(path);
}

static int
open_dir(void)
{
    static int fd = -1;

    if (fd < 0) {
        CHECK(mkdtemp(path) != NULL && file_open_dir(path, false, &fd) == 0);
        CHECK(atexit(remove_dir) == 0);
    }
    return fd;
}

static void
write_file(int dir_fd, struct slice text)
{
    int fd = -1;

    CHECK(file_create(dir_fd, ROLE_FILE_NAME, &fd) == 0 &&
          file_write(fd, text.data, text.len) == 0);
    file_close(fd);
}

static void
check_state(const struct role_state *state)
{
    CHECK(role_state_same(state, state));
    CHECK(!state->replica ||
          role_place_is_valid(slice_of(state->host), state->port));
    for (size_t i = 1; i < ROLE_BEFORE_MAX; i++) {
        CHECK(state->before[i][0] == '\0' || state->before[i - 1][0] != '\0');
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX + CHECKSUM_LINE_BYTES];
    char reason[REASON_MAX] = "";
    struct role_state state;
    int dir_fd = open_dir();
    size_t len;
    bool done;

    if (size > TEXT_MAX) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    len = checksum_append(text, size);
    write_file(dir_fd, (struct slice){ text, len });
    done = role_file_read(dir_fd, &state, reason, sizeof(reason));
    CHECK(done || reason[0] != '\0');
    if (state.known) {
        CHECK(done && reason[0] == '\0');
        check_state(&state);
    }
    (void)!file_unlink(dir_fd, ROLE_FILE_NAME);
    (void)!file_unlink(dir_fd, ROLE_FILE_DAMAGED);
    return 0;
}

/* Lines of a file, of which some are spoilt. */
size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    static const char *const roles[] = { "primary", "replica h 1",
                                         "replica ::1 65535", "replica h 0",
                                         "replica  7" };
    static const char *const lists[] = {
        "before -\nfollowers -\n",
        "before 0123456789012345678901234567890123456789\nfollowers many\n",
        "before -\nfollowers 00000000000000ff\n",
        "before -\nfollowers 00000000000000ff 1\n",
        "",
    };
    uint64_t random = seed;
    char text[512];
    size_t len = (size_t)snprintf(
        text, sizeof(text),
        "bloomery-role %d\nrole %s\nkey 00000000000000%02x\nreplicas %s\n"
        "history %s\n%s",
        (int)(fuzz_next(&random) % 4), roles[fuzz_next(&random) % 5],
        (unsigned)(fuzz_next(&random) % 256),
        fuzz_next(&random) % 2 == 0 ? "yes" : "no",
        fuzz_next(&random) % 2 == 0
            ? "-"
            : "0123456789012345678901234567890123456789",
        lists[fuzz_next(&random) % 5]);

    (void)max;
    memcpy(to, text, len);
    if (fuzz_next(&random) % 2 == 0) {
        to[fuzz_next(&random) % len] ^= (uint8_t)(1U << fuzz_next(&random) % 8);
    }
    return len;
}
