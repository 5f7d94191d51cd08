/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words are compared one after another: who reads a log here does not serve
 * clients.
 */
#include "engine/effect_words.h"

#include "engine/logged.h"

static const struct {
    const char *word;
    unsigned flags;
} words[] = {
    { "items", INSERT_LIST },
    { "placed", INSERT_LIST | INSERT_LOG },
    { "at", INSERT_VALUE | INSERT_LOG | INSERT_TIMED },
    { "stripes", INSERT_VALUE | INSERT_LOG },
    { "lines", INSERT_VALUE | INSERT_LOG },
    { "incarnation", INSERT_VALUE | INSERT_LOG | INSERT_MAKES },
    { "layout", INSERT_VALUE | INSERT_LOG | INSERT_SHAPE },
    { "growth", INSERT_VALUE | INSERT_LOG | INSERT_SHAPE },
    { "fingerprint", INSERT_VALUE | INSERT_LOG | INSERT_KEYED },
    { "error", INSERT_VALUE },
    { "capacity", INSERT_VALUE },
    { "expansion", INSERT_VALUE },
    { "tightening", INSERT_VALUE },
    { "seed", INSERT_VALUE },
    { "validatescaleto", INSERT_VALUE },
    /* Bloomery's own (bloom/grammar.c). */
    { "ex", INSERT_VALUE },
    { "px", INSERT_VALUE },
    { "exat", INSERT_VALUE },
    { "pxat", INSERT_VALUE },
    { "deletable", INSERT_VALUE | INSERT_MAY_END },
    { "ageing", INSERT_VALUE },
    { "generations", INSERT_VALUE },
    { "hash", INSERT_VALUE },
    { "ifincarnation", INSERT_VALUE },
};

unsigned
insert_word(struct slice word)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (slice_is_word(word, words[i].word)) {
            return words[i].flags;
        }
    }
    return 0;
}

/* Returns how many words a word and its value are. */
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
        unsigned flags = insert_word(argv[at]);

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

/* Copies every second word, from the second on: the items of PLACED, which
 * stands at AT. */
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
        unsigned flags = insert_word(argv[at]);
        size_t one = step(argv, argc, at, flags);

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

/* Whether a log has INCARNATION n behind the command. */
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
