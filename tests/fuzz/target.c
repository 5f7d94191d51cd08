/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include "proto/compose.h"
#include "proto/inline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { WORDS_MAX = 64 /* of a line that counts */ };

uint64_t
fuzz_next(uint64_t *random)
{
    uint64_t z = (*random += 0x9E3779B97F4A7C15U);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

void
fuzz_seal(char *data, size_t begin, size_t at)
{
    char *seal = data + at;
    char text[40];

    if (seal[34] != '7') {
        (void)snprintf(text, sizeof(text), "%016zu", at - begin);
        memcpy(seal + 36, text, 16);
    }
    (void)snprintf(
        text, sizeof(text), "%016" PRIx64,
        (uint64_t)XXH3_64bits_withSeed(seal, FUZZ_SEAL_HASHED, FUZZ_KEY));
    memcpy(seal + FUZZ_SEAL_HASHED, text, 16);
    (void)snprintf(text, sizeof(text), "%016" PRIx64,
                   (uint64_t)XXH3_64bits_withSeed(
                       data + begin, at - begin + FUZZ_SEAL_HASHED, FUZZ_KEY));
    memcpy(seal + FUZZ_SEAL_TAG_END, text, 16);
    memcpy(seal + 102, "\r\n", 2);
}

static void
put_command(struct buf *out, struct slice line, fuzz_leave_out_fn *leave_out)
{
    struct arena arena = { 0 };
    struct slice words[WORDS_MAX];

    if (inline_split(line, &arena) == OK && arena.count > 0 &&
        arena.count <= WORDS_MAX) {
        arena_slices(&arena, words);
        if (leave_out == NULL || !leave_out(words, arena.count)) {
            compose_command(out, words, arena.count);
        }
    }
    arena_fini(&arena);
}

bool
fuzz_next_group(struct slice *text, fuzz_leave_out_fn *leave_out,
                struct buf *commands)
{
    size_t begin = commands->len;

    while (text->len > 0) {
        const char *lf = memchr(text->data, '\n', text->len);
        struct slice line = { text->data, lf != NULL ? (size_t)(lf - text->data)
                                                     : text->len };

        text->data += line.len + (lf != NULL);
        text->len -= line.len + (lf != NULL);
        if (slice_is_word(line, "-")) {
            break;
        }
        put_command(commands, line, leave_out);
    }
    return commands->len > begin || text->len > 0;
}
