/* SPDX-License-Identifier: BSD-3-Clause
 *
 * insert_word() compares a word with one entry of the table after another. That
 * is fast enough: the table is short, and a command has few option words.
 */
#include "engine/effect_words.h"

#include "engine/logged.h"

static const struct {
    const char *word;
    enum insert_name name;
    unsigned flags;
} words[] = {
    { "items", INSERT_ITEMS, INSERT_LIST },
    { "placed", INSERT_PLACED, INSERT_LIST | INSERT_LOG },
    { "at", INSERT_AT, INSERT_VALUE | INSERT_LOG | INSERT_TIMED },
    { "stripes", INSERT_STRIPES, INSERT_VALUE | INSERT_LOG },
    { "lines", INSERT_LINES, INSERT_VALUE | INSERT_LOG },
    { "incarnation", INSERT_INCARNATION,
      INSERT_VALUE | INSERT_LOG | INSERT_MAKES },
    { "layout", INSERT_LAYOUT, INSERT_VALUE | INSERT_LOG | INSERT_SHAPE },
    { "growth", INSERT_GROWTH, INSERT_VALUE | INSERT_LOG | INSERT_SHAPE },
    { "fingerprint", INSERT_FINGERPRINT,
      INSERT_VALUE | INSERT_LOG | INSERT_KEYED },
    { "error", INSERT_ERROR, INSERT_VALUE },
    { "capacity", INSERT_CAPACITY, INSERT_VALUE },
    { "expansion", INSERT_EXPANSION, INSERT_VALUE },
    { "tightening", INSERT_TIGHTENING, INSERT_VALUE },
    { "seed", INSERT_SEED, INSERT_VALUE },
    { "validatescaleto", INSERT_TARGET, INSERT_VALUE },
    { "nonscaling", INSERT_NONSCALING, 0 },
    { "nocreate", INSERT_NOCREATE, 0 },
    { "ex", INSERT_EX, INSERT_VALUE },
    { "px", INSERT_PX, INSERT_VALUE },
    { "exat", INSERT_EXAT, INSERT_VALUE },
    { "pxat", INSERT_PXAT, INSERT_VALUE },
    { "deletable", INSERT_DELETABLE, INSERT_VALUE | INSERT_MAY_END },
    { "ageing", INSERT_AGEING, INSERT_VALUE },
    { "generations", INSERT_GENERATIONS, INSERT_VALUE },
    { "hash", INSERT_HASH, INSERT_VALUE },
    { "ifincarnation", INSERT_IFINCARNATION, INSERT_VALUE },
};

enum insert_name
insert_word(struct slice word, unsigned *ret_flags)
{
    *ret_flags = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (slice_is_word(word, words[i].word)) {
            *ret_flags = words[i].flags;
            return words[i].name;
        }
    }
    return INSERT_UNKNOWN;
}

/* Returns the number of words that this word and its value take: 1 or 2. */
static size_t
step(const struct slice *argv, size_t argc, size_t at, unsigned flags)
{
    int64_t number;

    if ((flags & INSERT_VALUE) == 0 || at + 1 == argc) {
        return 1;
    }
    return (flags & INSERT_MAY_END) == 0 || slice_to_i64(argv[at + 1], &number)
               ? 2
               : 1;
}

static void
note_value(struct insert_words *found, unsigned flags, size_t at)
{
    if ((flags & INSERT_TIMED) != 0) {
        found->time = at;
    }
    if ((flags & INSERT_KEYED) != 0) {
        found->fingerprint = at;
    }
}

struct insert_words
insert_words_of(const struct slice *argv, size_t argc)
{
    struct insert_words found = { .list = argc };

    for (size_t at = 2; at < argc;) {
        unsigned flags;

        (void)insert_word(argv[at], &flags);
        found.flags |= flags;
        if (at + 1 < argc) {
            note_value(&found, flags, at + 1);
        }
        if ((flags & INSERT_LIST) != 0) {
            found.list = at;
            found.placed = (flags & INSERT_LOG) != 0;
            break;
        }
        at += step(argv, argc, at, flags);
    }
    return found;
}

/* Copies the items of the list that begins with the word PLACED at argv[at]. In
 * the list, each item follows its place. */
static size_t
put_placed(struct slice *to, const struct slice *argv, size_t argc, size_t at)
{
    size_t count = 0;

    for (size_t i = at + 2; i < argc; i += 2) {
        to[count++] = argv[i];
    }
    return count;
}

static size_t
put_words(struct slice *to, const struct slice *argv, size_t count)
{
    if (count > 0) {
        memmove(to, argv, count * sizeof(*to));
    }
    return count;
}

static size_t
plain_insert(struct slice *to, const struct slice *argv, size_t argc)
{
    struct insert_words found = insert_words_of(argv, argc);
    size_t count = put_words(to, argv, 2);
    size_t at = 2;

    while (at < found.list) {
        unsigned flags;
        size_t one;

        (void)insert_word(argv[at], &flags);
        one = step(argv, argc, at, flags);
        if ((flags & INSERT_LOG) == 0) {
            count += put_words(to + count, argv + at, one);
        }
        at += one;
    }
    if (!found.placed) {
        return count + put_words(to + count, argv + at, argc - at);
    }
    to[count++] = slice_lit("ITEMS");
    return count + put_placed(to + count, argv, argc, at);
}

/* Returns whether a command of this kind ends with INCARNATION n in a log. */
static bool
names_its_life(enum logged_kind kind)
{
    return kind == LOGGED_MAKE || kind == LOGGED_CHUNK || kind == LOGGED_COPY ||
           kind == LOGGED_MERGE;
}

size_t
effect_plain(struct slice *to, const struct logged *logged)
{
    const struct slice *argv = logged->argv;
    size_t argc = logged->argc;

    if (logged->kind == LOGGED_INSERT) {
        return plain_insert(to, argv, argc);
    }
    if (logged->kind == LOGGED_MDEL) {
        (void)put_words(to, argv, 2);
        return 2 + put_placed(to + 2, argv, argc, 2);
    }
    if (names_its_life(logged->kind) && argc > 4 &&
        slice_is_word(argv[argc - 2], "incarnation")) {
        argc -= 2;
    }
    return put_words(to, argv, argc);
}
