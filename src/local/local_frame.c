/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_frame.h"

#include "proto/resp.h"

#include <string.h>

enum {
    WORDS_MAX = 8,
    AT_KEY = 1,
    AT_WORD = 2,
    AT_FIRST = 3 /* the first argument of that word */
};

/* Reads the first words of a push. Returns how many it has. */
static size_t
read_words(struct slice push, struct slice words[WORDS_MAX])
{
    const char *lf = memchr(push.data, '\n', push.len);
    struct slice rest = { lf + 1, push.len - (size_t)(lf + 1 - push.data) };
    struct slice element;
    size_t count = 0;

    while (resp_element(&rest, &element)) {
        if (count < WORDS_MAX) {
            words[count] = resp_text(element);
        }
        count++;
    }
    return count;
}

static bool
read_is(const struct slice *words, size_t count, struct local_frame *ret_frame)
{
    struct local_frame frame = { .kind = LOCAL_FRAME_IS };
    uint64_t items, layers;

    if (count < AT_FIRST + 2 || !slice_equal(words[AT_FIRST], slice_lit("1"))) {
        return false;
    }
    if (count == AT_FIRST + 2) {
        frame.missing = slice_equal(words[AT_FIRST + 1], slice_lit("missing"));
    } else if (count != AT_FIRST + 5 ||
               !slice_to_u64(words[AT_FIRST + 1], &frame.incarnation) ||
               frame.incarnation == 0 ||
               !slice_to_u64(words[AT_FIRST + 2], &items) ||
               !slice_to_u64(words[AT_FIRST + 3], &layers) ||
               !slice_to_u64(words[AT_FIRST + 4], &frame.ms)) {
        return false;
    }
    if (!frame.missing && frame.incarnation == 0) {
        return false;
    }
    *ret_frame = frame;
    return true;
}

static bool
read_add(const struct slice *words, size_t count, struct local_frame *ret_frame)
{
    struct local_frame frame = { .kind = LOCAL_FRAME_ADD };

    if (count < AT_FIRST + 1 || count > AT_FIRST + 2 ||
        words[AT_FIRST].len == 0 ||
        words[AT_FIRST].len % LOCAL_PAIR_BYTES != 0 ||
        (count == AT_FIRST + 2 &&
         (!slice_to_u64(words[AT_FIRST + 1], &frame.ms) || frame.ms == 0))) {
        return false;
    }
    frame.pairs = words[AT_FIRST];
    *ret_frame = frame;
    return true;
}

static bool
read_deleted(const struct slice *words, size_t count,
             struct local_frame *ret_frame)
{
    uint64_t items;

    if (count != AT_FIRST + 1 || !slice_to_u64(words[AT_FIRST], &items)) {
        return false;
    }
    *ret_frame =
        (struct local_frame){ .kind = LOCAL_FRAME_DELETED, .count = items };
    return true;
}

bool
local_frame_read(struct slice push, struct slice key,
                 struct local_frame *ret_frame)
{
    struct slice words[WORDS_MAX];
    size_t count = read_words(push, words);
    struct slice word;

    if (count <= AT_KEY || !slice_equal(words[0], slice_lit("bf.message"))) {
        return false;
    }
    if (!slice_equal(words[AT_KEY], key)) {
        return false;
    }
    word = count > AT_WORD ? words[AT_WORD] : slice_lit("");
    if (!(slice_equal(word, slice_lit("is")) &&
          read_is(words, count, ret_frame)) &&
        !(slice_equal(word, slice_lit("add")) &&
          read_add(words, count, ret_frame)) &&
        !(slice_equal(word, slice_lit("deleted")) &&
          read_deleted(words, count, ret_frame))) {
        *ret_frame = (struct local_frame){ .kind = LOCAL_FRAME_CHANGED };
    }
    return true;
}
