/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as a file of saved adds: as they are, and as the text of commands,
 * a line each, which gets a first line and seals that hold; a line "-" ends a
 * group. The file is offered batch by batch, and some of each batch is refused:
 * what is stored of that is commands that a client can send.
 */
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "heal/merge_held.h"
#include "heal/merge_read.h"
#include "proto/batch.h"
#include "proto/compose.h"
#include "proto/scan.h"
#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 8192, REFUSALS_MAX = 32, KEPT_MAX = 2048 };

static char path[] = "/tmp/bloomery-heal-XXXXXX";
static const char history[] = "0123456789abcdef0123456789abcdef01234567";

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

/* ---- from lines to a file ------------------------------------------------ */

static void
seal(struct buf *out, size_t begin, uint64_t sequence)
{
    struct group_hash *hash = group_hash_new();
    const struct group_seal seal = { .sequence = sequence,
                                     .bytes = out->len - begin };
    char text[GROUP_SEAL_BYTES];

    group_hash_begin(hash, FUZZ_KEY);
    group_hash_add(hash, out->data + begin, out->len - begin);
    group_write_seal(hash, FUZZ_KEY, &seal, text);
    buf_append(out, text, sizeof(text));
    group_hash_free(hash);
}

static void
put_file(struct slice text, struct buf *out)
{
    static const struct slice select[] = { { "SELECT", 6 }, { "0", 1 } };
    struct group_file first = { .key = FUZZ_KEY };
    char line[GROUP_FIRST_LINE_BYTES];
    uint64_t sequence = 0;

    memcpy(first.run_id, history, sizeof(history));
    group_write_first_line(&first, line);
    buf_append(out, line, sizeof(line));
    while (text.len > 0) {
        size_t begin = out->len;

        compose_command(out, select, 2);
        (void)fuzz_next_group(&text, NULL, out);
        seal(out, begin, ++sequence);
    }
}

/* ---- offering ------------------------------------------------------------ */

/* Whether these bytes are whole commands that a client can send. */
static void
check_stored(struct slice text)
{
    static const struct parse_limits limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                false };
    struct batch batch;
    size_t at = 0;

    memset(&batch, 0, sizeof(batch));
    while (at < text.len) {
        size_t begin = at;

        batch_clear(&batch);
        CHECK(scan_commands(text, &limits, &batch, &at) == OK && at > begin);
        for (uint32_t i = 0; i < batch.count; i++) {
            const struct slice *argv = &batch.argv[batch.command[i].first];
            uint64_t db;

            if (slice_is_word(argv[0], "select")) {
                CHECK(batch.command[i].argc == 2 && slice_to_u64(argv[1], &db));
            } else {
                CHECK(slice_is_word(argv[0], "bf.madd"));
                CHECK(batch.command[i].argc >= 3);
            }
        }
    }
    batch_fini(&batch);
}

/* Offers all batches. Every third command is refused from one of its first
 * items on. */
static void
offer(struct merge_read *read, uint64_t *ret_batches)
{
    struct merge_refusal refusals[REFUSALS_MAX];

    for (*ret_batches = 0; read->error == 0; ++*ret_batches) {
        merge_read_next(read);
        if (read->error != 0 || read->batch.len == 0) {
            break;
        }
        CHECK(read->commands > 0);
        read->refusals = refusals;
        read->refused = 0;
        for (uint32_t i = 1; i < read->commands && i / 3 < REFUSALS_MAX;
             i += 3) {
            refusals[read->refused++] = (struct merge_refusal){ i, i % 4 };
        }
        merge_read_store(read);
    }
}

static void
heal(struct slice bytes)
{
    struct merge_held held = { .dir = path };
    struct merge_read read = { .dir = path,
                               .quarantine_max = KEPT_MAX,
                               .held = &held };
    char name[MERGE_NAME_MAX], refused[MERGE_NAME_MAX];
    char aside[MERGE_NAME_MAX + 16];
    static char text[TEXT_MAX];
    uint64_t batches;
    size_t len = 0;
    int dir_fd = open_dir();
    int fd = -1;

    merge_names_heal(history, 7, name);
    merge_names_refused(name, refused);
    CHECK(file_create(dir_fd, name, &fd) == 0 &&
          file_write(fd, bytes.data, bytes.len) == 0);
    file_close(fd);
    merge_read_find(&read);
    CHECK(strcmp(read.name, name) == 0 && held.count == 1);
    CHECK(read.bytes_waiting == bytes.len);
    offer(&read, &batches);
    CHECK(read.error == 0 || read.error == EBADMSG);
    CHECK(batches > 0 || read.quarantined == 0);
    (void)snprintf(aside, sizeof(aside), "%s.damaged", name);
    merge_read_finish(&read);
    CHECK(read.error == 0 && held.count == 0);
    CHECK(read.set_aside == (file_unlink(dir_fd, aside) == 0));
    if (file_read_name(dir_fd, refused, text, sizeof(text), &len) == 0) {
        CHECK(len <= KEPT_MAX);
        check_stored((struct slice){ text, len });
        CHECK(file_unlink(dir_fd, refused) == 0);
    }
    merge_read_end(&read);
    merge_held_fini(&held);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct buf file = { 0 };

    if (size > TEXT_MAX) {
        return 0;
    }
    put_file(text, &file);
    heal(buf_slice(&file));
    heal(text);
    buf_free(&file);
    return 0;
}

/* ---- inputs -------------------------------------------------------------- */

static const char *const lines[] = {
    "BF.INSERT k IFINCARNATION 7 ITEMS a b c d e",
    "BF.INSERT k IFINCARNATION 7 ITEMS a",
    "BF.INSERT \"a b\" IFINCARNATION 8 ITEMS \"\\x00\\r\\n\" z",
    "SELECT 3",
    "SELECT 0",
    "SELECT",
    "SELECT x",
    "SELECT 1 2",
    "BF.INSERT k IFINCARNATION 7 ITEMS",
    "BF.INSERT k",
    "PING",
    "-",
    "-",
};

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    size_t len = 0;

    (void)max;
    for (uint64_t n = 1 + fuzz_next(&random) % 20; n > 0; n--) {
        /* Mostly lines that a file may have. */
        size_t most =
            fuzz_next(&random) % 4 == 0 ? sizeof(lines) / sizeof(*lines) : 5;
        const char *line = lines[fuzz_next(&random) % most];

        memcpy(to + len, line, strlen(line));
        len += strlen(line);
        to[len++] = '\n';
    }
    if (fuzz_next(&random) % 4 == 0) {
        to[fuzz_next(&random) % len] ^= (uint8_t)(1U << fuzz_next(&random) % 8);
    }
    return len;
}
