/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A selector is one set of permissions: which commands, key patterns, channels
 * and databases. A user has one, the root, and perhaps more, and may do what
 * any one of them permits (user.h). Rules change a selector one after the
 * other, as in Redis 7 and Valkey. A selector belongs to its user.
 */
#pragma once

#include "access/item_index.h"
#include "access/table.h"
#include "base/buf.h"

enum {
    SELECTOR_WORDS = (CMD_ID_COUNT + 63) / 64,
    SELECTOR_DBS = 1024, /* the maximum of the option `databases` */
};

/* What a key pattern permits; the first byte of an item of selector.keys. */
enum key_access { KEY_READS = 1, KEY_WRITES = 2 };

/* All zero: it permits nothing, except all databases (some_dbs). */
struct selector {
    struct selector *next;
    bool all_commands; /* no rule has taken a command away since +@all */
    bool from_all;     /* the rules began with +@all */
    bool all_keys, all_channels;
    bool some_dbs; /* only those in dbs */
    uint64_t commands[SELECTOR_WORDS];
    uint64_t dbs[SELECTOR_DBS / 64];
    struct buf rules;    /* items behind +@all or -@all: "+get", "-@read" */
    struct buf words;    /* items: "select|0", permitted first arguments */
    struct buf keys;     /* items: enum key_access, then the pattern */
    struct buf channels; /* items: patterns */
    /* Indexes of keys and channels while rules are applied; else empty. */
    struct item_index known_keys, known_channels;
};

/* Frees the selector's memory, and empties it. */
void selector_fini(struct selector *selector);
void selector_free_list(struct selector *first);

/* Makes an equal selector. False without memory: nothing is left to free. */
MUST_CHECK bool selector_copy(const struct selector *from,
                              struct selector *ret_selector);

/* Applies one rule. Returns NULL, or why the rule is refused, in Redis's words;
 * SELECTOR_NO_MEMORY without memory. A refused rule changes nothing. */
extern const char SELECTOR_NO_MEMORY[], SELECTOR_SYNTAX[];
extern const char SELECTOR_UNKNOWN_COMMAND[];
MUST_CHECK const char *selector_apply(struct selector *selector,
                                      struct slice rule);

/* Frees the indexes that speed up many rules. Call it after the last rule. */
void selector_settle(struct selector *selector);

/* Append the rules that make this selector; selector_put() appends all of them,
 * separated by blanks. */
void selector_put_commands(const struct selector *selector, struct buf *text);
void selector_put_keys(const struct selector *selector, struct buf *text);
void selector_put_channels(const struct selector *selector, struct buf *text);
void selector_put_dbs(const struct selector *selector, struct buf *text);
void selector_put(const struct selector *selector, struct buf *text);

static inline bool
selector_has_command(const struct selector *selector, unsigned id)
{
    return (selector->commands[id / 64] >> id % 64 & 1) != 0;
}

/* Returns whether the selector permits everything. */
bool selector_is_free(const struct selector *selector);
