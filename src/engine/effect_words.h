/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words of the log's commands: one table of the words of a BF.INSERT, for
 * the grammar, for the code that reads a log without executing it, and for the
 * code that turns a log into commands of a client. bloom/bloom_make.h and
 * bloom/adds.h say what the words mean.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct logged;

enum insert_flags {
    INSERT_VALUE = 1,   /* a value follows */
    INSERT_MAY_END = 2, /* the value is a number and may be left out */
    INSERT_LOG = 4,     /* only a log may have the word */
    INSERT_LIST = 8,    /* all that follows are items */
    INSERT_MAKES = 16,  /* the command creates its key */
    INSERT_TIMED = 32,  /* the value is the time of adds to an ageing filter */
    INSERT_SHAPE = 64,  /* clients cannot ask for a filter of this shape */
    INSERT_KEYED = 128  /* the value is the fingerprint of a secret */
};

enum insert_name {
    INSERT_UNKNOWN,
    INSERT_ITEMS,
    INSERT_PLACED,
    INSERT_AT,
    INSERT_STRIPES,
    INSERT_LINES,
    INSERT_INCARNATION,
    INSERT_LAYOUT,
    INSERT_GROWTH,
    INSERT_FINGERPRINT,
    INSERT_ERROR,
    INSERT_CAPACITY,
    INSERT_EXPANSION,
    INSERT_TIGHTENING,
    INSERT_SEED,
    INSERT_TARGET, /* VALIDATESCALETO */
    INSERT_NONSCALING,
    INSERT_NOCREATE,
    /* Bloomery's own words (bloom/grammar.c) are the last. */
    INSERT_EX,
    INSERT_PX,
    INSERT_EXAT,
    INSERT_PXAT,
    INSERT_DELETABLE,
    INSERT_AGEING,
    INSERT_GENERATIONS,
    INSERT_HASH,
    INSERT_IFINCARNATION,
    INSERT_NAMES
};

/* Returns the name of a word of BF.INSERT, and its flags. */
enum insert_name insert_word(struct slice word, unsigned *ret_flags);

/* What the words of a BF.INSERT of a log say. */
struct insert_words {
    size_t list; /* where ITEMS or PLACED is; argc: there is none */
    bool placed; /* the word is PLACED: before each item is its place */
    /* Where the values of these words are; 0: the command has no such word. */
    size_t time; /* AT */
    size_t fingerprint;
    unsigned flags; /* of all its words */
};
struct insert_words insert_words_of(const struct slice *argv, size_t argc);

/* Writes a command of a log as a client may send it, without the words that
 * only a log may have. `to` may be the command's argv. Returns the number of
 * words, at most argc. */
size_t effect_plain(struct slice *to, const struct logged *logged);
