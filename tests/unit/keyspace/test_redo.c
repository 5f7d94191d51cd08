/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a log says of deletable filters: right words and wrong ones.
 */
#include "support.h"

#include "core/bloom.h"
#include "core/codec.h"
#include "keyspace/memory.h"
#include "keyspace/redo.h"

enum { WORDS_MAX = 8 };

static struct bloom_env
env(void)
{
    static const struct keyspace_memory unlimited = { 0 };

    return keyspace_env(&unlimited, UINT64_MAX);
}

static struct bloom *
make(uint32_t region)
{
    const struct bloom_env memory = env();
    const struct bloom_params params = { .struct_size = sizeof(params),
                                         .capacity = 100,
                                         .error_rate = 0.01,
                                         .tightening = 0.5,
                                         .expansion = 2,
                                         .kind = region > 0 ? BLOOM_DELETABLE
                                                            : BLOOM_NATIVE,
                                         .region = region };
    struct bloom *bloom = NULL;

    assert_int_equal(BLOOM_OK, bloom_new(&params, &memory, &bloom));
    return bloom;
}

/* Executes the words of the text, which are between blanks. */
static enum bloom_status
redo(struct bloom *bloom, const char *text, bool deletes)
{
    const struct bloom_env memory = env();
    struct slice words[WORDS_MAX];
    struct redo redo = { .words = words };

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        assert_true(redo.count < WORDS_MAX);
        words[redo.count++] = (struct slice){ text, len };
        text += len + (text[len] == ' ');
    }
    return deletes ? redo_deletions(bloom, &redo)
                   : redo_adds(bloom, &memory, &redo);
}

TEST(what_was_added_and_deleted_is_so_again)
{
    const struct bloom_env memory = env();
    struct bloom *bloom = make(2);

    assert_int_equal(BLOOM_OK, redo(bloom, "+ a + b 0 a", false));
    assert_int_equal(2, bloom_items(bloom));
    assert_int_equal(BLOOM_OK, redo(bloom, "0:8 b", true));
    assert_int_equal(1, bloom_items(bloom));
    assert_true(bloom_contains(bloom, bloom_hash(bloom, "a", 1)));
    assert_false(bloom_contains(bloom, bloom_hash(bloom, "b", 1)));
    bloom_free(bloom, &memory);
}

TEST(wrong_places_are_refused)
{
    static const char *const adds[] = {
        "",     "+",     "+ a +", "x a",     "1 a",          " a",
        "-1 a", "0:8 a", "++ a",  "65535 a", "4294967296 a",
    };
    static const char *const deletions[] = {
        "",      "0:8",   "+ a",   "0 a",     "0: a",   ":8 a",
        "1:8 b", "0:0 b", "0:9 b", "0:8 b c", "0:8: b", "0:65535 b",
    };
    const struct bloom_env memory = env();
    struct bloom *bloom = make(2);
    struct bloom *native = make(0);

    assert_int_equal(BLOOM_OK, redo(bloom, "+ b", false));
    for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++) {
        if (redo(bloom, adds[i], false) != BLOOM_INVALID) {
            fail_msg("[%s] is an add", adds[i]);
        }
    }
    for (size_t i = 0; i < sizeof(deletions) / sizeof(deletions[0]); i++) {
        if (redo(bloom, deletions[i], true) != BLOOM_INVALID) {
            fail_msg("[%s] is a deletion", deletions[i]);
        }
    }
    assert_int_equal(BLOOM_INVALID, redo(native, "+ a", false));
    assert_int_equal(BLOOM_INVALID, redo(native, "0:8 a", true));
    bloom_free(native, &memory);
    bloom_free(bloom, &memory);
}

TEST(places_are_written_as_they_are_read)
{
    char place[REDO_PLACE_MAX];
    const struct deletable_done done = { .layer = 1023, .cleared = 65534 };

    assert_int_equal(1, redo_put_add(DELETABLE_NEW, place));
    assert_int_equal('+', place[0]);
    assert_int_equal(4, redo_put_add(1023, place));
    assert_memory_equal("1023", place, 4);
    assert_int_equal(10, redo_put_deletion(done, place));
    assert_memory_equal("1023:65534", place, 10);
}
