/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text as the log of a former primary: a line is a command, its words as
 * those of an inline command. Its adds are offered, or set aside as commands
 * that a client can send; nothing that a log alone may say is left in them. The
 * bytes themselves are no group, or one.
 */
#include "base/err.h"
#include "base/mem.h"
#include "command/rows.h"
#include "proto/compose.h"
#include "proto/inline.h"
#include "replay/merge_sift.h"
#include "target.h"

#include <errno.h>
#include <string.h>

enum { TEXT_MAX = 8192, WORDS_MAX = 64 };

struct sifted {
    size_t offered, aside;
};

static bool
offer(void *ctx, const struct merge_name *name, struct slice item)
{
    struct sifted *sifted = ctx;

    CHECK(name->incarnation != 0 && !name->touched && item.data != NULL);
    sifted->offered++;
    return true;
}

static bool
set_aside(void *ctx, uint32_t db, const struct slice *argv, size_t argc,
          size_t changes)
{
    struct sifted *sifted = ctx;
    unsigned words;
    const struct command *command = command_resolve(argv, argc, &words);

    (void)db;
    (void)changes;
    CHECK(argc > 0 && command != NULL);
    for (size_t i = 0; i < argc; i++) {
        CHECK(argv[i].data != NULL || argv[i].len == 0);
    }
    sifted->aside++;
    return true;
}

static void
put_commands(struct slice text, struct buf *out)
{
    static const struct slice select[] = { { "SELECT", 6 }, { "0", 1 } };

    compose_command(out, select, 2);
    while (text.len > 0) {
        const char *lf = memchr(text.data, '\n', text.len);
        struct slice line = { text.data, lf != NULL ? (size_t)(lf - text.data)
                                                    : text.len };
        struct arena arena = { 0 };
        struct slice words[WORDS_MAX];

        text.data += line.len + (lf != NULL);
        text.len -= line.len + (lf != NULL);
        if (inline_split(line, &arena) == OK && arena.count > 0 &&
            arena.count <= WORDS_MAX) {
            arena_slices(&arena, words);
            compose_command(out, words, arena.count);
        }
        arena_fini(&arena);
    }
}

/* Sifts a group twice, as a merge does. */
static void
sift_group(struct slice commands)
{
    struct merge_sift *sift = merge_sift_new();
    struct sifted sifted = { 0, 0 };
    const struct merge_sift_hooks hooks = { offer, set_aside, &sifted };
    int error;

    CHECK(sift != NULL);
    error = merge_sift_note(sift, commands);
    CHECK(error == 0 || error == EINVAL);
    for (size_t i = 0; i < merge_sift_count(sift); i++) {
        merge_sift_name(sift, i)->incarnation = i % 3;
    }
    if (error == 0) {
        CHECK(merge_sift_split(sift, commands, &hooks) == 0);
    }
    merge_sift_free(sift);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct buf commands = { 0 };

    if (size > TEXT_MAX) {
        return 0;
    }
    command_table_init(command_rows);
    put_commands(text, &commands);
    sift_group(buf_slice(&commands));
    buf_free(&commands);
    if (size > 0) {
        sift_group(text);
    }
    return 0;
}

/* ---- inputs -------------------------------------------------------------- */

static const char *const lines[] = {
    "BF.ADD k a",
    "BF.MADD k b c",
    "SELECT 3",
    "SELECT x",
    "DEL k",
    "BF.INSERT d PLACED + a 3 b",
    "BF.MDEL d PLACED 1 a",
    "BF.INSERT k AT 5 ITEMS a b",
    "BF.INSERT k CAPACITY 9 ERROR 0.1 INCARNATION 4 ITEMS a",
    "BF.RESERVE k 0.1 10 INCARNATION 7",
    "COPY a b DB 1 REPLACE INCARNATION 9",
    "RESTORE k 0 x REPLACE ABSTTL INCARNATION 2",
    "MOVE k 1",
    "RENAME k j",
    "SWAPDB 0 1",
    "FLUSHALL",
    "PEXPIREAT k 99",
    "MULTI",
    "EXEC",
    "BF.MERGE d k INCARNATION 4",
    "BF.LOADCHUNK k 1 x INCARNATION 3",
    "BF.MADD k",
    "BF.INSERT k ITEMS",
    "BF.INSERT k PLACED",
    "REPLCONF GETACK *",
    "BF.RESET k INCARNATION 1",
};

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    size_t len = 0;

    (void)max;
    for (uint64_t n = 1 + fuzz_next(&random) % 12; n > 0; n--) {
        const char *line =
            lines[fuzz_next(&random) % (sizeof(lines) / sizeof(*lines))];
        size_t most = strlen(line);

        if (fuzz_next(&random) % 8 == 0) {
            most = fuzz_next(&random) % most;
        }
        memcpy(to + len, line, most);
        len += most;
        to[len++] = '\n';
    }
    return len;
}
